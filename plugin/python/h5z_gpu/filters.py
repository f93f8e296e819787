# SPDX-License-Identifier: MIT OR Apache-2.0
"""What to give to `compression=` in h5py, h5netcdf and xarray."""
from . import library

FILTER_ID = library.lib.h5z_gpu_filter_id()

try:
    import h5py

    _Base = h5py.filters.FilterRefBase
except ImportError:
    _Base = object  # nobody to give it to but `compress`


class _Filter(_Base):
    filter_id = FILTER_ID

    def __init__(self, text):
        self.filter_options = library.words(text)

    def __repr__(self):
        return f"<h5z_gpu {library.text(self.filter_options)}>"


class Lossy(_Filter):
    """Loses no more than `bound`, for every value; NaN, infinities and the fill value come back bit for bit.

    mode: "abs" (units of the data), "rel" (times each chunk's value range), "pw_rel" (times each value), "psnr" (dB).
    "rel" and "psnr" follow the range that a chunk has when it is written: each chunk has a limit of its own, and values
    appended to a chunk change it. For one limit that stays, compute an absolute bound from the data once:
    Lossy(1e-4 * float(np.nanmax(a) - np.nanmin(a))), or for p decibels Lossy(10 ** (-p / 20) * float(...)).
    codec: "auto" (for each chunk planes-dense, lorenzo, szx, or no loss where that is as small, as a sample says), "szx", "lorenzo",
    "planes" or "planes-dense". Raises ValueError for what contradicts itself.
    """

    def __init__(self, bound, mode="abs", codec="auto"):
        super().__init__(f"mode={mode},bound={float(bound)!r},codec={codec}")


class Lossless(_Filter):
    """Keeps every bit. codec: "auto" (which takes planes), "ndzip" or "planes"."""

    def __init__(self, codec="auto"):
        super().__init__(f"mode=lossless,codec={codec}")
