# SPDX-License-Identifier: MIT OR Apache-2.0
"""The codec `h5z-gpu` of numcodecs, for Zarr 2 and for references to HDF5 files. NCZarr knows it by the same id."""
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numcodecs.abc import Codec
from numcodecs.compat import ensure_contiguous_ndarray, ensure_ndarray
from numcodecs.registry import register_codec

from . import batches, keep as keeping
from .filters import Lossless, Lossy

KNOWN = ("mode", "bound", "codec", "keep", "fill_value", "cd_values")


class Compressor(Codec):  # type: ignore[misc]  # numcodecs has no types
    """`zarr.create_array(..., zarr_format=2, compressors=Compressor(h5z_gpu.Lossy(1e-3)))`: each chunk is one frame.

    Give it the chunk itself, with no filter before it: what a filter hands on as f32 or f64 would lose bits too.
    fill_value: a number that comes back bit for bit and stretches no range; a codec of Zarr 2 is not told the array's.
    Or in the words of the configuration: mode "abs", "rel", "pw_rel", "psnr" or "lossless", bound, codec and keep; or
    HDF5's cd_values.
    """

    codec_id = "h5z-gpu"

    def __init__(self, how: Lossy | Lossless | None = None, *, mode: str | None = None, bound: float | None = None,
                 codec: str = "auto", fill_value: float | None = None, cd_values: Sequence[int] | None = None,
                 keep: keeping.Keep = None) -> None:
        self.mode, self.bound, self.codec, self.keep = batches.named(how, mode, bound, codec, keep, cd_values)
        fill_value = getattr(how, "fill_value", None) if fill_value is None else fill_value
        # NaN and infinities come back bit for bit in any case.
        self.fill_value = fill_value if fill_value is None or math.isfinite(fill_value := float(fill_value)) else None

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Compressor:
        config = {k: v for k, v in config.items() if k != "id"}
        batches.only(config, KNOWN)
        return cls(**config)

    def get_config(self) -> dict[str, Any]:
        """As NCZarr writes it: without what is not said."""
        said = {"mode": self.mode, "bound": self.bound, "codec": self.codec, "keep": keeping.text(self.keep) or None,
                "fill_value": self.fill_value}
        return {"id": self.codec_id} | {k: v for k, v in said.items() if v is not None and (k, v) != ("codec", "auto")}

    def encode(self, buf: Any) -> bytes:
        array = ensure_ndarray(buf)
        # In the order of memory: a chunk of order F has its extents the other way round.
        array = np.ascontiguousarray(array.T if array.flags.f_contiguous and not array.flags.c_contiguous else array)
        return batches.encode([array], self._words, self.fill_value)[0]

    @property
    def _words(self) -> tuple[int, ...]:
        return batches.words_of(self.mode, self.bound, self.codec, self.keep)

    def decode(self, buf: Any, out: Any = None) -> Any:
        frame = ensure_contiguous_ndarray(buf).view(np.uint8)
        out = np.empty(batches.raw_len(frame), np.uint8) if out is None else out
        batches.decode([frame], [ensure_contiguous_ndarray(out).view(np.uint8)])
        return out


register_codec(Compressor)
