# SPDX-License-Identifier: MIT OR Apache-2.0
"""A table of bounds for many variables and files, `bounds.toml`:

    [tas]                                the name of a variable, or its path, such as ["model/tas"]
    absolute = 0.05                      one of the modes of `Lossy`, or lossless = true
    keep = "sign+range"                  what is kept beside it
    codec = "lorenzo"
    units = "K"                          the units of the bound: a variable with others is an error
    quantity = ["mean(time) 1e-4"]       limits on what is derived from it, for which `repack` searches a bound

    ["wind_*"]                           a pattern: * stands for any text, ? for one letter, [xy] for x or y
    like = "tas"                         the bound, keep and codec of another entry, where they are not said here

    ["any temperature"]                  with standard_name the header is a label
    standard_name = "air_temperature"
    absolute = 0.1

    ["*"]                                everything else
    lossless = true

Of several entries that match a variable, the first of this list counts: the one that has its name, one that has its
standard name, a pattern, ["*"]. Among those of the same place in the list it is the first in the file whose units fit.

Where in the text a mistake is, TOML parsers tell of the syntax alone. For mistakes of meaning `_places` cuts the text
into statements: from one line's start to the first line's end at which the parser takes what lies between.
"""
from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any, Callable, NamedTuple, NoReturn, Optional, Union

from . import modes
from .filters import How, Lossless, Lossy

_SELECTING = ("standard_name", "units")
_UNBOUNDED = 1e300
"""The bound of an entry that has quantities alone."""
_EXAMPLES = {"quantity": "mean(time) 1e-4", "like": "tas", "standard_name": "air_temperature", "units": "K"}
_PATTERN = re.compile(r"[*?[]")


class BoundsError(ValueError):
    """A table of bounds that has no meaning, or that does not fit a variable. Names file, line and column."""


class Entry(NamedTuple):
    """One table of the file."""

    header: str
    """Without slashes at its ends."""
    how: How
    place: str
    """File, line and column of the header."""
    units: tuple[str, ...] = ()
    """Those that a variable may have; none: any."""
    standard_name: Optional[str] = None
    quantities: tuple[str, ...] = ()
    """Each with its limit. `how` is the loosest filter then."""

    @property
    def is_name(self) -> bool:
        """Whether it is about one variable by its name."""
        return self.standard_name is None and not _PATTERN.search(self.header)

    def _rank(self, name: str, standard_name: Optional[str]) -> Optional[int]:
        """Its place among entries that match a variable, from 0 on; None: it does not match."""
        if self.standard_name is not None:
            return 1 if standard_name is not None and fnmatchcase(standard_name, self.standard_name) else None
        if self.header == name:
            return 0
        return (3 if self.header == "*" else 2) if fnmatchcase(name, self.header) else None


class Bounds:
    """A table of bounds, read from a file in TOML: what `h5z-gpu repack --bounds`, `h5z_gpu.save`,
    `h5z_gpu.xarray.to_netcdf` and `h5z_gpu.netcdf.def_filter` take for many variables.

    Parameters
    ----------
    path : str or os.PathLike
        The file. Python before 3.11 needs the package tomli to read it.

    Raises
    ------
    ValueError
        The file is no TOML, or an entry has no meaning: an unknown key or codec, two bounds, a negative one, a circle
        of `like`. The text begins with file, line and column.
    OSError
        The file cannot be read.

    Examples
    --------
    >>> bounds = h5z_gpu.Bounds("bounds.toml")
    >>> f.create_dataset("tas", data=a, chunks=(16, 64, 64), **bounds.how("tas"))
    """

    def __init__(self, path: Union[str, os.PathLike[str]]) -> None:
        self.path = os.fspath(path)
        """The file."""
        loads = _parser()
        text = self._decoded()
        try:
            self._tables: dict[str, Any] = loads(text)
        except (ValueError, RecursionError) as why:
            raise self._unparsed(why, text) from None
        if not self._tables:
            raise self._error(1, 1, "there is no entry; one begins with a line such as [tas]")
        self._places = _places(text, loads)
        for header, table in self._tables.items():
            self._check_keys(header, table)
        self.entries = [self._entry(header) for header in self._tables]
        """In the order of the file."""

    def __repr__(self) -> str:
        return f"Bounds({self.path!r})"

    def how(self, name: str, attributes: Optional[Mapping[str, Any]] = None, *,
            exact: bool = False) -> Optional[How]:
        """The filter of a variable.

        Parameters
        ----------
        name : str
            Its name, with groups in front where it lies in one.
        attributes : mapping, optional
            Its attributes, of which `standard_name` and `units` are looked at. Without them no entry matches by
            standard_name, and units are not compared.
        exact : bool
            It keeps every bit, as coordinates and flags do. Only an entry that has its name compares units then, and
            none matches by standard_name.

        Returns
        -------
        Lossy, Lossless or None
            None: the table has no entry for it.

        Raises
        ------
        ValueError
            The variable has other units than the entry says, or the entry has quantities, which need a search.
        """
        entry = self.entry(name, attributes, exact=exact)
        if entry is None:
            return None
        if entry.quantities and not exact:
            raise BoundsError(f"h5z-gpu: {entry.place}: [{entry.header}] has quantities, for which only h5z-gpu repack "
                              f"searches a bound; give {name} an entry with a bound")
        return Lossless() if exact and isinstance(entry.how, Lossy) else entry.how

    def entry(self, name: str, attributes: Optional[Mapping[str, Any]] = None, *,
              exact: bool = False) -> Optional[Entry]:
        """As `how`: the entry."""
        name, standard_name, units = name.strip("/"), None, None
        if attributes is not None:
            from .conventions import text_in, value_in  # which need NumPy

            standard_name, units = (text_in(value_in(attributes, key)) for key in _SELECTING)
        found = [(rank, attributes is not None and bool(e.units) and units not in e.units and not (exact and rank), e)
                 for e in self.entries
                 if (rank := e._rank(name, None if exact else standard_name)) is not None]
        _, wrong, best = min(found, key=lambda f: f[:2], default=(0, False, None))
        if best is not None and wrong:
            had, said = "no units" if units is None else f"units {units!r}", " or ".join(map(repr, best.units))
            raise BoundsError(f"h5z-gpu: {best.place}: {name} has {had}, and [{best.header}] is for {said}; give its "
                              f"bound in the units that it has")
        return best

    # --- reading ------------------------------------------------------------------------------------------------------

    def _decoded(self) -> str:
        with open(self.path, "rb") as f:
            data = f.read()
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError as why:
            before = data[: why.start].decode("utf-8-sig")
            raise self._error(*_end_of(before), "the text is not UTF-8: save it as UTF-8") from None

    def _error(self, line: int, column: int, why: str) -> BoundsError:
        return BoundsError(f"h5z-gpu: {self.path}:{line}:{column}: {why}")

    def _unparsed(self, why: Exception, text: str) -> BoundsError:
        said = str(why)
        place = re.search(r" \(at (?:line (\d+), column (\d+)|end of document)\)$", said)
        line, column = (int(place[1]), int(place[2])) if place and place[1] else _end_of(text)
        said = said[: place.start()] if place else said
        hint = '; a name of more than letters, digits, _ and - stands in quotes, ["a/b*"]' if "']'" in said else ""
        return self._error(line, column, f"no TOML: {said[:1].lower()}{said[1:]}{hint}")

    def _refuse(self, why: str, header: str, key: str = "") -> NoReturn:
        place = self._places.get((header, key)) or self._places[(header,)]
        raise self._error(*place, why) from None

    def _check_keys(self, header: str, table: Any) -> None:
        if not isinstance(table, dict):
            self._refuse(f"{header} stands in no entry; an entry begins with a line such as [tas]", header)
        known = (*modes.bounds(), "lossless", "keep", "codec", "quantity", "like", *_SELECTING)
        for key, value in table.items():
            if key not in known:
                quote = f'; the variable {header}.{key} is ["{header}.{key}"]' if isinstance(value, dict) else ""
                self._refuse(f"[{header}] has no key {key}; it has {', '.join(known)}{quote}", header, key)
            texts = value if key in ("units", "quantity") and isinstance(value, list) else [value]
            if key in _EXAMPLES and not all(isinstance(t, str) for t in texts):
                self._refuse(f'{key} = {value!r} is no text; write one such as "{_EXAMPLES[key]}"', header, key)
        if table.get("lossless", True) is not True:
            self._refuse("lossless is true or left out", header, "lossless")

    def _entry(self, header: str) -> Entry:
        table, said = self._tables[header], self._said(header)
        quantities = _texts(said.pop("quantity", ("", ()))[1])
        if quantities:
            said = self._searched(header, said, quantities)
        bounds = [key for key in said if key in _bounds()]
        if len(bounds) != 1:
            what = f"has two bounds, {' and '.join(bounds[:2])}; give one of them" if bounds else (
                "has no bound; give one, such as absolute = 1e-3, or lossless = true")
            self._refuse(f"[{header}] {what}", header, bounds[1] if bounds else "")
        how: How = Lossless()
        keywords = dict[str, Any]()
        for key, (where, keywords[key]) in sorted(said.items(), key=lambda item: item[0] not in bounds):
            try:
                how = _filter(**keywords)
            except (TypeError, ValueError, OverflowError) as why:
                self._refuse(f"[{header}] {str(why).removeprefix('h5z-gpu: ')}", where, key)
        place = "{}:{}:{}".format(self.path, *self._places[(header,)])
        return Entry(header.strip("/"), how, place, _texts(table.get("units", ())), table.get("standard_name"),
                     quantities)

    def _searched(self, header: str, said: dict[str, tuple[str, Any]],
                  quantities: tuple[str, ...]) -> dict[str, tuple[str, Any]]:
        """What an entry with quantities says of its loosest filter."""
        from .quantity import parse  # with NumPy

        try:
            for text in quantities:
                parse(text)
        except ValueError as why:
            self._refuse(f"[{header}] {str(why).removeprefix('h5z-gpu: ')}", header, "quantity")
        others = [key for key in said if key in _bounds() and key != "absolute"]
        if others:
            self._refuse(f"[{header}] quantity goes with an absolute bound, which is the largest then, or with none; "
                         f"leave {others[0]} out", said[others[0]][0], others[0])
        return {"absolute": (header, _UNBOUNDED)} | said

    def _said(self, header: str, way: tuple[str, ...] = ()) -> dict[str, tuple[str, Any]]:
        """What an entry says of its filter, by itself and by `like`: by key, the entry that says it and the value."""
        own, taken, way = self._tables[header], dict[str, tuple[str, Any]](), (*way, header)
        if (other := own.get("like")) is not None:
            if other in way:
                self._refuse(f"a circle: {' is like '.join((*way, other))}; give one of them a bound", header, "like")
            if other not in self._tables:
                self._refuse(f"there is no entry [{other}]; there are {', '.join(self._tables)}", header, "like")
            taken = self._said(other, way)
        if _bounds() & own.keys():
            taken = {key: value for key, value in taken.items() if key not in _bounds()}
        return taken | {key: (header, own[key]) for key in own if key not in ("like", *_SELECTING)}


def _texts(given: Any) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _filter(*, lossless: bool = False, keep: Any = None, **more: Any) -> How:
    """The filter of an entry's keys."""
    if not lossless:
        return Lossy(keep=keep, **more)
    if keep:
        raise ValueError("keeps every bit; leave keep out, or write keep = []")
    return Lossless(**more)


def _bounds() -> set[str]:
    """The keys of which an entry has one."""
    return {*modes.bounds(), "lossless"}


def quoted(text: str) -> str:
    """A text in quotes, as TOML has it."""
    import json  # some milliseconds, which the package's users seldom need

    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _parser() -> Callable[[str], dict[str, Any]]:
    loads: Callable[[str], dict[str, Any]]
    loads = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli").loads
    return loads


def _end_of(text: str) -> tuple[int, int]:
    """Line and column behind a text, from 1 on."""
    return text.count("\n") + 1, len(text) - text.rfind("\n")


def _places(text: str, loads: Callable[[str], dict[str, Any]]) -> dict[tuple[str, ...], tuple[int, int]]:
    """Line and column of each header, (header,), and of each key, (header, key)."""
    found: dict[tuple[str, ...], tuple[int, int]] = {}
    above: tuple[str, ...] = ()
    statement, begin = "", 1
    for number, line in enumerate(text.split("\n"), 1):
        statement += f"{line}\n"
        try:
            said = loads(statement)
        except ValueError:
            continue
        place = begin, len(statement) - len(statement.lstrip()) + 1
        if is_header := statement.lstrip().startswith("["):
            above = ()
        inside = [(above, said)]
        for way, table in inside:
            for key, value in table.items():
                found.setdefault((*way, key), place)
                inside += [((*way, key), value)] if isinstance(value, dict) else []
        above = tuple(said)[:1] if is_header else above
        statement, begin = "", number + 1
    return found
