# SPDX-License-Identifier: MIT OR Apache-2.0
"""Fields large enough to time a GPU with: five of 150 MB and more, and one small one.

    fields.py FOLDER [--small]

Writes each field raw, little-endian, slowest axis first, and FOLDER/fields.txt with a line a field: path, f32 or f64,
extents. PyTorch makes them in seconds on a GPU; without it NumPy does, in minutes. They resemble what simulations write
(spectra, ranges, empty regions), but are made up: speed may be quoted from them, ratios only beside others' on the
same. --small divides every extent by eight.
"""
import math
import os
import sys

try:
    import torch as xp

    xp.set_default_device("cuda" if xp.cuda.is_available() else "cpu")
    xp.manual_seed(443)
    normal = lambda shape, kind="float32": xp.randn(shape, dtype=getattr(xp, kind))
    uniform = lambda shape: xp.rand(shape)
    pick = lambda most, shape: xp.randint(0, most, shape)
    along = lambda a, index: xp.gather(a, 1, index)
    host = lambda a: a.cpu().numpy()
    kind_of = lambda a, kind: a.to(getattr(xp, kind))
    fourier = lambda a: xp.fft.rfftn(a)
    back = lambda a, shape: xp.fft.irfftn(a, s=shape)
    lowest = lambda a, least: a.clamp_min(least)
    SPREAD = {"correction": 0}
except ImportError:
    import numpy as xp

    random = xp.random.default_rng(443)
    normal = lambda shape, kind="float32": random.standard_normal(shape, dtype=kind)
    uniform = lambda shape: random.random(shape, dtype="float32")
    pick = lambda most, shape: random.integers(0, most, shape)
    along = lambda a, index: xp.take_along_axis(a, index, 1)
    host = lambda a: a
    kind_of = lambda a, kind: a.astype(kind)
    fourier = lambda a: xp.fft.rfftn(a)
    back = lambda a, shape: xp.fft.irfftn(a, s=shape, axes=tuple(range(len(shape))))
    lowest = lambda a, least: xp.maximum(a, least)
    SPREAD = {}


def wavenumber(shape, kind):
    """|k| in cycles over 512 cells, in the layout of a real transform."""
    total = 0.0
    for axis, n in enumerate(shape):
        f = xp.fft.rfftfreq(n) if axis == len(shape) - 1 else xp.fft.fftfreq(n)
        f = kind_of(f, kind) * 512
        total = total + (f * f).reshape([-1 if a == axis else 1 for a in range(len(shape))])
    return total**0.5


def gaussian(shape, amplitude, kind="float32"):
    """A Gaussian field of zero mean and unit variance whose transform has this amplitude at |k|."""
    k = wavenumber(shape, kind)
    weight = amplitude(lowest(k, 1e-9))
    weight.reshape(-1)[0] = 0
    field = back(fourier(normal(shape, kind)) * weight, shape)
    return (field - field.mean()) / field.std(**SPREAD)


def density(cut):
    """Matter in a box: log-normal, a few cells hold most of the range."""
    return xp.exp(1.7 * gaussian((cut(512),) * 3, lambda k: k**-1.25))


def velocity(cut):
    """One component of turbulence in double precision: k^(-5/3) energy, smooth at the smallest scales."""
    shape = (cut(256), cut(384), cut(384))
    return 0.37 * gaussian(shape, lambda k: k ** (-11 / 6) * xp.exp(-((k / 110) ** 2)), "float64")


def climate(cut):
    """A surface temperature: from pole to pole, weather, and constant land."""
    shape = (cut(1800), cut(3600))
    latitude = (xp.arange(shape[0]) / (shape[0] - 1) - 0.5) * math.pi
    t = 303 - 38 * xp.sin(kind_of(latitude, "float32")).reshape(-1, 1) ** 2
    t = t + 2.5 * gaussian(shape, lambda k: k**-1.8) + 0.05 * gaussian(shape, lambda k: k**-0.3)
    t[gaussian(shape, lambda k: k**-2.6) > 0.55] = 255.0
    return lowest(t, 255.0)


def particles(cut):
    """Positions in a box of 256, ordered by cells of 4096 particles, a third of them in clumps."""
    cell = 4096
    cells = max(cut(512) * cut(512) * cut(256) // cell, 1)
    side = max(round(cells ** (1 / 3)), 1)
    corner = kind_of(xp.arange(cells) % side, "float32").reshape(-1, 1) * (256 / side)
    x = corner + uniform((cells, cell)) * (256 / side) + 3 * normal((cells, 1))
    clumps = corner + uniform((cells, 8)) * (256 / side)
    clumped = along(clumps, pick(8, (cells, cell))) + 0.04 * normal((cells, cell))
    x = xp.where(uniform((cells, cell)) < 0.35, clumped, x)
    return xp.remainder(x, 256.0).reshape(-1)


def waves(cut):
    """Wave fronts of three shots and their echoes; nothing ahead of a front."""
    shape = (cut(449), cut(449), cut(235))
    step = 449 / shape[0]
    z, y, x = (
        (kind_of(xp.arange(n), "float32") * step).reshape([-1 if a == axis else 1 for a in range(3)])
        for axis, n in enumerate(shape)
    )
    total = xp.zeros(shape)
    fronts = [(60, 220, 8, 150, 1.0), (300, 120, 8, 105, 0.8), (180, 380, 8, 70, 0.9)]
    fronts += [(60, 220, 242, 120, 0.35), (300, 120, 330, 150, 0.25), (180, 380, 300, 175, 0.2)]
    for sz, sy, sx, reach, strength in fronts:
        r = ((z - sz) ** 2 + (y - sy) ** 2 + (x - sx) ** 2) ** 0.5
        u = ((r - reach) / 5.5) ** 2
        front = strength / lowest(r, 6.0) * 60 * (1 - 2 * u) * xp.exp(-u)
        tail = strength * 2e-3 * xp.sin(r * 0.55) * xp.exp((r - reach) / 60)
        front = front + xp.where(r < reach, tail, 0 * tail)
        total = total + xp.where(r < reach + 22, front, 0 * front)
    return xp.where(abs(total) < 1e-9, 0 * total, total)


def main():
    folder, small = sys.argv[1], "--small" in sys.argv
    os.makedirs(folder, exist_ok=True)
    cut = (lambda n: max(n // 8, 8)) if small else (lambda n: n)
    lines = []

    def save(name, field, kind):
        a = host(field).astype("<f4" if kind == "f32" else "<f8")
        a.tofile(f"{folder}/{name}.{kind}")
        lines.append(f"{name}.{kind} {kind} {'x'.join(map(str, a.shape))}")
        print(f"{lines[-1]}: {a.nbytes / 1e6:.1f} MB, {a.min():.4g} to {a.max():.4g}", flush=True)

    save("density", density(cut), "f32")
    v = velocity(cut)
    save("velocity", v, "f32")
    save("velocity64", v, "f64")
    save("climate", climate(cut), "f32")
    save("particles", particles(cut), "f32")
    save("waves", waves(cut), "f32")
    with open(f"{folder}/fields.txt", "w") as f:
        f.write("\n".join(lines) + "\n")


main()
