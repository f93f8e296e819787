# SPDX-License-Identifier: MIT OR Apache-2.0
"""libh5zgpu.so through ctypes. HDF5 opens the same file, so both share one engine."""
from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from pathlib import Path

from .elf import Unusable, cut_short

PLUGIN_PATH: str = os.environ.get("H5Z_GPU_PLUGIN_PATH") or str(Path(__file__).with_name("plugin"))


def _load() -> ctypes.CDLL:
    path = os.path.join(PLUGIN_PATH, "libh5zgpu.so")
    why = cut_short(path)
    if not why:
        try:
            return ctypes.CDLL(path)
        except OSError as error:
            why = f"cannot be loaded ({error})"
    remedy = (
        "H5Z_GPU_PLUGIN_PATH names that folder: name another one, or unset it"
        if os.environ.get("H5Z_GPU_PLUGIN_PATH")
        else "install the package's wheel again: pip install --force-reinstall WHEEL"
    )
    raise Unusable(f"h5z-gpu: {path} {why}; {remedy}")


lib = _load()
lib.h5z_gpu_last_error.restype = ctypes.c_char_p
lib.h5z_gpu_max_encoded.restype = ctypes.c_size_t
for _name in ("words", "text", "encode", "decode", "raw_len", "release_memory"):
    getattr(lib, f"h5z_gpu_{_name}").restype = ctypes.c_int64

Words = ctypes.c_uint32 * 20


# h5z_gpu_failure of h5z_gpu.h: what a function answers, and the status of a frame.
FAILED, DAMAGED, IO, NO_MEMORY = -1, -2, -3, -4


def failure(kind: int, text: str, path: str | os.PathLike[str] | None = None) -> Exception:
    """The exception for a failure of the library: an OSError with errno and the file's name, a MemoryError, or a ValueError."""
    if kind == IO:
        number = lib.h5z_gpu_last_errno()
        return OSError(number, text, path) if number and path is not None else OSError(number, text) if number else OSError(text)
    return (MemoryError if kind == NO_MEMORY else ValueError)(text)


def checked(answer: int, path: str | os.PathLike[str] | None = None) -> int:
    """The answer of a function of the library, or its reason as an exception; `path` is the file that it reads or writes."""
    if answer < 0:
        raise failure(answer, lib.h5z_gpu_last_error().decode(), path)
    return answer


def release_memory() -> int:
    """Gives memory of GPUs back that is kept for the next work and not in use now, and page-locked and other memory of the host.

    The next work takes it again: call this before another library needs the room, not between two writes.

    Returns
    -------
    int
        Bytes of GPU memory; 0 where no GPU was used.
    """
    return checked(lib.h5z_gpu_release_memory())


def words(text: str) -> tuple[int, ...]:
    """The cd_values that mean `text`, such as "mode=abs,bound=1e-3,codec=szx" or "11003"."""
    out = Words()
    return tuple(out[: checked(lib.h5z_gpu_words(text.encode(), out))])


def text(values: Sequence[int]) -> str:
    """What cd_values mean, as text."""
    out = ctypes.create_string_buffer(200)
    given = (ctypes.c_uint32 * max(1, len(values)))(*values)
    checked(lib.h5z_gpu_text(given, ctypes.c_size_t(len(values)), out, ctypes.c_size_t(len(out))))
    return out.value.decode()
