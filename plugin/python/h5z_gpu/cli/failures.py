# SPDX-License-Identifier: MIT OR Apache-2.0
"""A sentence for what HDF5 or h5py raises in a command, which object it was at included."""
from __future__ import annotations

import re
import traceback
from types import FrameType
from typing import Any

import h5py

from .names import as_text

_CALLS = ["cli", "hdf5.py"]  # this package's own calls of HDF5


class File(h5py.File):  # type: ignore[misc]
    """A file of a `with` block that says at which of its objects the block failed: when it is closed, none has a name.
    """

    def __exit__(self, *failure: Any) -> None:
        why = failure[1]
        if why is not None:
            why.place = _place(why)
        super().__exit__(*failure)


def of_hdf5(why: BaseException) -> str:
    """What to say of an exception that passed through h5py or HDF5; "" for any other."""
    if not any(_is_of_hdf5(frame.f_code.co_filename) for frame in _frames(why)):
        return ""
    return (f"{getattr(why, 'place', '')}HDF5 or h5py cannot do what is needed: "
            f"{' '.join(str(why).split()) or type(why).__name__}")


def _frames(why: BaseException) -> list[FrameType]:
    return [frame for frame, _ in traceback.walk_tb(why.__traceback__)]


def _is_of_hdf5(path: str) -> bool:
    parts = re.split(r"[\\/]", path)
    return "h5py" in parts or parts[-2:] == _CALLS


def _place(why: BaseException) -> str:
    """The object that the function nearest to a failure has in hand, and its file."""
    found = [value for frame in reversed(_frames(why)) for value in frame.f_locals.values()
             if isinstance(value, h5py.HLObject) and value]
    named = [item for item in found if not isinstance(item, h5py.File)] or found
    return f"{named[0].file.filename}: {as_text(named[0].name or '').lstrip('/') or '/'}: " if named else ""
