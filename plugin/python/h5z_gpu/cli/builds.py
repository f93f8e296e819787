# SPDX-License-Identifier: MIT OR Apache-2.0
"""Chunks that only the build which wrote them can read: frames of version 1, which builds before 0.1.0 wrote, and of
drafts, states of the format that never were a release's (codecs/src/FORMAT.md §1).

They are no damage, and what this build could do with them is wrong: a copy has the same frames, or fill values in their
place. So every command says the library's sentence on them, once a file, and ends with status 3; `repack` of several
files and `doctor`, which go on with the others, with 1.
"""
from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Union

from .common import Problem, open_file

if TYPE_CHECKING:
    import h5py

    from .objects import Chunks

_NAMES = 8  # datasets that are named


class OtherBuild(Problem):
    """A file with such chunks."""

    status = 3


class OtherBuilds:
    """Counts such chunks of a file."""

    def __init__(self) -> None:
        self._found: dict[str, Counter[str]] = {}
        """How many each dataset has, by what is said of them."""

    def take(self, name: str, chunks: Chunks) -> set[int]:
        """Counts those of a dataset; their rows, which `damage` has no longer."""
        from .objects import OF_ANOTHER_BUILD

        rows = {row for row, why in chunks.damage.items() if why.startswith(OF_ANOTHER_BUILD)}
        for row in rows:
            said = chunks.damage.pop(row).removeprefix("this chunk was ")
            self._found.setdefault(said, Counter())[name.lstrip("/")] += 1
        return rows

    def refuse(self, path: str) -> None:
        """Raises OtherBuild where there were any."""
        if self._found:
            raise OtherBuild(f"{path}: {'; '.join(_sentence(*one) for one in sorted(self._found.items()))}")


def open_data(path: Union[str, os.PathLike[str]], names: Sequence[str] = (), **how: Any) -> h5py.File:
    """A file whose values are to be read or copied, all or those of the datasets named, as `open_file` opens it;
    OtherBuild where this build must not. Where HDF5 takes minutes to list a dataset's chunks, they are not asked."""
    from .objects import UNREADABLE, chunks_of, datasets, slow_to_list

    file, builds = open_file(path, **how), OtherBuilds()
    try:
        with open(path, "rb") as data:
            for dataset in datasets(file):
                if (names and dataset.name.strip("/") not in names) or slow_to_list(dataset):
                    continue
                try:
                    chunks = chunks_of(dataset, data.fileno(), check="header")
                except UNREADABLE:  # which whoever needs the dataset says
                    continue
                if chunks is not None:
                    builds.take(dataset.name, chunks)
        builds.refuse(os.fspath(path))
    except BaseException:
        file.close()
        raise
    return file


def _sentence(said: str, each: Counter[str]) -> str:
    names, n = sorted(each), sum(each.values())
    more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
    return f"{', '.join(names[:_NAMES])}{more}: {n} chunk{'' if n == 1 else 's'} {said}"
