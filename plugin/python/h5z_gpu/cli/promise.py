# SPDX-License-Identifier: MIT OR Apache-2.0
"""What is promised about the values of a dataset: by the filter's words in the file, or by the user."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

import numpy as np

from .. import keep as keeping, modes
from ..filters import Lossless, Lossy, words_of
from ..judge import Promise, bits_of
from ..stored_words import is_list, meaning
from .common import Problem

if TYPE_CHECKING:
    import h5py


class Asked(NamedTuple):
    """A bound that the user names."""

    mode: str
    """The keyword of one of modes.bounds(), or "lossless"."""
    bound: float = 0.0
    keep: tuple[str, ...] = ()
    """Names of what is kept beside it."""
    codec: str = "auto"
    """Of a table of bounds; "auto" leaves it to --codec."""


def of_user(asked: Asked, fill: Optional[int] = None) -> Promise:
    """What the user names, of data without words."""
    return Promise(asked.mode, asked.bound, fill, True, asked.keep)


def promise_of(dataset: h5py.Dataset, given: Optional[Asked] = None) -> Promise:
    """What holds for a compressed dataset, in the words that lie beside it; or `given`.

    Bits may be lost only where the filter's list of words is complete and says so, of floats of 2, 4 and 8 bytes. Every
    other dataset has to keep its bits. Problem where the words are damaged, and no bound is given.
    """
    if dataset.dtype.kind != "f" or dataset.dtype.itemsize not in (2, 4, 8):
        return Promise("lossless")
    words = words_of(dataset)
    said = None
    if words is not None and is_list(words):
        try:
            said = meaning(words)
        except ValueError as why:
            if given is None:
                raise Problem(f"{dataset.name}: the filter's words cannot be read ({why}); name the bound, such as "
                              f"--absolute 1e-3") from None
    stored = said.stored if said is not None else None
    fill = None
    if said is not None and said.bound is not None and stored is not None and stored.fill_value is not None:
        fill = stored.fill_bits
    if fill is None and fill_is_defined(dataset):
        fill = bits_of(np.array(dataset.fillvalue, dataset.dtype))
    if given is not None:
        return of_user(given, fill)
    if said is None or stored is None or said.bound is None or not stored.may_lose:
        return Promise("lossless")
    return Promise(modes.named(said.mode).keyword, said.bound, fill, keep=said.keep)


def fill_is_defined(dataset: h5py.Dataset) -> bool:
    """Whether a fill value was declared, rather than HDF5's default zero."""
    import h5py

    return bool(dataset.id.get_create_plist().fill_value_defined() == h5py.h5d.FILL_VALUE_USER_DEFINED)


# --- bounds that the user types --------------------------------------------------------------------------------------


def add_bounds(parser: argparse.ArgumentParser, what: str) -> None:
    """Adds an option for each mode's bound, such as --absolute, of which a command takes at most one; and --keep."""
    group = parser.add_mutually_exclusive_group()
    for mode in modes.bounds().values():
        group.add_argument(f"--{mode.keyword.replace('_', '-')}", metavar="NUMBER", help=f"{what}: {mode.meaning}")
    add_keep(parser, "beside that bound, absolute, relative or a PSNR")


def add_keep(parser: argparse.ArgumentParser, beside: str) -> None:
    """Adds --keep."""
    said = "; ".join(f"{name}: {each.meaning}" for name, each in modes.keeps().items())
    parser.add_argument("--keep", metavar=",".join(modes.keeps()), help=f"what comes back {beside}: {said}")


def mixed(parser: argparse.ArgumentParser) -> None:
    """Lets bounds of variables stand behind options too: argparse alone takes arguments in one row."""
    plain = parser.parse_known_args

    def parse(args: Any = None, namespace: Any = None) -> Any:
        parser.parse_known_args = plain  # type: ignore[method-assign]
        try:
            return parser.parse_known_intermixed_args(args, namespace)
        finally:
            parser.parse_known_args = parse  # type: ignore[method-assign]

    parser.parse_known_args = parse  # type: ignore[method-assign]


def bound_from(args: argparse.Namespace) -> Optional[Asked]:
    """The bound of `add_bounds`, or None."""
    for mode in modes.bounds():
        text = getattr(args, mode)
        if text is not None:
            return checked(mode, text, f"--{mode.replace('_', '-')}", keep_from(args))
    return None


def keep_from(args: argparse.Namespace) -> tuple[str, ...]:
    """The names of --keep."""
    return () if args.keep is None else _names(args.keep, f"--keep {args.keep}")


def _names(text: str, where: str) -> tuple[str, ...]:
    try:
        found = keeping.names(text)
    except ValueError as why:
        raise Problem(f"{where}: {str(why).removeprefix('h5z-gpu: ')}") from None
    if not found:
        raise Problem(f"{where}: nothing is named; write one or several of {', '.join(modes.keeps())}")
    return found


def named_bounds(texts: Iterable[str]) -> dict[str, Asked]:
    """`VAR=absolute:1e-3:sign+zero` as {"VAR": Asked("absolute", 0.001, ("sign", "zero"))}; `VAR=lossless` too."""
    found = {}
    for text in texts:
        name, equal, bound = text.rpartition("=")
        mode, colon, number = bound.partition(":")
        number, beside, kept = number.partition(":")
        mode = mode.replace("-", "_")
        is_bound = mode in modes.bounds() if colon else mode == "lossless"
        if not equal or not name or not is_bound:
            raise Problem(f"{text!r} names no bound; write VAR=MODE:BOUND, such as tas=absolute:1e-3, with one of "
                          f"{', '.join(modes.bounds())}; VAR=MODE:BOUND:KEEP, such as tas=absolute:1e-3:sign; or "
                          f"VAR=lossless")
        keep = _names(kept, text) if beside else ()
        found[name.strip("/")] = Asked("lossless") if mode == "lossless" else checked(mode, number, text, keep)
    return found


def checked(mode: str, text: str, where: str, keep: tuple[str, ...] = ()) -> Asked:
    """A bound that its mode allows, or Problem."""
    try:
        value = float(text)
        Lossy(**{mode: value, "keep": keep})  # type: ignore[arg-type]
    except ValueError as why:
        is_text = str(why).startswith("could not convert")
        reason = "that is no number" if is_text else str(why).removeprefix("h5z-gpu: ")
        where = where if where.endswith(text) or (keep and text in where) else f"{where} {text}"
        better = "" if reason.startswith("keep") else f"; write one such as {modes.named(mode).example}"
        raise Problem(f"{where}: {reason}{better}") from None
    if not math.isfinite(value):
        raise Problem(f"{where} {text}: a finite number is needed")
    return Asked(mode, value, keep)


def as_filter(asked: Asked, **more: Any) -> Lossy | Lossless:
    """The filter of a bound."""
    if asked.mode == "lossless":
        return Lossless(asked.codec)
    keywords: dict[str, Any] = {asked.mode: asked.bound, "keep": asked.keep, "codec": asked.codec, **more}
    return Lossy(**keywords)


def as_asked(how: Lossy | Lossless) -> Asked:
    """The inverse of `as_filter`."""
    return Asked("lossless", codec=how.codec) if isinstance(how, Lossless) else Asked(
        how.mode.keyword, how.bound, how.keep, how.codec)
