# SPDX-License-Identifier: MIT OR Apache-2.0
"""Chunk shapes that suit the codecs."""
from __future__ import annotations

import math

MOST = 4 << 20  # bytes of a chunk: batches of such chunks fill a GPU, and a part of one is soon read


def chunk_shape(shape: tuple[int, ...], itemsize: int, most: int = MOST) -> tuple[int, ...]:
    """A chunk of at most `most` bytes for an array of this shape, nearly a cube.

    The longest axis is halved until the chunk is small enough, so that all chunks of a dataset are about alike.

    Parameters
    ----------
    shape : tuple of int
        The array's extents; an extent of 0 counts as 1.
    itemsize : int
        Bytes of an element.
    most : int
        Bytes of a chunk at most; where an element is larger, a chunk is one element.

    Returns
    -------
    tuple of int
        The chunk's extents, none larger than the array's.
    """
    chunk = [max(1, n) for n in shape]
    parts = [1] * len(chunk)
    while math.prod(chunk) * itemsize > most and max(chunk) > 1:
        k = chunk.index(max(chunk))  # the slowest of the longest
        parts[k] *= 2
        chunk[k] = -(-max(1, shape[k]) // parts[k])
    return tuple(chunk)
