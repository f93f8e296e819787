# SPDX-License-Identifier: MIT OR Apache-2.0
"""Derived quantities are judged as fractions would: on random arrays, with limits that are an output's error exactly,
the double beside it, and decimals. And what is no quantity is refused by a sentence."""
import math
import re
from decimal import Decimal, getcontext
from fractions import Fraction

import numpy as np
import pytest
from conftest import LONG
from h5z_gpu.quantity import OPERATIONS, Field, Quantity, applied, parse
from h5z_gpu.quantity_judges import judge

ROUNDS = 40 if LONG else 8


def fractions(a):
    return np.vectorize(lambda v: Fraction(float(v)) if np.isfinite(v) else Fraction(0), otypes=[object])(a)


def along(v, axis):
    return np.moveaxis(v, axis, 0)


def outputs(operation, v, use, axes, w=None):
    """Q of an array of fractions, and where it is used, for each set of outputs: by NumPy's formulas."""
    if operation in ("difference", "gradient"):
        for k in axes:
            a, u = along(v, k), along(use, k)
            if operation == "difference":
                q, good = a[1:] - a[:-1], u[1:] & u[:-1]
            else:
                q = np.concatenate([[a[1] - a[0]], (a[2:] - a[:-2]) / 2, [a[-1] - a[-2]]])
                good = np.concatenate([[u[1] & u[0]], u[2:] & u[:-2], [u[-1] & u[-2]]])
            yield np.moveaxis(q, 0, k), np.moveaxis(good, 0, k)
    elif operation == "laplacian":
        q, good = None, None
        for k in axes:
            a, u = along(v, k), along(use, k)
            d = np.moveaxis(a[2:] - 2 * a[1:-1] + a[:-2], 0, k)
            g = np.moveaxis(u[2:] & u[1:-1] & u[:-2], 0, k)
            others = tuple(slice(1, -1) if j in axes and j != k else slice(None) for j in range(v.ndim))
            q, good = (d[others], g[others]) if q is None else (q + d[others], good & g[others])
        yield q, good
    else:
        n, weight = use.sum(axes), np.where(use, Fraction(1) if w is None else w, Fraction(0))
        whole = weight.sum(axes)
        total = (np.where(use, v, Fraction(0)) * weight).sum(axes)
        if operation == "sum":
            yield np.asarray(total, object), np.asarray(n > 0)
        elif operation == "mean":
            good = np.asarray((n > 0) & np.asarray(whole > 0, bool))
            yield np.asarray(total / np.where(good, np.asarray(whole, object), Fraction(1)), object), good
        else:
            none = Fraction(10) ** 400 * (1 if operation == "min" else -1)
            yield np.asarray(getattr(np.where(use, v, none), operation)(axes), object), np.asarray(n > 0)


def field(rng, kind, shape, far):
    """Values over 2 `far` decades and a copy of them; without `far` values of which two doubles hold no sum."""
    if not far:
        return tuple(rng.choice([0, 1, -1, 2.0**100, -(2.0**100), 2.0**-70, -(2.0**-70)], shape).astype(kind)
                     for _ in range(2))
    x = rng.normal(size=shape) * (10.0 ** rng.integers(-far, far + 1, shape))
    y = x + rng.normal(size=shape) * (10.0 ** rng.integers(-far - 3, far - 1, shape))
    x, y = x.astype(kind), y.astype(kind)
    special = rng.random(shape) < rng.choice([0, 0.1, 0.9])
    x[special] = rng.choice([np.nan, np.inf, -np.inf, 7.5], int(special.sum()))
    y[special] = x[special]
    return x, y


def cut(rng, pairs):
    """All rows in blocks of random extents."""
    at, end = 0, len(next(iter(pairs.values()))[0])
    while at < end:
        n = int(rng.integers(1, end - at + 1))
        yield at, {name: (x[at : at + n], y[at : at + n]) for name, (x, y) in pairs.items()}
        at += n


@pytest.mark.parametrize("kind", ["f2", "f4", "f8"])
@pytest.mark.parametrize("operation", [name for name in OPERATIONS if name not in ("std", "hypot")])
def test_the_verdict_is_that_of_fractions(operation, kind):
    rng = np.random.default_rng([ord(kind[1]), *map(ord, operation)])
    for turn in range(ROUNDS):
        shape = tuple(rng.integers(3, 7, rng.integers(1, 4)).tolist())
        x, y = field(rng, kind, shape, 1 if kind == "f2" else [0, 3, 30, 0, 1, 12][turn % 6])
        fill = np.asarray(7.5, kind)
        use = np.isfinite(x) & (x != fill)
        axes = tuple(sorted(rng.choice(len(shape), rng.integers(1, len(shape) + 1), replace=False).tolist()))
        weights = None
        if operation == "mean" and turn % 2:
            weights = (rng.random(shape) * 10.0 ** rng.integers(-9, 9, shape) * (rng.random(shape) > 0.2)).astype("f4")
            weights = rng.choice([0, 2, 4], shape).astype("f4") if turn % 6 == 3 else weights
        w = None if weights is None else fractions(weights)
        was = list(outputs(operation, fractions(x), use, axes, w))
        became = list(outputs(operation, fractions(y), use, axes, w))
        errors = [abs(b - a) for (qa, good), (qb, _) in zip(was, became)
                  for a, b in zip(qa.reshape(-1)[good.reshape(-1)], qb.reshape(-1)[good.reshape(-1)])]
        nearest = [float(e) for e in rng.choice(np.array([*errors, Fraction(0)], object), min(6, len(errors) + 1))]
        limits = {0.0, 0.1, *nearest, *(math.nextafter(e, t) for e in nearest for t in (0, math.inf))}
        for limit in limits:
            quantity = Quantity(operation, limit, ("v", *map(str, axes)), weights)
            of = applied(quantity, {"v": (at := Field(shape, (), fill))})
            (found,) = judge(of, {"v": at}, lambda: cut(rng, {"v": (x, y)}))
            assert (found.outputs, found.broken) == (len(errors), sum(e > Fraction(limit) for e in errors)), (
                quantity, shape, turn, found)
            if errors:
                assert found.error == pytest.approx(float(max(errors)), rel=1e-12)
                scale = float(max(map(abs, (fractions(x).max(), fractions(x).min())))) * x.size
                assert found.became - found.original == pytest.approx(
                    found.error * math.copysign(1, found.became - found.original), abs=1e-6 * scale)


@pytest.mark.parametrize("operation", ["std", "hypot"])
def test_what_is_rounded_is_on_the_safe_side(operation):
    """No output above the limit counts as held, and none below it by more than the margin as broken."""
    rng = np.random.default_rng(5)
    getcontext().prec = 60
    root = np.vectorize(Decimal.sqrt, otypes=[object])
    for turn in range(ROUNDS):
        shape, names, axis = (20, 20), "uvw"[: 1 if operation == "std" else 2 + turn % 2], turn % 2
        pairs = {name: field(rng, ["f4", "f8"][turn % 2], shape, [0, 2][turn // 2 % 2]) for name in names}
        fields = {name: Field(shape, (), np.asarray(7.5, "f8")) for name in names}
        use = np.all([np.isfinite(x) & (x != 7.5) for x, _ in pairs.values()], axis=0)

        def exact(side):
            v = np.array([np.where(use, pair[side], 0) for pair in pairs.values()], object)
            v = np.vectorize(Decimal.from_float, otypes=[object])(v.astype(float))
            if operation == "hypot":
                return root((v * v).sum(axis=0))[use]
            n = np.array([Decimal(max(1, int(k))) for k in use.sum(axis=axis)], object)
            about = np.where(use, v[0] - np.expand_dims(v[0].sum(axis=axis) / n, axis), Decimal(0))
            return root((about * about).sum(axis=axis) / n)[use.any(axis=axis)]

        errors = np.abs(exact(1) - exact(0))
        largest = float(max(np.abs(np.where(use, v, 0)).max() for pair in pairs.values() for v in pair))
        margin = 400 * np.finfo(np.longdouble).eps * largest
        for e in map(float, rng.choice(errors, min(errors.size, 15), replace=False)):
            for limit in (e, math.nextafter(e, 0), math.nextafter(e, math.inf), e * 0.9, e * 1.1):
                quantity = Quantity(operation, limit, (*names, *[str(axis)] * (operation == "std")))
                (found,) = judge(applied(quantity, fields), fields, lambda: cut(rng, pairs))
                assert found.outputs == errors.size
                over = sum(v > Decimal(limit) for v in errors)
                assert over <= found.broken <= sum(v > Decimal(limit) - Decimal(float(margin)) for v in errors)


@pytest.mark.parametrize("part, broken", [(2.0**-140, 1), (-(2.0**-140), 0)])
def test_a_weighted_mean_beside_its_limit_is_decided_in_fractions(part, broken):
    x, y, field = np.zeros(4), np.array([1, 2.0**-70, -(2.0**-70), part]), Field((4,))
    of = applied(Quantity("mean", 0.25, ("v",), np.full(4, 2.0)), {"v": field})
    (found,) = judge(of, {"v": field}, lambda: [(0, {"v": (x, y)})])
    assert (found.outputs, found.broken) == (1, broken)


def test_what_did_not_change_holds_without_any_limit():
    x = np.random.default_rng(1).normal(size=(4, 5, 6)).astype("f4")
    for operation, kind in OPERATIONS.items():
        names = ("v", "w")[: kind.variables[0]]
        fields = {name: Field(x.shape) for name in names}
        values = dict.fromkeys(names, (x, x))
        (found,) = judge(applied(Quantity(operation, 0, names), fields), fields, lambda: [(0, values)])
        assert found.held and found.outputs and found.error == 0 == found.share


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_copy_that_is_not_finite_breaks_its_outputs(bad):
    x = np.random.default_rng(1).normal(size=(4, 5, 6)).astype("f4")
    y = x.copy()
    y[1, 2, 3] = bad
    for operation, kind in OPERATIONS.items():
        names = ("v", "w")[: kind.variables[0]]
        fields = {name: Field(x.shape) for name in names}
        values = dict.fromkeys(names, (x, y))
        (found,) = judge(applied(Quantity(operation, 1e9, names), fields), fields, lambda: [(0, values)])
        assert (not found.held and found.error == math.inf) or (operation == "min" and bad == np.inf), operation


def test_a_picture_is_the_plane_of_the_worst_output():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(9, 7, 8))
    y = x + 1e-3 * rng.normal(size=x.shape)
    field = Field(x.shape, ("t", "y", "x"))
    want = {"gradient(v, t) 1": lambda v: np.gradient(v, axis=0), "difference(v, y) 1": lambda v: np.diff(v, axis=1),
            "mean(v, t) 1": lambda v: v.mean(axis=0), "max(v, x) 1": lambda v: v.max(axis=2)}
    for text, function in want.items():
        (found,) = judge(applied(parse(text), {"v": field}), {"v": field}, lambda: cut(rng, {"v": (x, y)}))
        error = np.abs(function(y) - function(x))
        assert found.index == np.unravel_index(error.argmax(), error.shape)
        for plane, v in zip(found.planes, (x, y)):
            np.testing.assert_allclose(plane, function(v)[found.index[:-2]], rtol=1e-12, atol=1e-14)


FIELDS = {"tas": Field((4, 5, 6), ("time", "lat", "lon")), "g/pr": Field((4, 5, 6), ("time", "lat", "lon")),
          "ps": Field((4, 2), ("time", "n"))}
WEIGHTS = {"area": (np.ones((6, 5)), ("lon", "lat")), "low": (-np.ones(5), ("lat",)), "odd": (np.ones(3), ("k",))}


@pytest.mark.parametrize("text, found", [
    ("mean(tas, time) 1e-4", [(("tas",), (0,))]),
    ("mean(time) 1e-4", [(("tas",), (0,)), (("g/pr",), (0,)), (("ps",), (0,))]),
    (" gradient( /g/pr , lon, lat )  .5", [(("g/pr",), (1, 2))]),
    ("laplacian(lat,lon) 1", [(("tas",), (1, 2)), (("g/pr",), (1, 2))]),
    ("sum(tas, -1) 1", [(("tas",), (2,))]),
    ("std(ps) 0", [(("ps",), (0, 1))]),
    ("hypot(tas, g/pr) 0.1", [(("tas", "g/pr"), ())]),
    ("mean(tas, lat, lon, weights=area) 1", [(("tas",), (1, 2))]),
])
def test_names_are_variables_or_dimensions(text, found):
    every = applied(parse(text), FIELDS, weights=WEIGHTS.__getitem__)
    assert [(a.variables, a.axes) for a in every] == found
    assert parse(str(parse(text))) == parse(text)
    if "area" in text:
        assert every[0].weights.shape == (1, 5, 6)


@pytest.mark.parametrize("text, shape", [
    ("mean(v, 1, 2, weights=both) 1", (1, 5, 6)), ("mean(v, 1, weights=one) 1", (1, 5, 1)),
    ("mean(v, 1, weights=both) 1", (1, 5, 6)), ("mean(v, 2, weights=last) 1", (1, 1, 6)),
])
def test_weights_without_names_are_of_the_axes_that_the_mean_is_along(text, shape):
    given = {"both": np.ones((5, 6)), "one": np.ones(5), "last": np.ones(6)}
    (found,) = applied(parse(text), {"v": Field((4, 5, 6))}, weights=lambda name: (given[name], ()))
    assert found.weights.shape == shape


@pytest.mark.parametrize("text, why", [
    ("", "is no quantity; write OPERATION(NAME, ...) LIMIT"), ("mean tas 1", "is no quantity"),
    ("curl(tas) 1", "'curl' is no quantity; there are difference, gradient"),
    ("mean(tas, time)", "has no limit"), ("mean(tas, time) one", "the limit 'one' is no number"),
    ("mean(tas, time) -1", "the limit is -1; give a number from 0"), ("mean(tas) nan", "the limit is nan"),
    ("mean(tas) inf", "the limit is inf"), ("mean(tas) 1e300", "the limit is 1e+300"),
    ("mean(tas,, time) 1", "has an empty name"), ("std(tas, weights=area) 1", "only a mean takes weights"),
    ("mean(foo) 1", "foo is neither a variable nor a dimension; variables are tas, g/pr, ps, dimensions time, lat"),
    ("mean(tas, level) 1", "level is neither"), ("mean(orog, lat) 1", "orog holds integers"),
    ("mean(tas, n) 1", "tas has no dimension n; its dimensions are time"), ("mean(tas, 3) 1", "no dimension 3"),
    ("mean(tas, time, 0) 1", "a dimension is named twice"), ("mean(lat, n) 1", "no variable has lat and n"),
    ("mean(tas, ps) 1", "it takes 1 variable"), ("hypot(tas) 1", "it takes 2 to 3"), ("hypot() 1", "2 to 3"),
    ("hypot(tas, g/pr, time) 1", "it takes 2 to 3 variables and no dimension"),
    ("hypot(tas, ps) 1", "ps has the shape (4, 2), tas (4, 5, 6)"), ("laplacian(ps, n) 1", "axis 1 of ps has 2 values"),
    ("mean(tas, lat, weights=low) 1", "weights are floating-point numbers from 0 on"),
    ("mean(tas, lat, weights=odd) 1", "weights of the shape (3,) do not fit"),
])
def test_what_is_no_quantity_is_refused(text, why):
    with pytest.raises(ValueError, match=re.escape(why)) as refusal:
        applied(parse(text), FIELDS, {"orog": "holds integers"}, WEIGHTS.__getitem__)
    assert str(refusal.value).startswith("h5z-gpu: ") and "\n" not in str(refusal.value)
