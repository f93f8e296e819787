# SPDX-License-Identifier: MIT OR Apache-2.0
"""python -m h5z_gpu: the command line `h5z-gpu`, also where its script is not on the PATH."""
import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
