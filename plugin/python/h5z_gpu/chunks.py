# SPDX-License-Identifier: MIT OR Apache-2.0
"""Extents of chunks that suit an array and the codecs."""
from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any

# Least extents of a chunk's last axes, by how many axes are longer than 1: whole tiles of lorenzo, and some to spare.
_SIDES: dict[int, tuple[int, ...]] = {0: (), 1: (1,), 2: (64, 128), 3: (32, 32, 32)}


def step_of(parts: tuple[int, ...]) -> int:
    """A chunk of dask is made of whole chunks where their extent divides this; 0 where dask leaves it free."""
    return math.gcd(*parts[:-1]) if len(parts) > 1 else 0


def chunk_shape(shape: tuple[int, ...], item: int, size: int = 4 << 20,
                steps: list[int] | None = None) -> tuple[int, ...]:
    """Extents of chunks of about `size` bytes.

    Every axis begins with a least extent. From the last to the first, each takes its whole extent, or that of dask's
    chunks, while the chunk stays below twice the size, and else as much as the size leaves. Then the chunks of an axis
    are made equal.
    """
    steps = steps or [0] * len(shape)
    if math.prod(max(1, e) for e in shape) * item <= size and not any(steps):
        return tuple(max(1, e) for e in shape)
    n = [step or max(1, e) for e, step in zip(shape, steps)]
    long = [k for k, e in enumerate(n) if e > 1][-3:]
    sides = dict(zip(long, _SIDES[len(long)]))
    c = [min(e, sides.get(k, 1)) for k, e in enumerate(n)]
    most = 2 * size // item
    for k in reversed(range(len(n))):
        others = math.prod(c) // c[k]
        c[k] = n[k] if n[k] * others <= most else max(c[k], min(n[k], size // item // others))
    for k, e in enumerate(n):
        others = math.prod(c) // c[k]
        if steps[k]:  # the divisor that is nearest to what was chosen
            divisors = [d for i in range(1, math.isqrt(e) + 1) if e % i == 0 for d in (i, e // i)]
            c[k] = min((d for d in divisors if d == 1 or d * others <= 2 * most), key=lambda d: abs(math.log(d / c[k])))
        else:
            equal = -(-e // max(1, e // c[k]))
            c[k] = equal if equal * others <= most else -(-e // -(-e // c[k]))
    return tuple(c)


# Bytes of chunks of a file that are kept when a bound is named anew.
SUITABLE = range(1 << 20, (16 << 20) + 1)
CHUNK_BYTES = 4 << 20


def variable_chunks(v: Any, item: int, kept: range, given: Mapping[Any, int], size: int,
                    unlimited: set[Hashable]) -> tuple[int, ...]:
    """Extents of the chunks of a variable of xarray: those given, those of the source if they have `kept` bytes, or
    chosen ones, of about `size` bytes.

    `item` is the bytes of a value in the file, `given` what the user wants by dimension, `unlimited` the dimensions
    that may grow. The encoding of `v`, which has NumPy or dask arrays, may have the chunks of its source.
    """
    steps = [step_of(c) for c in v.chunks] if v.chunks else [0] * v.ndim
    old = v.encoding.get("chunksizes")
    if old and v.encoding.get("original_shape") == v.shape and math.prod(old) * item in kept:
        fits = all(o <= n or d in unlimited for o, n, d in zip(old, v.shape, v.dims))
        chosen = tuple(old) if fits and all(step % o == 0 for o, step in zip(old, steps)) else None
    else:
        chosen = None
    chosen = chosen or chunk_shape(v.shape, item, size, steps)
    wanted = [max(1, int(given.get(d, c))) for d, c in zip(v.dims, chosen)]
    # An axis that is still to grow says nothing of its chunks.
    extents = tuple(c if d in unlimited and not n else min(c, max(1, n)) for d, c, n in zip(v.dims, wanted, v.shape))
    for d, c, step in zip(v.dims, extents, steps):
        if step % c:
            raise ValueError(
                f"h5z-gpu: chunks={{{d!r}: {c}}} do not divide those of dask, {step}: what is cut would be coded twice "
                "and miss the bound. Give a divisor, or rechunk the dataset"
            )
    return extents
