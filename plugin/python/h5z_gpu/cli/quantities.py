# SPDX-License-Identifier: MIT OR Apache-2.0
"""Derived quantities in the commands: --quantity, the bounds that `search` finds for a file, and the verdict on a copy.

`repack` and `advise` search on what the file will hold: chunks, words and fill value are those of `repack`, and chunks
are encoded again where a value crosses a limit of valid ones. The verdict reads both files through HDF5.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Optional

import numpy as np

from ..attrs import Attributes
from ..chunks import chunk_shape
from ..conventions import text_of
from ..datasets import read
from ..filters import Lossy
from ..judge import native
from ..quantity import OPERATIONS, Applied, Field, Quantity, applied, parse, usable
from ..quantity_judges import Block, Outcome, judge
from ..search import Found, Variable, connected, search
from .common import Problem, open_file, say
from .promise import Asked, as_asked, as_filter
from .sources import Source, of_dataset

if TYPE_CHECKING:
    import h5py


def add_quantities(parser: argparse.ArgumentParser, what: str) -> None:
    """Adds --quantity, which may be repeated."""
    parser.add_argument("--quantity", action="append", default=[], metavar="'OPERATION(NAME, ...) LIMIT'",
                        help=f"{what}, such as 'mean(tas, time) 1e-4', 'gradient(tas, x) 0.01' or 'hypot(u, v) 0.1'; "
                             f"operations are {', '.join(OPERATIONS)}; may be repeated")


@contextlib.contextmanager
def _sentences() -> Iterator[None]:
    """Within the block a ValueError of the package is a Problem."""
    try:
        yield
    except ValueError as why:
        raise Problem(str(why).removeprefix("h5z-gpu: ")) from None


def quantities_from(args: argparse.Namespace) -> list[Quantity]:
    """The quantities of --quantity."""
    with _sentences():
        return [parse(text) for text in args.quantity]


# --- the search -------------------------------------------------------------------------------------------------------


def bounds_for(file: h5py.File, asked: Sequence[Quantity], named: Mapping[str, Asked], bound: Optional[Asked] = None,
               keep: tuple[str, ...] = (), codec: str = "auto") -> tuple[dict[str, Asked], list[Found]]:
    """The loosest bounds of the variables that quantities name.

    Of `named`, an absolute bound is the largest that is tried, and of a variable that is lossless there is no quantity;
    likewise `bound`, that of all variables. `keep` and `codec` are those of all bounds. Returns `named` with the bounds
    that were found, and with weights as lossless; and the searches.
    """
    datasets, others = _candidates(file, {name.strip("/") for q in asked for name in q.names})
    weights = {q.weights.strip("/") for q in asked if isinstance(q.weights, str)}
    for name in datasets.keys() & (weights | named.keys()):
        given = named.get(name, Asked("lossless"))
        if given.mode != "absolute":
            others[name] = "keeps every bit" if given.mode == "lossless" else f"has a bound that is {given.mode}"
            del datasets[name]
    if wrong := [name for name in weights if named.get(name, Asked("lossless")).mode != "lossless"]:
        raise Problem(f"{wrong[0]} are weights, which stay exact: leave its bound out")
    variables = {}
    for name, dataset in datasets.items():
        most = named.get(name) or (bound if bound is not None and bound.mode == "absolute" else None)
        how = Asked("absolute", 1e300, keep) if most is None else most
        variables[name] = _variable(dataset, how if name in named else how._replace(keep=keep), codec)
    with _sentences():
        fields = {name: v.field for name, v in variables.items()}
        every = [a for q in asked for a in applied(q, fields, others, _weights(file))]
    found = search(variables, every)
    result = {**named, **{name: Asked("lossless") for name in weights if others.get(name) == "keeps every bit"}}
    for name, h in ((name, h) for each in found for name, h in each.hows.items()):
        result[name] = as_asked(h)
    return result, found


def _candidates(file: h5py.File, asked: set[str]) -> tuple[dict[str, Any], dict[str, str]]:
    """The datasets that may get a bound, or may where the user has asked for it, and of the others why not."""
    from ..ranges import is_of_numpy
    from .packed import packing
    from .roles import Roles, forbids_loss, lossy_already, protected

    roles, found, others = Roles(file), {}, {}
    for dataset in roles.datasets:
        name, why = dataset.name.strip("/"), roles.why_exact(dataset)
        why = None if why is not None and name in asked and not forbids_loss(why) else why
        if packing(dataset) is not None:
            why = "is packed in integers; h5z-gpu repack --unpack makes floating-point numbers of it first"
        elif why is None and dataset.is_virtual:
            why = "is a virtual dataset"
        elif why is None and (lost := lossy_already(dataset)) is not None:
            why = f"is lossy already, by {lost}; give the file that it was made from"
        elif why is None and not is_of_numpy(dataset):
            why = "is of a type that NumPy has not"
        elif why is None and (against := protected(dataset, by_range=False)[1]):
            why = f"cannot be lossy: {against}"
        if why is None:
            found[name] = dataset
        else:
            others[name] = why
    return found, others


def _variable(dataset: h5py.Dataset, most: Asked, codec: str) -> Variable:
    """A dataset as `repack` would store it."""
    from .roles import chunk_of, protected, why_unread
    from .valid import ranges_of

    def rows(a: int, b: int) -> np.ndarray:
        try:
            return native(read(dataset, selection=slice(a, b)))
        except (OSError, RuntimeError) as why:
            raise Problem(why_unread(dataset, why)) from None

    fill, _ = protected(dataset, by_range=False)
    there = Attributes(dataset)
    with _sentences():
        how = as_filter(most, codec=codec if most.codec == "auto" else most.codec)
    assert isinstance(how, Lossy)
    field = Field(dataset.shape, tuple(of_dataset(dataset).axes()), fill)
    return Variable(field, native(np.zeros(1, dataset.dtype)).dtype, chunk_of(dataset), rows, how,
                    text_of(dataset, "units") or "", lambda h: ranges_of(there, dataset.dtype, h, fill))


def _weights(file: h5py.File) -> Any:
    """What gives the values of weights, of which missing ones are 0, and their dimensions."""
    from .objects import one_dataset
    from .roles import protected

    def values(name: str) -> tuple[np.ndarray, tuple[str, ...]]:
        source = of_dataset(one_dataset(file, name))
        found = native(source.read(tuple(slice(0, n) for n in source.shape or ())))
        if found.dtype.kind == "f":
            found = np.where(usable(found, protected(source.dataset, by_range=False)[0]), found, 0)
        dims = tuple(source.axes())
        # Axes without names are the same in no other variable.
        return found, () if any(name == f"axis {k}" for k, name in enumerate(dims)) else dims

    return values


# --- the verdict ------------------------------------------------------------------------------------------------------


def judged(asked: Sequence[Quantity], pairs: Iterable[tuple[Source, Source]]) -> list[Outcome]:
    """What became of quantities in a copy, whose datasets stand behind those of the original."""
    from .roles import Roles, protected

    fields, others = dict[str, Field](), dict[str, str]()
    found = dict[str, tuple[Source, Source]]()
    roles: Optional[Roles] = None
    weights = None
    for a, b in pairs:
        why, fill = None, None
        if a.dataset is not None and roles is None:
            roles, weights = Roles(a.dataset.file), _weights(a.dataset.file)
        if a.name in {q.weights for q in asked if isinstance(q.weights, str)}:
            why = "are weights"
        elif a.dtype.kind != "f" or not a.shape or not math.prod(a.shape):
            why = "holds no floating-point numbers on axes"
        elif a.shape != b.shape or a.dtype.newbyteorder("=") != b.dtype.newbyteorder("="):
            why = "has another type or other extents in the copy"
        elif a.dataset is not None and roles is not None:
            why = "is a coordinate" if roles.why_exact(a.dataset) == "is a coordinate" else None
            fill, _ = protected(a.dataset, by_range=False)
        if why is None:
            fields[a.name], found[a.name] = Field(a.shape or (), tuple(a.axes()), fill), (a, b)
        else:
            others[a.name] = why
    with _sentences():
        every = [x for q in asked for x in applied(q, fields, others, weights)]
    outcomes = dict[int, Outcome]()
    for names, some in connected(every):
        blocks = functools.partial(_blocks, {name: found[name] for name in names})
        outcomes.update((id(o.of), o) for o in judge(some, fields, blocks))
    return [outcomes[id(a)] for a in every]


def _blocks(pairs: Mapping[str, tuple[Source, Source]]) -> Iterator[Block]:
    """The values of pairs of one extent on axis 0, by rows of whole chunks."""
    shapes = [(b.shape or (), b.chunks or chunk_shape(b.shape or (), b.dtype.itemsize)) for _, b in pairs.values()]
    rows, n = math.lcm(*(chunk[0] for _, chunk in shapes)), shapes[0][0][0]
    for k in range(0, n, rows):
        block = {}
        for name, (a, b) in pairs.items():
            box = (slice(k, min(k + rows, n)), *(slice(0, m) for m in (a.shape or ())[1:]))
            block[name] = (native(a.read(box)), native(b.read(box)))
        yield k, block


def refuse_broken(original: str, path: str, asked: Sequence[Quantity], found: Sequence[Found]) -> list[Outcome]:
    """Judges quantities on a new file. Problem where one is broken."""
    names = sorted({name for each in found for name in each.hows})
    with open_file(original, rdcc_nbytes=0) as old, open_file(path, rdcc_nbytes=0) as new:
        outcomes = judged(asked, [(of_dataset(old[name]), of_dataset(new[name])) for name in names])
    if wrong := next((o for o in outcomes if not o.held), None):
        bounds = {n: h.bound / 2 for each in found for n, h in each.hows.items() if n in wrong.of.variables}
        raise Problem(f"the new file was thrown away: {title(wrong.of)}: {verdict(wrong)}; give a smaller bound, such "
                      f"as {_typed(bounds)}")
    return outcomes


# --- words ------------------------------------------------------------------------------------------------------------


def title(of: Applied) -> str:
    """A quantity with its variables."""
    named = of.quantity.names[: len(of.variables)] == of.variables
    return str(of.quantity) + ("" if named else f" of {', '.join(of.variables)}")


def verdict(o: Outcome) -> str:
    """One line on a quantity."""
    if not o.outputs:
        return "held: of each output a value is missing"
    along = f" along axis {o.axes[0]}" if o.axes != o.of.axes and len(o.axes) == 1 else ""
    at = f" at [{', '.join(map(str, o.index))}]{along}" if o.index else ""
    text = f"largest error {o.error:.6g}, {o.share:.4f} of the limit{at}: {o.original:.9g} became {o.became:.9g}"
    return f"held; {text}" if o.held else f"BROKEN at {o.broken} of {o.outputs} outputs; {text}"


def show_found(found: Sequence[Found]) -> None:
    """Prints what searches found."""
    for each in found:
        for k, of in enumerate(each.quantities):
            by = of.quantity.kind.theorem
            holds = f", so it holds with {_typed(each.theorem[k])}" if each.theorem else ""
            say(title(of), f"    theorem: moves by {by} at most{holds}", f"    found: {_found(each)}",
                *(f"    {verdict(o)}" for o in each.outcomes[k : k + 1]))


def _typed(bounds: Mapping[str, float]) -> str:
    return " ".join(f"{name}=absolute:{b:.4g}" for name, b in bounds.items())


def _found(each: Found) -> str:
    """Bounds as they are typed, and how they compare with the theorems'."""
    bounds = {name: how.bound for name, how in each.hows.items() if isinstance(how, Lossy)}
    exact = [f"{name}=lossless" for name, how in each.hows.items() if not isinstance(how, Lossy)]
    least = min((b / min(t[n] for t in each.theorem if n in t) for n, b in bounds.items()), default=0.0)
    slack = f", {least:.3g} times the theorem's" if bounds else f", as {each.why}"
    trials = f" ({each.codings} codings)" if each.codings else ""
    return f"{' '.join(filter(None, (_typed(bounds), *exact)))}{slack}{trials}"


def as_json(o: Outcome) -> dict[str, Any]:
    """A verdict, as JSON can hold it."""
    return {"quantity": str(o.of.quantity), "variables": o.of.variables, "limit": o.of.quantity.limit, "held": o.held,
            "outputs": o.outputs, "broken": o.broken, "largest_error": o.error, "share": o.share, "axes": o.axes,
            "index": o.index, "original": o.original, "became": o.became}


def found_as_json(each: Found) -> dict[str, Any]:
    """A search, as JSON can hold it."""
    bounds = {name: how.bound if isinstance(how, Lossy) else None for name, how in each.hows.items()}
    theorems = [{"quantity": title(of), "bounds": theorem} for of, theorem in zip(each.quantities, each.theorem)]
    return {"bounds": bounds, "codings": each.codings, "why_lossless": each.why or None, "theorems": theorems,
            "quantities": [as_json(o) for o in each.outcomes]}
