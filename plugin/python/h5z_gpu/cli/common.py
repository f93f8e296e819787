# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the commands share: files that are opened or refused with a sentence, and numbers as text."""
from __future__ import annotations

import contextlib
import os
import re
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Optional, TextIO, Union

if TYPE_CHECKING:
    import h5py

    from ..filters import Lossless, Lossy

# First bytes of files that are no HDF5, and what to say of them.
_OTHERS = [
    (b"CDF\x01", "a netCDF-3 file, which has no filters; convert it first: nccopy -k nc4 {path} new.nc"),
    (b"CDF\x02", "a netCDF-3 file (64-bit offsets), which has no filters; convert it first: nccopy -k nc4 {path} "
     "new.nc"),
    (b"CDF\x05", "a netCDF-3 file (64-bit data), which has no filters; convert it first: nccopy -k nc4 {path} new.nc"),
    (b"\x0e\x03\x13\x01", "an HDF4 file; convert it first, with h4toh5 for example"),
    (b"\x93NUMPY", "a .npy file; h5z_gpu.save('new.h5', {{'v': numpy.load('{name}')}}, absolute=...) makes an HDF5 "
     "file of it"),
    (b"\x89H5ZG\r\n\x1a", "one frame of the filter, not a file of datasets; python -m h5z_gpu.reference {path} "
     "shows it"),
    (b"GRIB", "a GRIB file; convert it to netCDF-4 first, for example with cdo -f nc4 copy"),
    (b"PK\x03\x04", "a zip archive (such as .npz or .zarr.zip), not an HDF5 file"),
    (b"\x1f\x8b", "a gzip file; unpack it first: gunzip {path}"),
    (b"version https://git-lfs", "a pointer of Git LFS, not the file itself; fetch it: git lfs pull"),
]
# What a terminal obeys or cannot show: C0 and C1 controls, line and paragraph separators, marks that change the
# direction of letters, and halves of surrogate pairs, by which Python stands for bytes that are no text.
_OBEYED = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_ABSURD = 10**15  # bytes of one dataset that take weeks to read
_UNUSED_BITS = 1  # H5F_RFIC_UNUSUAL_NUM_UNUSED_NUMERIC_BITS
_SIGNATURE = b"\x89HDF\r\n\x1a\n"


class Problem(Exception):
    """One sentence for the user: wrong use, or input that cannot be read. Printed without a traceback."""

    status = 2
    """The exit status."""


def pread(file: int, length: int, at: int) -> bytes:
    """At most `length` bytes of a descriptor from `at` on. Windows has no call for it: there the descriptor moves, and
    is one thread's."""
    if hasattr(os, "pread"):
        return os.pread(file, length, at)
    os.lseek(file, at, os.SEEK_SET)
    parts = bytearray()
    while more := os.read(file, length - len(parts)):
        parts += more
    return bytes(parts)


@contextlib.contextmanager
def writing(path: str) -> Iterator[None]:
    """Within the block, which makes the file `path` by `whole`, errors of the system and of HDF5 are Problems."""
    try:
        yield
    except (OSError, RuntimeError) as why:
        text = " ".join(str(getattr(why, "strerror", None) or why).split()).removeprefix("h5z-gpu: ")
        named = getattr(why, "filename", None) == path  # a sentence of `whole`
        raise Problem(text if named else f"{path} could not be written, and nothing is left of it: {text}") from None


def file_access() -> Any:
    """The properties by which files are opened and made.

    HDF5 2.0 refuses numbers of few bits in many bytes, which older libraries have made, unless it is told not to.
    """
    from h5py import h5f, h5p

    from ..index import hdf5

    access, library = h5p.create(h5p.FILE_ACCESS), hdf5()
    access.set_fclose_degree(h5f.CLOSE_STRONG)
    if library is not None and hasattr(library, "H5Pset_relax_file_integrity_checks"):
        library.H5Pset_relax_file_integrity_checks(access.id, _UNUSED_BITS)
    return access


def open_file(path: Union[str, os.PathLike[str]], rdcc_nbytes: Optional[int] = None) -> h5py.File:
    """An HDF5 or netCDF-4 file, open for reading alone; the caller closes it.

    HDF5's cache of chunks has `rdcc_nbytes`. Problem where the file is missing, cut short, of another format, open
    elsewhere for writing, or h5py is not installed.
    """
    need("h5py")
    from h5py import h5f

    from .failures import File

    path = os.fspath(path)
    refuse_others(path)
    access = file_access()
    if rdcc_nbytes is not None:
        meta, slots, _, preemption = access.get_cache()
        access.set_cache(meta, slots, rdcc_nbytes, preemption)
    try:
        return File(h5f.open(os.fsencode(path), h5f.ACC_RDONLY, access))
    except OSError as why:
        raise Problem(_why_not(path, why)) from None


def need(module: str) -> Any:
    """An optional package, or a Problem that says how to install it."""
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError as why:
        raise Problem(f"this command needs {module} ({why}): pip install {module}") from None


def refuse_others(path: str) -> None:
    """Raises Problem for what is no HDF5 file at first sight."""
    try:
        if os.path.isdir(path):
            inside = os.listdir(path)
            zarr = any(n in inside for n in ("zarr.json", ".zgroup", ".zarray"))
            what = "a Zarr store, which xarray and zarr read" if zarr else "a folder"
            raise Problem(f"{path} is {what}; give an HDF5 or netCDF-4 file")
        with open(path, "rb") as f:
            head, size = f.read(64), os.fstat(f.fileno()).st_size
            at = 512
            while not head.startswith(_SIGNATURE) and at < size:  # behind a user block: 512, 1024, 2048 ...
                f.seek(at)
                if f.read(8) == _SIGNATURE:
                    return
                at *= 2
    except OSError as why:
        raise Problem(f"{path}: {why.strerror or why}") from None
    if head.startswith(_SIGNATURE):
        return
    if not size:
        raise Problem(f"{path} is empty (0 bytes)")
    for first, what in _OTHERS:
        if head.startswith(first):
            raise Problem(f"{path} is {what.format(path=path, name=os.path.basename(path))}")
    raise Problem(f"{path} is no HDF5 or netCDF-4 file: it begins with {head[:8]!r}, not with HDF5's signature")


def _why_not(path: str, why: OSError) -> str:
    """What HDF5's refusal of a file with the right signature means."""
    text = str(why)
    if "truncated file" in text:
        numbers = dict(part.strip().split(" = ", 1) for part in text.split(":", 1)[1].rstrip(")").split(",")
                       if " = " in part)
        stated = numbers.get("stored_eof")
        return (
            f"{path} is cut short: it has {os.path.getsize(path)} "
            f"bytes{f', and should have {stated}' if stated else ''}; copy it again from where it came from"
        )
    if "lock" in text or getattr(why, "errno", None) in (11, 35):
        return (f"{path} is open for writing in another program; close it there, or set HDF5_USE_FILE_LOCKING=FALSE to "
                f"read it all the same")
    return f"{path} is damaged or cut short; HDF5 says: {' '.join(text.split())}"


def size(n: float) -> str:
    """Bytes as text with three figures: 812 B, 1.23 MB (10^6), 45.6 GB."""
    if n < 1000:
        return f"{n:.0f} B"
    for unit in ("kB", "MB", "GB", "TB"):
        n /= 1000
        if n < 999.5 or unit == "TB":
            break
    return f"{n:.{2 if n < 9.995 else 1 if n < 99.95 else 0}f} {unit}"


def shown(text: str) -> str:
    """Text as it may stand on one line of a terminal: names and attributes of a file may hold what a terminal obeys."""
    return _OBEYED.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def say(*lines: str, file: Optional[TextIO] = None) -> None:
    """Prints lines, to standard output by default. A line break within one is escaped as the rest of what a terminal
    obeys."""
    for line in lines:
        print(shown(line), file=file)


def quoted(word: str) -> str:
    """A word of a command line, for bash to read."""
    if not _OBEYED.search(word):
        return shlex.quote(word)
    return "$'" + shown(word.replace("\\", "\\\\").replace("'", "\\'")) + "'"


def refuse_absurd(name: str, stated: int) -> None:
    """Raises Problem for a dataset of more bytes than could be gone through; extents of a damaged file may be
    anything."""
    if stated > _ABSURD:
        raise Problem(f"{name} states {size(stated)} of values, more than can be gone through ({size(_ABSURD)}); its "
                      "extents may be damaged: h5z-gpu inspect shows them")


def ratio(raw: float, stored: float) -> str:
    """A ratio of sizes as text with about three figures; "-" where nothing is stored."""
    if not stored:
        return "-"
    value = raw / stored
    return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f}"


def sentence(how: Union[Lossy, Lossless]) -> str:
    """The promise in words."""
    from ..keep import kept

    codec = "" if how.codec == "auto" else f" (codec {how.codec})"
    text = how.mode.promise.replace("chunk's", f"{how.of}'s").format(f"{how.bound:g}")
    if how.mode.of == "none":
        return text + codec
    fill = getattr(how, "fill_value", None)
    beside = kept(how.keep)
    text += f"; {beside}" if beside else ""
    exact = "NaN and infinities" if fill is None else f"NaN, infinities and the fill value {fill:g}"
    return f"{text}; {exact} keep every bit{codec}"
