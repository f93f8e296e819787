# SPDX-License-Identifier: MIT OR Apache-2.0
"""Quantities derived from data, such as a gradient or a mean, and the verdict on how far a copy moves them.

A quantity is an operation, the variables it is computed from, and a limit. With the original x and the copy y it holds
where |Q(y) - Q(x)| <= limit at every output:

    gradient(tas, x) 0.01        mean(tas, time) 1e-4        hypot(u, v) 0.1        mean(tas, lat, weights=area) 1e-4

`parse` reads such a text, `applied` finds its variables and axes, `quantity_judges.judge` compares. Theorems
(OPERATIONS) say how far Q moves at most when no value moves by more than b.

Values that are NaN, infinite or the fill value in the original come back bit for bit. Reductions leave them out, of x
and y alike; of other operations an output that needs one is left out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Optional, Union

import numpy as np

Weights = Callable[[str], tuple[np.ndarray, tuple[str, ...]]]

LARGEST_LIMIT = 1e280
"""Products with it do not overflow."""
_NUMBER = re.compile(r"[+-]?\d+")


class Operation(NamedTuple):
    """What a name stands for."""

    variables: tuple[int, int]
    """Fewest and most."""
    theorem: str
    """Largest change where no value moves by more than b."""
    factor: Callable[[int, int], float]
    """The same as a factor of the root of the sum of squares of the variables' b, for a number of axes and of values
    along all of them."""
    by_axis: bool = False
    """Whether each axis has outputs of its own."""
    extent: int = 1
    """Values that it needs along an axis; 0 for an operation that has no axes."""


OPERATIONS = {
    "difference": Operation((1, 1), "2 b", lambda axes, n: 2, True, 2),
    "gradient": Operation((1, 1), "2 b at the edges, b inside", lambda axes, n: 2, True, 2),
    "laplacian": Operation((1, 1), "4 b for each axis", lambda axes, n: 4 * axes, extent=3),
    "mean": Operation((1, 1), "b", lambda axes, n: 1),
    "sum": Operation((1, 1), "n b", lambda axes, n: n),
    "std": Operation((1, 1), "b", lambda axes, n: 1),
    "min": Operation((1, 1), "b", lambda axes, n: 1),
    "max": Operation((1, 1), "b", lambda axes, n: 1),
    "hypot": Operation((2, 3), "the root of the sum of their b squared", lambda axes, n: 1, extent=0),
}


@dataclass(frozen=True)
class Quantity:
    """A limit on how far a derived quantity may move.

    Parameters
    ----------
    operation : str or callable
        One of OPERATIONS. Or a function of arrays, in the order of `names`, that gives an array: it is compared as it
        comes, with its rounding, and outputs that are not finite for the original are left out.
    limit : float
        Largest difference, in the units of the quantity; from 0 on.
    names : sequence of str
        Variables, then dimensions or numbers of axes.
    weights : str or numpy.ndarray, optional
        Of a mean: a variable that stays exact, or its values.

    Raises
    ------
    ValueError
        For an operation that is not known, and for a limit that is negative or not finite.
    """

    operation: Union[str, Callable[..., Any]]
    limit: float
    names: tuple[str, ...] = ()
    weights: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(map(str, self.names)))
        if not callable(self.operation) and self.operation not in OPERATIONS:
            raise ValueError(f"h5z-gpu: {self.operation!r} is no quantity; there are {', '.join(OPERATIONS)}")
        if not 0 <= self.limit <= LARGEST_LIMIT:
            raise ValueError(f"h5z-gpu: {self}: the limit is {self.limit:g}; give a number from 0 to {LARGEST_LIMIT:g}")
        if self.weights is not None and self.operation != "mean":
            raise ValueError(f"h5z-gpu: {self}: only a mean takes weights")

    @property
    def kind(self) -> Operation:
        """The operation's row of the table; a function has no theorem."""
        if isinstance(self.operation, str):
            return OPERATIONS[self.operation]
        return Operation((1, 1 << 30), "", lambda axes, n: math.nan, extent=0)

    def __str__(self) -> str:
        name = self.operation if isinstance(self.operation, str) else getattr(self.operation, "__name__", "function")
        given = self.weights if isinstance(self.weights, str) else "..."
        weights = [] if self.weights is None else [f"weights={given}"]
        return f"{name}({', '.join([*self.names, *weights])}) {self.limit!r}"


def parse(text: str) -> Quantity:
    """`mean(tas, lat, lon, weights=area) 1e-4` as a Quantity. Raises ValueError for what is none."""
    found = re.fullmatch(r"\s*(\w+)\s*\((.*)\)\s*(\S*)\s*", text)
    if found is None:
        raise ValueError(f"h5z-gpu: {text!r} is no quantity; write OPERATION(NAME, ...) LIMIT, such as "
                         f"'mean(tas, time) 1e-4', with one of {', '.join(OPERATIONS)}")
    operation, inside, number = found.groups()
    given = [name.strip() for name in inside.split(",")] if inside.strip() else []
    weights = [name.partition("=")[2].strip() for name in given if name.replace(" ", "").startswith("weights=")]
    names = [name for name in given if not name.replace(" ", "").startswith("weights=")]
    if not number:
        raise ValueError(f"h5z-gpu: {text!r} has no limit; write it behind, such as '{text.strip()} 1e-4'")
    if not all(names) or len(weights) > 1 or not all(weights):
        raise ValueError(f"h5z-gpu: {text!r} has an empty name; write names with commas between them")
    try:
        limit = float(number)
    except ValueError:
        raise ValueError(f"h5z-gpu: {text!r}: the limit {number!r} is no number; write one such as 1e-4") from None
    return Quantity(operation, limit, tuple(names), *weights)


# --- variables and axes -----------------------------------------------------------------------------------------------


class Field(NamedTuple):
    """What a variable is, without its values."""

    shape: tuple[int, ...]
    dims: tuple[str, ...] = ()
    """Names of its dimensions, as many as axes, or none."""
    fill: Optional[np.ndarray] = None
    """A value of its type that comes back bit for bit."""


@dataclass(frozen=True)
class Applied:
    """A quantity of variables of one shape, along axes."""

    quantity: Quantity
    variables: tuple[str, ...]
    shape: tuple[int, ...]
    axes: tuple[int, ...]
    weights: Optional[np.ndarray] = None
    """float64, of as many axes as the variable, of its extents or of extent 1."""

    def most(self, bounds: Sequence[float]) -> float:
        """The theorem: how far the quantity moves at most when variables move within bounds; NaN where there is none.
        """
        n = math.prod(self.shape[k] for k in self.axes)
        return self.quantity.kind.factor(len(self.axes), n) * math.hypot(*bounds)


def applied(quantity: Quantity, fields: Mapping[str, Field], others: Optional[Mapping[str, str]] = None,
            weights: Optional[Weights] = None) -> list[Applied]:
    """A quantity of the variables that it names; without a name, of each of `fields` that has its dimensions.

    Its names are variables, then dimensions or numbers of axes. `others` says why it is not of other variables: "holds
    integers". `weights` gives the values of a variable that a mean names as weights, and its dimensions. ValueError for
    a name that is neither a variable nor a dimension, and for variables or axes that the operation does not take.
    """
    def refuse(text: str) -> ValueError:
        return ValueError(f"h5z-gpu: {quantity}: {text}")

    kind, names, chosen = quantity.kind, [name.strip("/") for name in quantity.names], list[str]()
    dims = {d: None for f in fields.values() for d in f.dims}
    while names and names[0] in fields:
        chosen.append(names.pop(0))
    for name in names:
        if name in (others or {}) and name not in dims:
            raise refuse(f"{name} {(others or {})[name]}")
        if name not in dims and not _NUMBER.fullmatch(name):
            raise refuse(f"{name} is neither a variable nor a dimension; variables are {_listed(fields)}, dimensions "
                         f"{_listed(dims)}")
    chosen = chosen or list(fields) * callable(quantity.operation)
    least, most = kind.variables
    if not (least <= max(1, len(chosen)) <= most) or (names and not kind.extent):
        raise refuse(f"it takes {least if least == most else f'{least} to {most}'} "
                     f"{'variable' if most == 1 else 'variables'}"
                     f"{'' if kind.extent else ' and no dimension'}")
    having = [v for v, f in fields.items() if all(_axis(name, f) is not None for name in names)]
    if not chosen and not having:
        raise refuse(f"no variable has {' and '.join(names) or 'a bound'}; variables are {_listed(fields)}")
    return [_along(quantity, names, each, fields, refuse, weights) for each in ([chosen] if chosen else zip(having))]


def _along(quantity: Quantity, names: list[str], variables: Sequence[str], fields: Mapping[str, Field],
           refuse: Callable[[str], ValueError], fetch: Optional[Weights]) -> Applied:
    """A quantity of these variables along the axes that names stand for."""
    field = fields[variables[0]]
    for name in variables:
        if fields[name].shape != field.shape:
            raise refuse(f"{name} has the shape {fields[name].shape}, {variables[0]} {field.shape}; give variables of "
                         "one shape")
    found = {name: _axis(name, field) for name in names}
    if missing := [name for name, axis in found.items() if axis is None]:
        raise refuse(f"{variables[0]} has no dimension {missing[0]}; its dimensions are "
                     f"{_listed(field.dims or range(len(field.shape)))}")
    axes = tuple(sorted({k for k in found.values() if k is not None}))
    if len(axes) < len(names):
        raise refuse("a dimension is named twice")
    axes = (axes or tuple(range(len(field.shape)))) if quantity.kind.extent else ()
    for axis in axes:
        if field.shape[axis] < quantity.kind.extent:
            raise refuse(f"axis {axis} of {variables[0]} has {field.shape[axis]} values; the operation needs "
                         f"{quantity.kind.extent}")
    return Applied(quantity, tuple(variables), field.shape, axes,
                   _weights(quantity, field, axes, refuse, fetch))


def _axis(name: str, field: Field) -> Optional[int]:
    """The axis that a name or a number stands for; None where the variable has none such."""
    if name in field.dims:
        return field.dims.index(name)
    n = len(field.shape)
    return int(name) % n if _NUMBER.fullmatch(name) and -n <= int(name) < n else None


def _weights(quantity: Quantity, field: Field, axes: tuple[int, ...], refuse: Callable[[str], ValueError],
             fetch: Optional[Weights]) -> Optional[np.ndarray]:
    """The weights of a mean on the axes of its variable: by names of dimensions, else on those that it is along, or on
    the last ones."""
    if quantity.weights is None:
        return None
    named = fetch is not None and isinstance(quantity.weights, str)
    given, dims = fetch(quantity.weights) if named and fetch else (quantity.weights, ())
    found = np.asarray(given)
    if found.dtype.kind != "f" or found.dtype.itemsize > 8 or not np.isfinite(found).all() or (found < 0).any():
        raise refuse("weights are floating-point numbers from 0 on, all finite")
    if dims and set(dims) <= set(field.dims):
        found = found.transpose(sorted(range(len(dims)), key=lambda k: field.dims.index(dims[k])))
        found = found.reshape([n if d in dims else 1 for d, n in zip(field.dims, field.shape)])
    elif found.shape == tuple(field.shape[k] for k in axes):
        found = found.reshape([n if k in axes else 1 for k, n in enumerate(field.shape)])
    found = found.reshape((1,) * (len(field.shape) - found.ndim) + found.shape)
    if len(found.shape) > len(field.shape) or any(m not in (1, n) for m, n in zip(found.shape, field.shape)):
        raise refuse(f"weights of the shape {np.shape(given)} do not fit values of the shape {field.shape}")
    return found.astype(np.float64)


def _listed(names: Iterable[Any]) -> str:
    every = [str(name) for name in names]
    return (", ".join(every[:8]) or "none") + (" ..." if len(every) > 8 else "")


def usable(values: np.ndarray, fill: Optional[np.ndarray]) -> np.ndarray:
    """Where values are finite and do not have the bits of the fill value."""
    use: np.ndarray = np.isfinite(values)
    if fill is not None:
        word = f"u{values.dtype.itemsize}"
        use &= values.view(word) != np.asarray(fill, values.dtype).reshape(1).view(word)[0]
    return use
