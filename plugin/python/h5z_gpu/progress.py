# SPDX-License-Identifier: MIT OR Apache-2.0
"""A progress bar for what takes long, where tqdm is installed."""
from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

try:
    from tqdm import tqdm
except ImportError:
    tqdm = None


# Bytes that are done before a bar would be shown: making one takes as long as reading some.
_SMALL = 128 << 20


@contextlib.contextmanager
def bar(progress: bool | None, total: int, verb: str, name: str) -> Iterator[Callable[[int], object]]:
    """A function to be told of bytes that are done."""
    if tqdm is None:
        if progress:
            raise ImportError("h5z-gpu: the progress bar needs tqdm: pip install tqdm")
        yield lambda n: None
        return
    if progress is None and total < _SMALL:
        yield lambda n: None
        return
    off = not (sys.stderr.isatty() if progress is None else progress)
    with tqdm(total=total, unit="B", unit_scale=True, desc=f"{verb} {name}", disable=off, delay=0 if progress
              else 2) as shown:
        yield shown.update
