# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the codecs for Zarr and numcodecs share: a bound in JSON, and batches of chunks, one library call each."""
from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from . import keep as keeping, library, modes
from .filters import Lossless, Lossy
from .library import checked, lib
from .stored_words import meaning


def named(how: Any = None, mode: str | None = None, bound: float | None = None, codec: str = "auto",
          keep: keeping.Keep = None,
          words: Sequence[int] | None = None) -> tuple[str, float | None, str, tuple[str, ...]]:
    """(mode, bound, codec, keep) in the library's terms, from a `Lossy` or `Lossless`, a configuration, or cd_values.

    mode: a mode's short name or keyword; None is absolute where a bound is given, else lossless. Raises ValueError for
    what contradicts itself.
    """
    if isinstance(how, (Lossy, Lossless)) and words is None:
        words = how.words  # the fill value goes another way
    elif how is not None:
        raise TypeError(f"h5z-gpu: {how!r}; give h5z_gpu.Lossy(1e-3) or h5z_gpu.Lossless()")
    if words is not None:
        if (mode, bound, codec, keep) != (None, None, "auto", None):
            raise TypeError(f"h5z-gpu: {library.text(words)} is said already: give no mode, bound, codec or keep"
                            " besides")
    else:
        mode = mode if mode is not None else "lossless" if bound is None else "abs"
        try:
            short = modes.named(mode).name
        except KeyError:
            allowed = ", ".join(m.keyword for m in modes.all_modes())
            raise ValueError(f"h5z-gpu: mode {mode!r}; allowed are {allowed}") from None
        kept = keeping.names(keep)
        try:
            if isinstance(bound, bool):
                raise ValueError
            words = words_of(short, bound if bound is None else float(bound), codec, kept)
        except (TypeError, ValueError) as e:
            raise (e if "h5z-gpu" in str(e) else ValueError(f"h5z-gpu: bound {bound!r} is no number")) from None
    said = meaning(words)
    return said.mode, said.bound, said.codec, said.keep


def only(configuration: Mapping[str, Any], known: Iterable[str]) -> None:
    """Raises ValueError where a configuration has a key that is not known."""
    unknown = sorted(set(configuration) - set(known))
    if unknown:
        raise ValueError(f"h5z-gpu: the codec's configuration has {', '.join(unknown)}; known are {', '.join(known)}")


def words_of(mode: str, bound: float | None, codec: str, keep: Iterable[str] = ()) -> tuple[int, ...]:
    """The library's words for what `named` answers."""
    kept = keeping.text(keep)
    beside = ("" if bound is None else f",bound={bound!r}", f",keep={kept}" if kept else "")
    return library.words(f"mode={mode},codec={codec}{''.join(beside)}")


def encode(arrays: Sequence[np.ndarray], words: Sequence[int], fill: Any = None) -> list[bytes]:
    """The frames of `arrays`, which are C-contiguous and all of one type and shape, in order.

    fill: a value that comes back bit for bit and stretches no range. Raises ValueError for Python objects.
    """
    dtype, shape, nbytes = arrays[0].dtype, arrays[0].shape, arrays[0].nbytes
    if dtype.hasobject:
        raise ValueError(f"h5z-gpu: chunks of {dtype} hold Python objects: take a type such as float32 or S10")
    # Every bit of other types is kept.
    element = np.array(fill, dtype).ctypes.data_as(ctypes.c_void_p) if fill is not None and dtype.kind == "f" else None
    size = lib.h5z_gpu_max_encoded(nbytes)
    frames, n, lens = [np.empty(size, np.uint8) for _ in arrays], len(arrays), (ctypes.c_int64 * len(arrays))()
    done = checked(lib.h5z_gpu_encode_batch(
        (ctypes.c_uint32 * max(1, len(words)))(*words), len(words),
        (dtype.str if dtype.kind in "fiu" else f"|V{dtype.itemsize}").encode(),
        len(shape), (ctypes.c_uint64 * max(1, len(shape)))(*shape), element,
        n, _pointers(arrays), nbytes, _pointers(frames), size, lens,
    ))
    if done != n:  # no other failure is left here
        raise MemoryError(lib.h5z_gpu_last_error().decode())
    return [frame[:length].tobytes() for frame, length in zip(frames, lens)]


def decode(frames: Sequence[np.ndarray], arrays: Sequence[np.ndarray]) -> None:
    """Decodes each frame, an array of bytes, into the array beside it, which is C-contiguous and has just its length.

    Raises ValueError for the first damaged frame, and for one that holds another length, and MemoryError; the others
    are decoded.
    """
    n, status = len(frames), (ctypes.c_int * len(frames))()
    lens, sizes = ((ctypes.c_size_t * n)(*(a.nbytes for a in each)) for each in (frames, arrays))
    checked(lib.h5z_gpu_decode_batch(n, _pointers(frames), lens, _pointers(arrays), sizes, status))
    for frame, array in ((f, a) for f, a, failed in zip(frames, arrays, status) if failed):
        length = raw_len(frame)
        if length != array.nbytes:
            raise ValueError(f"h5z-gpu: a chunk's frame holds {length} bytes where its array says {array.nbytes}")
        # Encoded again by itself: this names the fault.
        checked(lib.h5z_gpu_decode(*_bytes(frame), *_bytes(array)))


def raw_len(frame: np.ndarray) -> int:
    """Length of the chunk that a frame, an array of bytes, holds. Raises ValueError where it is no frame."""
    return checked(lib.h5z_gpu_raw_len(*_bytes(frame)))


def _bytes(array: np.ndarray) -> tuple[int, int]:
    return array.ctypes.data, array.nbytes


def _pointers(arrays: Sequence[np.ndarray]) -> Any:
    return (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))
