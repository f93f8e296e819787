# SPDX-License-Identifier: MIT OR Apache-2.0
"""The shared objects of this process, as the system lists them. Nothing is loaded by what is here."""
from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path
from typing import Any


def named(part: str) -> list[str]:
    """Paths of the shared objects whose file names begin with `part`, behind the `lib` that most systems have there."""
    paths = _modules() if os.name == "nt" else _images() if sys.platform == "darwin" else _maps(part)
    begins = (f"lib{part}", part) if os.name == "nt" else (f"lib{part}",)
    return sorted(p for p in paths if os.path.basename(p).lower().startswith(begins))


def serving(path: str, part: str) -> list[str]:
    """The objects, named as for `named`, whose functions the extension module at `path` calls.

    That is the module itself where the loader looks for functions in what an object is linked with, too. Windows looks
    into the one object: it is the one beside the module, or in the folder that its wheel brings, or the only one.
    """
    if os.name != "nt":
        return [path]
    there, package = named(part), os.path.dirname(path).lower()
    near = [p for p in there if os.path.dirname(p).lower() in (package, f"{package}.libs")]
    return near or (there if len(there) == 1 else [])


def opened(path: str, kind: type[ctypes.CDLL] = ctypes.PyDLL) -> ctypes.CDLL:
    """An object that is loaded. By PyDLL its functions keep Python's lock: no other thread can enter it through
    Python meanwhile.

    Raises
    ------
    OSError
        It is not loaded.
    """
    if os.name != "nt":
        return kind(path, mode=os.RTLD_NOLOAD)
    handle = _kernel().GetModuleHandleW(path)
    if not handle:
        raise OSError(f"{path} is not loaded")
    return kind(path, handle=handle)


def _maps(part: str) -> set[str]:
    """Linux: files in the memory map whose paths have `part` in them."""
    try:
        maps = Path("/proc/self/maps").read_text()
    except OSError:
        return set()
    return {line.split(maxsplit=5)[5] for line in maps.splitlines() if part in line}


def _images() -> set[str]:
    """macOS: what its loader has loaded."""
    loader = ctypes.CDLL(None)
    name_of = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_uint32)(("_dyld_get_image_name", loader))
    names = (name_of(number) for number in range(loader._dyld_image_count()))
    return {os.fsdecode(name) for name in names if name}


def _kernel() -> Any:
    """Windows's library of modules, with the types of what is called here."""
    kernel: Any = ctypes.CDLL("kernel32")
    kernel.GetCurrentProcess.restype = kernel.GetModuleHandleW.restype = ctypes.c_void_p
    kernel.GetModuleHandleW.argtypes = [ctypes.c_wchar_p]
    kernel.GetModuleFileNameW.argtypes = [ctypes.c_void_p, ctypes.c_wchar_p, ctypes.c_uint32]
    kernel.K32EnumProcessModules.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p]
    return kernel


def _modules() -> set[str]:
    """Windows: the modules of the process."""
    kernel, modules, needed = _kernel(), (ctypes.c_void_p * 4096)(), ctypes.c_uint32()
    if not kernel.K32EnumProcessModules(kernel.GetCurrentProcess(), modules, ctypes.sizeof(modules),
                                        ctypes.byref(needed)):
        return set()
    paths, text = set(), ctypes.create_unicode_buffer(32768)
    for module in modules[: needed.value // ctypes.sizeof(ctypes.c_void_p)]:
        if kernel.GetModuleFileNameW(module, text, len(text)):
            paths.add(text.value)
    return paths
