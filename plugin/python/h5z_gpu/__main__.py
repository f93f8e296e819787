# SPDX-License-Identifier: MIT OR Apache-2.0
"""python -m h5z_gpu env: the shell's line that lets programs started from there find the plugin; path: its folder alone."""
import os
import shlex
import sys

from .library import PLUGIN_PATH

# The import has set the variable.
ANSWERS = {"path": PLUGIN_PATH, "env": f"export HDF5_PLUGIN_PATH={shlex.quote(os.environ['HDF5_PLUGIN_PATH'])}"}
if len(sys.argv) != 2 or sys.argv[1] not in ANSWERS:
    sys.exit("usage: eval \"$(python -m h5z_gpu env)\", or python -m h5z_gpu path")
print(ANSWERS[sys.argv[1]])
