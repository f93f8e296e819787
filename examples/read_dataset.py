# SPDX-License-Identifier: MIT OR Apache-2.0
"""Reads what write_dataset.py wrote. Nothing is said about the filter: HDF5_PLUGIN_PATH is enough."""
import sys

import h5py

with h5py.File(sys.argv[1]) as f:
    d = f["temperature"]
    a = d[...]
    print(f"{d.shape} {d.dtype}, {a.min():.2f} to {a.max():.2f}, {a.nbytes / d.id.get_storage_size():.1f} times "
          f"smaller on disk")
