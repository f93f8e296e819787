# SPDX-License-Identifier: MIT OR Apache-2.0
"""Files that are whole or not there at all: everything in this package that writes a file does it by `whole`.

1. `judge` looks at the name before any work is done: the folder must be there and writable, and what has the name
   must be an ordinary file that nobody is writing to.
2. The file is written beside its place, as `.NAME.PID.RANDOM.part` with the permissions of the file that it is to
   replace.
3. When it is complete it is brought to the disk (fsync), takes its name in one step (rename, or link where nothing
   may be replaced), and the folder is brought to the disk too.

Whatever happens before the third step, the file that was there is as it was, byte for byte. An exception, Ctrl-C and
SIGTERM remove the unfinished file. What ends a process at once (SIGKILL, a power failure) leaves it under its hidden
name. No later run removes it, since another machine that shares the folder may be writing it, but one that has locked
the folder against others of its kind: `remove_unfinished`.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import shutil
import signal
import stat
import tempfile
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Optional, Union

if TYPE_CHECKING:
    import h5py

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

Path = Union[str, "os.PathLike[str]"]

MODES = ("w", "x", "w-", "a", "r+")
# Bytes copied before Ctrl-C is looked at.
_AT_ONCE = 1 << 28
# errno where a file system has no hard links, no copying within itself, or no folders that can be brought to the disk.
_NOT_HERE = {getattr(errno, name) for name in "EPERM EACCES ENOSYS EOPNOTSUPP EINVAL EXDEV EMLINK ENOTTY".split()}
# errno that only a write can have.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class _Stopped(SystemExit):
    """Raised by a signal that would have ended the process at once."""

    def __init__(self, number: int) -> None:
        super().__init__(128 + number)
        self.number = number


@contextlib.contextmanager
def whole(path: Path, mode: str = "w") -> Iterator[str]:
    """Gives the name under which a file is to be written; behind the block the file is at `path`, whole.

    A link is followed: what it leads to is replaced, and the link stays. Of h5py.File's modes "w" replaces a file, "x"
    and "w-" take the name from nobody. "a" and "r+" work on a copy of the file, which replaces it: that costs the time
    and the space of a copy, unless the file system shares blocks (Btrfs, XFS, APFS). Who has the old file open goes on
    seeing it.

    OSError as of `judge`, or where the file could not be written: nothing is left of it then. `errno` says why,
    `filename` is `path`.
    """
    path = os.fspath(path)
    target, old = judge(path, mode)
    copied = old is not None and mode in ("a", "r+")
    folder, name = os.path.split(target)
    part = os.path.join(folder, f".{_short(name)}.{os.getpid()}.{secrets.token_hex(4)}.part")
    with contextlib.ExitStack() as kept:
        kept.enter_context(stoppable())
        kept.callback(_remove, part)
        if old is not None:
            kept.enter_context(_held(path, target))
        try:
            _begin(part, target, old, copied=copied)
            yield part
            if old is not None and copied and _state(os.stat(target)) != _state(old):
                raise _error(errno.EBUSY, path, "has been changed by another program meanwhile; it was left alone")
            take_name(part, path, mode)
        except (OSError, RuntimeError) as why:
            failed = _explained(why, path, part, folder, old)
            if failed is why:
                raise
            raise failed from why


def judge(path: Path, mode: str = "w") -> tuple[str, Optional[os.stat_result]]:
    """What `path` leads to and what is there now, or the error that writing would end with. Writes nothing.

    The `strerror` of an OSError is a sentence that names `path`, which is its `filename` too. ValueError for an unknown
    mode.
    """
    if mode not in MODES:
        raise ValueError(f"h5z-gpu: mode = {mode!r}; {', '.join(MODES)} are known, as h5py.File's")
    path = os.fspath(path)
    if mode in ("x", "w-") and os.path.lexists(path):
        raise _error(errno.EEXIST, path, "is there already; nothing was written. Name a new file, or remove it first")
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    try:
        old: Optional[os.stat_result] = os.stat(target)
    except FileNotFoundError:
        old = None
    except OSError as why:
        raise _error(why.errno or 0, path, f"cannot be written: {why.strerror}") from None
    if old is None and mode == "r+":
        raise _error(errno.ENOENT, path, 'is not there; mode "a" makes a new file')
    if old is not None and stat.S_ISDIR(old.st_mode):
        raise _error(errno.EISDIR, path, "is a folder; name a file in it")
    if old is not None and not stat.S_ISREG(old.st_mode):
        raise _error(errno.EINVAL, path, "is a device, a pipe or a socket, which no file can replace; name a file")
    if not os.path.isdir(folder):
        raise _error(errno.ENOENT, path, f"cannot be written: there is no folder {folder}")
    if old is not None and not os.access(target, os.W_OK):
        raise _error(errno.EACCES, path, "may not be written to; allow it (chmod u+w), or name another file")
    if not os.access(folder, os.W_OK | os.X_OK):
        sentence = f"cannot be written: the new file is made in the folder {folder}, which may not be written to"
        raise _error(errno.EACCES, path, sentence)
    if old is not None:
        with _held(path, target):
            pass
    return target, old


def refuse_open(path: Path) -> None:
    """Raises OSError where a program has an HDF5 file open, by its lock; HDF5_USE_FILE_LOCKING=FALSE turns that off."""
    if fcntl is None or os.environ.get("HDF5_USE_FILE_LOCKING", "").upper() in ("FALSE", "0"):
        return
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:  # who writes it says so
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as why:
        sentence = "is open, here or in another program: close it there first, or load the dataset and close it"
        raise _error(why.errno or 0, path, sentence) from None
    except OSError:  # a file system without locks
        pass
    finally:
        os.close(descriptor)


def take_name(part: str, path: Path, mode: str = "w") -> None:
    """Brings a finished file to the disk and gives it its name.

    OSError where `path` has appeared meanwhile, and `mode` takes the name from nobody; or where the system failed.
    """
    path = os.fspath(path)
    _sync(part)
    if mode in ("x", "w-"):
        target = os.path.abspath(path)
        taken = _error(errno.EEXIST, path, "has appeared meanwhile; it was left alone, and nothing was written")
        try:
            os.link(part, target)
            os.unlink(part)
        except FileExistsError:
            raise taken from None
        except OSError as why:
            if why.errno not in _NOT_HERE:
                raise
            if os.path.lexists(target):
                raise taken from None
            os.rename(part, target)
    else:
        target = os.path.realpath(path)
        os.replace(part, target)
    try:
        _sync(os.path.dirname(target))
    except OSError as why:
        if why.errno in _NOT_HERE:  # a file system that does not sync folders
            return
        raise _error(why.errno or 0, path, f"is complete, but a power failure may undo its name: "
                     f"{why.strerror}") from None


def remove_unfinished(folder: Path, names: Iterable[str]) -> None:
    """Removes what killed processes have left of files of these names. The caller knows that no process writes them."""
    shorts = {_short(name) for name in names}
    for left in os.listdir(folder):
        found = re.fullmatch(r"\.(.+)\.\d+\.[0-9a-f]{8}\.part", os.fsdecode(left), re.DOTALL)
        if found and found[1] in shorts:
            _remove(os.path.join(os.fsdecode(folder), os.fsdecode(left)))


def put(path: Path, data: bytes, mode: str = "w") -> None:
    """Writes a file of these bytes, whole. OSError as of `whole`."""
    with whole(path, mode) as part:
        try:
            with open(part, "wb") as f:
                f.write(data)
        except OSError as why:
            raise OSError(why.errno, why.strerror, part) from None


@contextlib.contextmanager
def closing(file: h5py.File) -> Iterator[h5py.File]:
    """A new HDF5 file that is closed behind the block, so that an error of its last writes is raised.

    HDF5 writes much of a file when it is closed, and may crash where that fails (2.0). The unfinished file is thrown
    away: once anything has failed, what HDF5 still has to write goes into memory.
    """
    try:
        yield file
        file.flush()
    except BaseException:
        with contextlib.suppress(Exception):
            _lead_away(file.id.get_vfd_handle())
            file.close()
        raise
    file.close()  # where this fails, HDF5 has freed the file all the same: nothing more may be asked of it


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """Within the block SIGTERM and SIGHUP are exceptions, which remove what is half done and then end the process.

    Only where they would end it at once: a program that has a handler of its own keeps it.
    """

    asked: list[int] = []

    def stop(number: int, frame: Any) -> None:
        asked.append(number)
        raise _Stopped(number)

    ours: list[int] = []
    try:
        for number in (getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)):
            if signal.getsignal(number) is signal.SIG_DFL:
                with contextlib.suppress(ValueError):  # not the main thread, which alone may
                    signal.signal(number, stop)
                    ours.append(number)
        yield
        if asked:  # while a finaliser or a callback ran, whose exceptions Python drops
            raise _Stopped(asked[0])
    except _Stopped as why:
        if why.number in ours:
            signal.signal(why.number, signal.SIG_DFL)
            os.kill(os.getpid(), why.number)
        raise
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


def _error(number: int, path: Path, sentence: str) -> OSError:
    """FileExistsError, PermissionError and the like, by errno."""
    path = os.fspath(path)
    return OSError(number, f"h5z-gpu: {path} {sentence}", path)


# --- steps ------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _held(path: Path, target: str) -> Iterator[None]:
    """Within the block no other program begins to write to the old file with HDF5, where the system has locks."""
    open_there = "here or in another program; close it there first"
    if fcntl is None:  # Windows replaces no file that anybody has open, and gives it no other name
        try:
            os.rename(target, target)
        except PermissionError as why:
            raise _error(why.errno or 0, path, f"is open, {open_there}") from None
        yield
        return
    descriptor = os.open(target, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)  # HDF5's writers hold LOCK_EX, its readers LOCK_SH
    except BlockingIOError as why:
        os.close(descriptor)
        raise _error(why.errno or 0, path, f"is open for writing, {open_there}") from None
    except OSError:  # a file system without locks
        pass
    try:
        yield
    finally:
        os.close(descriptor)


def _state(found: os.stat_result) -> tuple[int, ...]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _begin(part: str, target: str, old: Optional[os.stat_result], *, copied: bool) -> None:
    """Makes the unfinished file, empty or a copy of the old one, with its permissions from the beginning."""
    os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666 if old is None else 0o600))
    if copied:
        _copy(target, part)
    if old is not None:
        with contextlib.suppress(PermissionError):  # a file system that keeps no permissions
            os.chmod(part, stat.S_IMODE(old.st_mode))


def _copy(source: str, target: str) -> None:
    """A copy that shares its blocks with the source where the file system can."""
    if hasattr(os, "copy_file_range"):
        with open(source, "rb", buffering=0) as old, open(target, "wb", buffering=0) as new:
            try:
                while os.copy_file_range(old.fileno(), new.fileno(), _AT_ONCE):
                    pass
                if os.fstat(new.fileno()).st_size == os.fstat(old.fileno()).st_size:
                    return
            except OSError as why:
                if why.errno not in _NOT_HERE:
                    raise OSError(why.errno, why.strerror, target) from None
    shutil.copyfile(source, target)


def _sync(path: str) -> None:
    """Brings a file, or a folder's list of names, to the disk."""
    if os.name != "posix" and os.path.isdir(path):
        return  # folders cannot be opened there
    descriptor = os.open(path, os.O_RDONLY if os.name == "posix" else os.O_RDWR)
    try:
        os.fsync(descriptor)
    except OSError as why:
        raise OSError(why.errno, why.strerror, path) from None
    finally:
        os.close(descriptor)


def _short(name: str) -> str:
    """What of a file's name stands in that of the unfinished file: a name has 255 bytes at most."""
    return os.fsdecode(os.fsencode(name)[:200])


def _remove(part: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(part)


def _lead_away(descriptor: int) -> None:
    """What is written to this descriptor from now on is in no file."""
    memory = hasattr(os, "memfd_create")
    with open(os.memfd_create("h5z-gpu"), "w+b") if memory else tempfile.TemporaryFile() as nowhere:
        os.dup2(nowhere.fileno(), descriptor)


def _explained(why: Union[OSError, RuntimeError], path: Path, part: str, folder: str,
               old: Optional[os.stat_result]) -> Exception:
    """An error of writing the unfinished file as one that names the file that was meant; any other as it is."""
    number = why.errno if isinstance(why, OSError) else None
    stated = re.search(r"errno = (\d+)", str(why))  # h5py's text of an error within HDF5
    if stated:
        number = int(stated[1])
    ours = part in str(why) or "unable to extend file" in str(why).lower()
    named = isinstance(why, OSError) and why.filename == os.fspath(path)
    if named or not number or not (ours or number in _FULL):
        return why
    written = os.path.getsize(part) if os.path.exists(part) else 0
    _remove(part)
    there = f"{_mb(written)} were written, and {_mb(shutil.disk_usage(folder).free)} are free now in {folder}"
    kept = "" if old is None else f"; the file that was there, of {_mb(old.st_size)}, is as it was"
    sentence = f"could not be written, and nothing is left of it: {os.strerror(number)}; {there}{kept}"
    return _error(number, path, sentence)


def _mb(n: float) -> str:
    return f"{n / 1e6:.1f} MB"
