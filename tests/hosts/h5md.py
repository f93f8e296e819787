# SPDX-License-Identifier: MIT OR Apache-2.0
"""An H5MD file by h5py, in its smallest form: https://www.nongnu.org/h5md/h5md.html."""
import h5py
import numpy as np

UNITS = {"position": "nm", "velocity": "nm ps-1", "force": "kJ mol-1 nm-1"}


def create(path, arrays, chunk, how={}, write=h5py.Dataset.write_direct):
    """`arrays`: of those in UNITS, frames × atoms × 3, and `edges`, the edge of a cubic box in each frame. `chunk`:
    frames in a chunk. `how`: what `compression` is, by name. `write`: puts an array into a dataset."""
    frames = len(arrays["edges"])
    with h5py.File(path, "w") as f:
        f.create_group("h5md").attrs["version"] = (1, 1)
        f.create_group("h5md/author").attrs["name"] = "tests"
        f.create_group("h5md/creator").attrs.update({"name": "h5py", "version": h5py.__version__})
        box = f.create_group("particles/trajectory/box")
        box.attrs.update({"dimension": 3, "boundary": ["periodic"] * 3})
        box["edges/value"] = np.eye(3, dtype="f4") * arrays["edges"][:, None, None]
        box["edges/step"], box["edges/time"] = 500 * np.arange(frames), np.arange(frames, dtype="f4")
        box["edges/value"].attrs["unit"], box["edges/time"].attrs["unit"] = "nm", "ps"
        for name in (name for name in UNITS if name in arrays):
            x = arrays[name]
            d = f.create_dataset(f"particles/trajectory/{name}/value", x.shape, x.dtype, chunks=(chunk, *x.shape[1:]),
                                 compression=how.get(name))
            d.attrs["unit"] = UNITS[name]
            d.parent["step"], d.parent["time"] = box["edges/step"], box["edges/time"]
            write(d, x)
