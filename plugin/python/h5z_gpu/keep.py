# SPDX-License-Identifier: MIT OR Apache-2.0
"""What comes back beside a bound: signs, zeros, the range of each chunk. The names are the library's (`modes.keeps`).

As a text, names with + between them; as a value, a tuple of names in the library's order.
"""
from __future__ import annotations

from collections.abc import Iterable
from typing import Union

from . import modes

Keep = Union[str, Iterable[str], None]
"""What a user gives: names with + or commas between them, or an iterable of names."""


def names(given: Keep) -> tuple[str, ...]:
    """The names, each once, in the library's order.

    TypeError for what is neither a text nor an iterable of texts, ValueError for a name that stands for nothing.
    """
    if given is None:
        return ()
    if isinstance(given, str):
        found = given.replace(",", "+").split("+") if given.strip() else []
    elif isinstance(given, (bytes, bytearray)) or not isinstance(given, Iterable):
        raise TypeError(f"h5z-gpu: keep = {given!r}; give names, such as keep='sign+range' or keep=('sign', 'range')")
    else:
        found = list(given)
    known = modes.keeps()
    for name in found:
        if not isinstance(name, str):
            raise TypeError(f"h5z-gpu: {name!r} in keep; give names, such as keep='sign' or keep=('sign', 'range')")
        if name.strip() not in known:
            raise ValueError(f"h5z-gpu: keep {name!r}; allowed are {', '.join(known)}, several with + between them")
    asked = {name.strip() for name in found}
    return tuple(name for name in known if name in asked)


def text(keep: Iterable[str]) -> str:
    """Names as one text: "sign+range"."""
    return "+".join(keep)


def bits(keep: Iterable[str]) -> int:
    """The sum of bits that words have."""
    return sum(modes.keeps()[name].bit for name in keep)


def kept(keep: Iterable[str]) -> str:
    """What is kept, in words: "signs, zeros and the range of each chunk kept"; "" for nothing."""
    found = [modes.keeps()[name].what for name in keep]
    return f"{' and '.join(filter(None, (', '.join(found[:-1]), *found[-1:])))} kept" if found else ""
