# SPDX-License-Identifier: MIT OR Apache-2.0
"""python -m h5z_gpu path: the folder for HDF5_PLUGIN_PATH."""
import sys

from .library import PLUGIN_PATH

if sys.argv[1:] != ["path"]:
    sys.exit("usage: python -m h5z_gpu path")
print(PLUGIN_PATH)
