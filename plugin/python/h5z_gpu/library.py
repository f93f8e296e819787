# SPDX-License-Identifier: MIT OR Apache-2.0
"""libh5zgpu.so through ctypes. HDF5 opens the same file, so both share one engine."""
from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from . import capi
from .elf import Unusable, cut_short

_NAME = {"darwin": "libh5zgpu.dylib", "win32": "h5zgpu.dll"}.get(sys.platform, "libh5zgpu.so")
PLUGIN_PATH: str = os.environ.get("H5Z_GPU_PLUGIN_PATH") or str(Path(__file__).with_name("plugin"))


def _load() -> ctypes.CDLL:
    path = os.path.join(PLUGIN_PATH, _NAME)
    why = cut_short(path)
    if not why:
        try:
            library = ctypes.CDLL(path)
        except OSError as error:
            why = f"cannot be loaded ({error})"
        else:
            missing = capi.declare(library, capi.FUNCTIONS) + capi.declare(library, capi.PLUGIN)
            if not missing:
                return library
            why = f"is of another version than this package: it has no {missing[0]}"
    remedy = ("H5Z_GPU_PLUGIN_PATH names that folder: name another one, or unset it"
              if os.environ.get("H5Z_GPU_PLUGIN_PATH") else
              "install the package's wheel again: pip install --force-reinstall WHEEL")
    raise Unusable(f"h5z-gpu: {path} {why}; {remedy}")


lib = _load()

Words = ctypes.c_uint32 * capi.WORDS_MAX


def failure(kind: int, text: str, path: str | os.PathLike[str] | None = None) -> Exception:
    """The exception for a failure of the library: an OSError with errno and the file's name, a MemoryError, or a
    ValueError."""
    if kind == capi.IO:
        number = lib.h5z_gpu_last_errno()
        return OSError(number, text,
                       path) if number and path is not None else OSError(number, text) if number else OSError(text)
    return (MemoryError if kind == capi.NO_MEMORY else ValueError)(text)


def checked(answer: int, path: str | os.PathLike[str] | None = None) -> int:
    """The answer of a function of the library, or its reason as an exception; `path` is the file that it reads or
    writes."""
    if answer < 0:
        raise failure(answer, lib.h5z_gpu_last_error().decode(), path)
    return answer


def descriptor(file: int) -> int:
    """What the library takes for an open file of Python's: on Windows the system's handle, since numbers of files
    belong to one C library."""
    if sys.platform == "win32":
        import msvcrt

        return msvcrt.get_osfhandle(file)
    return file


def release_memory() -> int:
    """Gives memory of GPUs back that is kept for the next work and not in use now, and page-locked and other memory of
    the host.

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
    checked(lib.h5z_gpu_text(given, len(values), out, len(out)))
    return out.value.decode()
