#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Makes the pictures of tools anew, of the field of `make demo` and of the file that the documentation's pages have;
# needs what both need, and chromium.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
python=$root/.env/bin/python
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export HDF5_PLUGIN_PATH="$root/target/plugin" H5Z_GPU_PLUGIN_PATH="$root/target/plugin"
export PYTHONPATH="$root/plugin/python:$root/tests/hosts"
"$python" "$root/examples/demo.py"
cd "$work"
"$python" -c 'import pathlib, samples; samples.page_files(pathlib.Path(), *samples.temperatures())'
"$python" -m h5z_gpu advise in.nc --html advise.html >/dev/null
"$python" -m h5z_gpu repack in.nc small.nc tas=absolute:0.01 >/dev/null
"$python" -m h5z_gpu verify in.nc small.nc --html verify.html >/dev/null
shot() {
    chromium --headless --no-sandbox --hide-scrollbars --window-size="$2" --screenshot="$1.png" \
        "file://$work/$1.html" 2>/dev/null
}
shot advise 1280,980
shot verify 1280,1360
cp "$root/target/demo/demo.png" .
"$python" - "$here" <<'PYTHON'
import sys
from PIL import Image

for name in ("demo", "advise", "verify"):
    picture = Image.open(f"{name}.png").convert("RGB")
    picture.thumbnail((1280, 1400))
    picture.quantize(256).save(f"{sys.argv[1]}/{name}.png", optimize=True)
PYTHON
