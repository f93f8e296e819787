# SPDX-License-Identifier: MIT OR Apache-2.0
"""The filter in dask's processes: for those that write into another process's dataset, and for a file by each."""
from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

from .chunks import chunk_shape
from .filters import Lossless, Lossy
from .parallel import join
from .provenance import on_dataset, wanted
from .register import register
from .whole import closing, whole

try:
    from distributed import WorkerPlugin
except ImportError:
    WorkerPlugin: Any = object  # type: ignore[no-redef]  # nobody to register the plugin with


class Plugin(WorkerPlugin):
    """`client.register_plugin(h5z_gpu.dask.Plugin())` imports h5z_gpu in every worker, also in those to come."""

    name = "h5z_gpu"

    def setup(self, worker: Any) -> None:
        register()


def write(array: Any, folder: str | os.PathLike[str], name: str, how: Lossy | Lossless | None = None,
          **dataset: Any) -> Path:
    """Writes a dask array by its workers, each block of axis 0 into a file of its own, and joins the files.

    Answers the path folder/name.h5, where the dataset `name` is virtual; blocks are in folder/name.0.h5 and so on. All
    workers must see the folder. No two processes write one file, so nothing waits for a lock. how: a `Lossy` or
    `Lossless` (default). dataset: arguments for h5py's create_dataset, such as fillvalue, or chunks; these have
    about 4 MiB otherwise. Raises TypeError for another array, and ValueError where the lengths of its blocks are not
    known.
    """
    import dask.array
    from dask.base import compute
    from dask.delayed import delayed

    folder = Path(folder)
    if not isinstance(array, dask.array.Array):
        raise TypeError(f"h5z-gpu: a {type(array).__name__} is no dask array: dask.array.from_array makes one")
    if not array.ndim or any(math.isnan(n) for n in array.chunks[0]):
        raise ValueError(f"h5z-gpu: {array} has no known blocks along axis 0: see array.compute_chunk_sizes()")
    array = array.rechunk(dict.fromkeys(range(1, array.ndim), -1))  # type: ignore[no-untyped-call]
    blocks = [b for b, n in zip(array.to_delayed().ravel(), array.chunks[0]) if n] or [delayed(array)]
    files, out = [folder / f"{name}.{i}.h5" for i in range(len(blocks))], folder / f"{name}.h5"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.unlink(missing_ok=True)
    part = delayed(_part, pure=False)
    jobs = [part(block, path, name, how or Lossless(), dataset) for block, path in zip(blocks, files)]
    compute(*jobs)  # type: ignore[no-untyped-call]
    join(files, name, out)
    return out


def _part(block: Any, path: Path, name: str, how: Lossy | Lossless, dataset: dict[str, Any]) -> None:
    import h5py

    chunks = chunk_shape(block.shape, block.dtype.itemsize) if block.size else None
    with whole(path) as part, closing(h5py.File(part, "w")) as f:
        made = f.create_dataset(name, data=block, **{"chunks": chunks, "compression": how if chunks
                                                     else None} | dataset)
        if wanted(None):
            on_dataset(made)
        made.flush()
