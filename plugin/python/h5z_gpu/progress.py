# SPDX-License-Identifier: MIT OR Apache-2.0
"""A progress bar for what takes long, where tqdm is installed."""
from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

# Bytes that are done before a bar would be shown: making one takes as long as reading some.
_SMALL = 128 << 20


@contextlib.contextmanager
def bar(progress: bool | None, total: int, verb: str, name: str) -> Iterator[Callable[[int], object]]:
    """A function to be told of bytes that are done."""
    shown = sys.stderr.isatty() and total >= _SMALL if progress is None else progress
    tqdm = _tqdm() if shown else None
    if tqdm is None:
        if progress:
            raise ImportError("h5z-gpu: the progress bar needs tqdm: pip install tqdm")
        yield lambda n: None
        return
    with tqdm(total=total, unit="B", unit_scale=True, desc=f"{verb} {name}", delay=0 if progress else 2) as made:
        yield made.update


def _tqdm() -> Any:
    """tqdm, which takes as long to import as h5py: only where a bar is shown. None where it is not installed."""
    try:
        from tqdm import tqdm
    except ImportError:
        return None
    return tqdm
