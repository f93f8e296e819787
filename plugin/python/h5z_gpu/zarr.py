# SPDX-License-Identifier: MIT OR Apache-2.0
"""Zarr through the same frames, for zarr-python 3.

Serializer   the codec `h5z_gpu` of Zarr 3, for `zarr.create_array(..., serializer=)`
Compressor   the codec `h5z-gpu` of Zarr 2, for `compressors=` there (from h5z_gpu.numcodecs, which needs no zarr)
"""
import asyncio
from dataclasses import dataclass

import numpy as np
from zarr.abc.codec import ArrayBytesCodec
from zarr.registry import register_codec

from . import batches
from .numcodecs import Compressor

__all__ = ["Compressor", "Serializer"]


@dataclass(frozen=True, init=False)
class Serializer(ArrayBytesCodec):
    """`zarr.create_array(..., serializer=Serializer(h5z_gpu.Lossy(1e-3)), compressors=None)`: each chunk is one frame.

    The array's own fill value comes back bit for bit and stretches no range. Numbers are stored little-endian. Or in the words
    of the configuration: mode "absolute", "relative", "pointwise_relative", "psnr" or "lossless", bound, and codec.
    zarr.config's `codec_pipeline.batch_size` says how many chunks one call of the library takes; zarr's default is 1.
    """

    is_fixed_size = False
    mode: str
    bound: "float | None"
    codec: str

    def __init__(self, how=None, *, mode=None, bound=None, codec="auto"):
        if getattr(how, "fill_value", None) is not None:
            raise ValueError(f"h5z-gpu: {how!r} names a fill value: give it to the array instead, as zarr.create_array(fill_value=)")
        for name, value in zip(("mode", "bound", "codec"), batches.named(how, mode, bound, codec)):
            object.__setattr__(self, name, batches.MODES.get(value, value))

    @classmethod
    def from_dict(cls, data):
        return cls(**_configuration(data, {"mode", "bound", "codec"}))

    def to_dict(self):
        said = {"mode": self.mode, "bound": self.bound, "codec": self.codec}
        return {"name": "h5z_gpu", "configuration": {k: v for k, v in said.items() if v is not None}}

    def compute_encoded_size(self, input_byte_length, chunk_spec):
        raise NotImplementedError

    async def encode(self, chunks_and_specs):
        return await asyncio.to_thread(self._encode, list(chunks_and_specs))

    async def decode(self, chunks_and_specs):
        return await asyncio.to_thread(self._decode, list(chunks_and_specs))

    def _encode(self, batch):
        words, frames, alike = batches.words_of(*batches.named(None, self.mode, self.bound, self.codec)), [None] * len(batch), {}
        for i, (chunk, spec) in enumerate(batch):
            if chunk is not None:
                dtype = _stored(spec.dtype)
                alike.setdefault((dtype, tuple(spec.shape), np.array(spec.fill_value, dtype).tobytes()), []).append(i)
        for (dtype, _, fill), at in alike.items():
            # A chunk on a GPU (CuPy) is copied to the host here.
            arrays = [np.ascontiguousarray(batch[i][0].as_numpy_array(), dtype) for i in at]
            for i, frame in zip(at, batches.encode(arrays, words, np.frombuffer(fill, dtype)[0])):
                frames[i] = batch[i][1].prototype.buffer.from_bytes(frame)
        return frames

    def _decode(self, batch):
        at = [i for i, (frame, _) in enumerate(batch) if frame is not None]
        found, arrays = [None] * len(batch), [np.empty(batch[i][1].shape, _stored(batch[i][1].dtype)) for i in at]
        if at:  # zarr asks for none where whole chunks are written
            batches.decode([np.ascontiguousarray(batch[i][0].as_numpy_array()) for i in at], arrays)
        for i, array in zip(at, arrays):
            found[i] = batch[i][1].prototype.nd_buffer.from_numpy_array(array)
        return found


def _stored(dtype):
    """How elements of a Zarr type lie in a chunk."""
    return dtype.to_native_dtype().newbyteorder("<")


def _configuration(data, known):
    configuration = data.get("configuration", {})
    unknown = sorted(set(configuration) - known)
    if unknown:
        raise ValueError(f"h5z-gpu: the codec's configuration has {', '.join(unknown)}; known are {', '.join(sorted(known))}")
    return configuration


register_codec("h5z_gpu", Serializer)
