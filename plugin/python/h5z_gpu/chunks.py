# SPDX-License-Identifier: MIT OR Apache-2.0
"""Extents of chunks that suit an array and the codecs."""
from __future__ import annotations

import math

# Least extents of a chunk's last axes, by how many axes are longer than 1: whole tiles of lorenzo, and some to spare.
_SIDES: dict[int, tuple[int, ...]] = {0: (), 1: (1,), 2: (64, 128), 3: (32, 32, 32)}


def step_of(parts: tuple[int, ...]) -> int:
    """A chunk of dask is made of whole chunks where their extent divides this; 0 where dask leaves it free."""
    return math.gcd(*parts[:-1]) if len(parts) > 1 else 0


def chunk_shape(
    shape: tuple[int, ...], item: int, size: int = 4 << 20, steps: list[int] | None = None
) -> tuple[int, ...]:
    """Extents of chunks of about `size` bytes.

    Every axis begins with a least extent. From the last to the first, each takes its whole extent, or that of dask's
    chunks, while the chunk stays below twice the size, and else as much as the size leaves. Then the chunks of an axis
    are made equal.
    """
    steps = steps or [0] * len(shape)
    if math.prod(shape) * item <= size and not any(steps):
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
