# SPDX-License-Identifier: MIT OR Apache-2.0
"""Zarr through the same frames: for zarr-python 3, and references to HDF5 files for kerchunk and VirtualiZarr.

Serializer   the codec `h5z_gpu` of Zarr 3, for `zarr.create_array(..., serializer=)`
Compressor   the codec `h5z-gpu` of Zarr 2, for `compressors=` there (from h5z_gpu.numcodecs, which needs no zarr)
references   what kerchunk and VirtualiZarr read an HDF5 file by, without HDF5
"""
from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from zarr.abc.codec import ArrayBytesCodec, BytesBytesCodec
from zarr.registry import register_codec

from . import batches, keep as keeping, modes
from .filters import FILTER_ID, Lossless, Lossy
from .index import ChunkList, chunk_list
from .numcodecs import Compressor

__all__ = ["Compressor", "Serializer", "references"]


class _Batched:
    """A codec of batches: `_encode` and `_decode` take pairs of a chunk, or None, and its ArraySpec."""

    is_fixed_size = False
    _encode: Callable[[list[tuple[Any, Any]]], list[Any]]
    _decode: Callable[[list[tuple[Any, Any]]], list[Any]]

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: Any) -> int:
        raise NotImplementedError

    async def encode(self, chunks_and_specs: Iterable[tuple[Any, Any]]) -> list[Any]:
        return await asyncio.to_thread(self._encode, list(chunks_and_specs))

    async def decode(self, chunks_and_specs: Iterable[tuple[Any, Any]]) -> list[Any]:
        return await asyncio.to_thread(self._decode, list(chunks_and_specs))

    # FusedCodecPipeline of zarr-python 3.3 and later codes one chunk a call, on threads of its own; for stores that
    # have no synchronous calls it awaits one chunk a call.

    def _encode_sync(self, chunk_data: Any, chunk_spec: Any) -> Any:
        return self._encode([(chunk_data, chunk_spec)])[0]

    def _decode_sync(self, chunk_data: Any, chunk_spec: Any) -> Any:
        return self._decode([(chunk_data, chunk_spec)])[0]

    async def _encode_single(self, chunk_data: Any, chunk_spec: Any) -> Any:
        return await asyncio.to_thread(self._encode_sync, chunk_data, chunk_spec)

    async def _decode_single(self, chunk_data: Any, chunk_spec: Any) -> Any:
        return await asyncio.to_thread(self._decode_sync, chunk_data, chunk_spec)


@dataclass(frozen=True, init=False)
class Serializer(_Batched, ArrayBytesCodec):
    """`zarr.create_array(..., serializer=Serializer(h5z_gpu.Lossy(1e-3)), compressors=None)`: each chunk is one frame.

    The array's own fill value comes back bit for bit and stretches no range. Numbers are stored little-endian. Or in
    the words of the configuration: mode "absolute", "relative", "pointwise_relative", "psnr" or "lossless", bound,
    codec and keep. zarr.config's `codec_pipeline.batch_size` says how many chunks one call of the library takes; it is
    1 there.
    """

    mode: str
    bound: float | None
    codec: str
    keep: tuple[str, ...]

    def __init__(self, how: Lossy | Lossless | None = None, *, mode: str | None = None, bound: float | None = None,
                 codec: str = "auto", keep: keeping.Keep = None) -> None:
        if getattr(how, "fill_value", None) is not None:
            raise ValueError(f"h5z-gpu: {how!r} names a fill value: give it to zarr.create_array(fill_value=)")
        short, *rest = batches.named(how, mode, bound, codec, keep)
        for name, value in zip(("mode", "bound", "codec", "keep"), (modes.named(short).keyword, *rest)):
            object.__setattr__(self, name, value)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Serializer:
        configuration = data.get("configuration", {})
        batches.only(configuration, ("mode", "bound", "codec", "keep"))
        return cls(**configuration)

    def to_dict(self) -> dict[str, Any]:
        kept = keeping.text(self.keep) or None
        said = {"mode": self.mode, "bound": self.bound, "codec": self.codec, "keep": kept}
        return {"name": "h5z_gpu", "configuration": {k: v for k, v in said.items() if v is not None}}

    def _encode(self, batch: list[tuple[Any, Any]]) -> list[Any]:
        words = batches.words_of(*batches.named(None, self.mode, self.bound, self.codec, self.keep))
        frames: list[Any] = [None] * len(batch)
        alike: dict[tuple[Any, ...], list[int]] = {}
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

    def _decode(self, batch: list[tuple[Any, Any]]) -> list[Any]:
        at = [i for i, (frame, _) in enumerate(batch) if frame is not None]
        found: list[Any] = [None] * len(batch)
        arrays = [np.empty(batch[i][1].shape, _stored(batch[i][1].dtype)) for i in at]
        if at:  # zarr asks for none where whole chunks are written
            batches.decode([np.ascontiguousarray(batch[i][0].as_numpy_array()) for i in at], arrays)
        for i, array in zip(at, arrays):
            found[i] = batch[i][1].prototype.nd_buffer.from_numpy_array(array)
        return found


def _stored(dtype: Any) -> np.dtype:
    """How elements of a Zarr type lie in a chunk."""
    kept: np.dtype = dtype.to_native_dtype().newbyteorder("<")
    return kept


@dataclass(frozen=True, init=False)
class Frames(_Batched, BytesBytesCodec):
    """The codec `numcodecs.h5z-gpu`, by which VirtualiZarr hands on a Compressor. It reads chunks of an HDF5 file."""

    said: str

    def __init__(self, **configuration: Any) -> None:
        object.__setattr__(self, "said", json.dumps(Compressor.from_config(configuration).get_config()))

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Frames:
        return cls(**data.get("configuration", {}))

    def to_dict(self) -> dict[str, Any]:
        return {"name": "numcodecs.h5z-gpu", "configuration": {k: v for k, v in self.codec_config.items() if k != "id"}}

    @property
    def codec_config(self) -> dict[str, Any]:
        """What VirtualiZarr asks for where it writes references of kerchunk."""
        said: dict[str, Any] = json.loads(self.said)
        return said

    def _encode(self, batch: list[tuple[Any, Any]]) -> list[Any]:
        raise ValueError("h5z-gpu: numcodecs.h5z-gpu reads references to HDF5 files; to write an array give"
                         " serializer=h5z_gpu.zarr.Serializer(...)")

    def _decode(self, batch: list[tuple[Any, Any]]) -> list[Any]:
        frames = [None if frame is None else np.ascontiguousarray(frame.as_numpy_array()) for frame, _ in batch]
        raw = [None if frame is None else np.empty(batches.raw_len(frame), np.uint8) for frame in frames]
        if any(frame is not None for frame in frames):
            batches.decode([f for f in frames if f is not None], [r for r in raw if r is not None])
        return [None if r is None else spec.prototype.buffer.from_bytes(r) for r, (_, spec) in zip(raw, batch)]


register_codec("h5z_gpu", Serializer)
register_codec("numcodecs.h5z-gpu", Frames)


@contextlib.contextmanager
def _without_collections() -> Iterator[None]:
    """No garbage is collected within the block.

    kerchunk waits for a thread of zarr's while it goes through a file, and holds h5py's lock all the time. A collection
    in that thread that finds an object of h5py wants the lock too: neither would ever go on.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def references(path: str | os.PathLike[str], **options: Any) -> dict[str, Any]:
    """kerchunk's references to an HDF5 file: a dictionary, to be kept as JSON, by which zarr reads it without HDF5.

    options: those of kerchunk.hdf.SingleHdf5ToZarr but `out` and `spec`, such as `inline_threshold=0` for VirtualiZarr.
    Datasets without the filter are kerchunk's business. Raises kerchunk.hdf.Hdf5FeatureNotSupported for a chunk that
    was stored without the filter, and for a filter beside it other than shuffle.
    """
    import h5py
    from kerchunk.hdf import Hdf5FeatureNotSupported, SingleHdf5ToZarr
    from kerchunk.utils import encode_fill_value
    from numcodecs import Shuffle

    def refused(dataset: h5py.Dataset, why: str) -> Any:
        return Hdf5FeatureNotSupported(f"h5z-gpu: {dataset.name} {why}")

    # Not of the translator: a cycle of objects with an h5py file in it may be collected by zarr's thread, which then
    # waits for h5py's lock, while kerchunk holds it and waits for zarr.
    def chunks_of(dataset: h5py.Dataset, file: Any) -> ChunkList:
        found = chunk_list(dataset, file)
        if found.wrong:
            raise refused(dataset, f"has a damaged list of chunks: {found.wrong}")
        return found

    class Translator(SingleHdf5ToZarr):  # type: ignore[misc]
        """kerchunk knows the filters that `_decode_filters` names, and has no list to add one to. It believes HDF5's
        lists of chunks."""

        def _storage_info_and_adj_filters(self, dataset: h5py.Dataset, filters: list[Any]) -> dict[Any, Any]:
            info: dict[Any, Any] = super()._storage_info_and_adj_filters(dataset, filters)
            if dataset.shape is None or dataset.chunks is None or not info:
                return info
            found = chunks_of(dataset, self.input_file)
            cells = (found.origins // np.array(dataset.chunks)).tolist()
            return {tuple(cell): {"offset": at, "size": n}
                    for cell, at, n in zip(cells, found.at.tolist(), found.lens.tolist())}

        def _decode_filters(self, dataset: h5py.Dataset) -> list[Any]:
            plan = dataset.id.get_create_plist()
            filters = [plan.get_filter(i) for i in range(plan.get_nfilters())]
            ids = [number for number, *_ in filters]
            if FILTER_ID not in ids:
                others: list[Any] = super()._decode_filters(dataset)
                return others
            if ids not in ([FILTER_ID], [h5py.h5z.FILTER_SHUFFLE, FILTER_ID]):
                raise refused(dataset, f"has the filters {ids}: references are made to chunks of {FILTER_ID} alone, or"
                                       f" behind shuffle ({h5py.h5z.FILTER_SHUFFLE})")
            found = chunks_of(dataset, self.input_file)
            left_out = found.origins[found.masks != 0].tolist()
            if left_out:
                raise refused(dataset, f"has {len(left_out)} chunks, the first at {tuple(left_out[0])}, that were "
                                       "stored without the filter: it was not loaded, or chunks at the edges are kept "
                                       "without filters; h5z-gpu repack makes a file in which all have it")
            return [Shuffle(dataset.dtype.itemsize)] * (len(ids) - 1) + [Compressor(cd_values=filters[-1][2])]

    translator = Translator(str(path), **{"error": "raise"} | options)
    try:
        with _without_collections():
            found: dict[str, Any] = translator.translate()
        refs = found["refs"]
        # kerchunk takes the fill value from netCDF's attribute, or names none. What is in missing chunks is HDF5's.
        for key in [k for k in refs if k.endswith("/.zarray")]:
            array, dataset = json.loads(refs[key]), translator._h5f[key.removesuffix("/.zarray")]
            if not any(f["id"] == Compressor.codec_id for f in array["filters"] or ()):
                continue
            if len(chunks_of(dataset, translator.input_file).at) < math.prod(
                -(-n // c) for n, c in zip(dataset.shape, dataset.chunks)):
                fill = encode_fill_value(dataset.fillvalue, dataset.dtype)
                if array["fill_value"] not in (None, fill):
                    raise refused(dataset, f"has chunks that were never written: they hold {fill}, its _FillValue is"
                                           f" {array['fill_value']}, and references name one: write them")
                refs[key] = json.dumps(array | {"fill_value": fill})
    finally:
        translator.close()
    return found
