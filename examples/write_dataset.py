# SPDX-License-Identifier: MIT OR Apache-2.0
"""Writes a dataset with an error bound. Set HDF5_PLUGIN_PATH first (see README.md); then: write_dataset.py OUT.h5"""
import sys

import h5py
import numpy as np

z, y, x = np.meshgrid(*[np.linspace(0, 6, n) for n in (64, 128, 128)], indexing="ij")
temperature = (280 + 10 * np.sin(x) * np.cos(y) + z).astype("f4")

with h5py.File(sys.argv[1], "w") as f:
    f.create_dataset(
        "temperature",
        data=temperature,
        chunks=(32, 128, 128),
        compression=443,  # h5z-gpu
        compression_opts=(11002,),  # absolute, 1.0e-2: no value changes by more than 0.01
    )
