# SPDX-License-Identifier: MIT OR Apache-2.0
"""The C interface of libh5zgpu.so for ctypes: `h5z_gpu.h`, and what the package calls of HDF5 and netCDF.

Types of C functions stand here, but those of HDF5 that `verify` alone calls (cli/hdf5_calls.py). `declare` gives them
to a library once, where it is loaded; from then on ctypes converts Python's numbers by itself and refuses what is no
number. tests/hosts/test_capi.py compares this file with the header.

C's types as they are written here: `const` is left out; a pointer to a number or a struct is POINTER(...); `char *`, a
text, is c_char_p; `void *`, a pointer to an opaque struct, and a pointer to a function are c_void_p. For a pointer to
numbers a caller gives an array of ctypes, `byref(...)`, `views.numbers(array, type)` or None.
"""
from __future__ import annotations

import ctypes
from collections.abc import Mapping
from ctypes import (
    POINTER, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_uint, c_uint8, c_uint32, c_uint64, c_void_p,
)  # fmt: skip
from typing import Any

# enum h5z_gpu_failure: what a function answers, and the status of a frame.
FAILED, DAMAGED, IO, NO_MEMORY, OTHER_WAY = -1, -2, -3, -4, -5

# Numbers that the header defines.
WORDS_MAX = 20
READ_ONLY, EVERY_DEVICE = 1, 2  # flags of an array
SPECIAL, BROKEN = 1, 2  # marks of values that were judged


class Array(ctypes.Structure):
    """h5z_gpu_array: an array in memory."""

    _fields_ = [("data", c_void_p), ("device", c_int32), ("flags", c_uint32), ("type", c_char_p), ("rank", c_size_t),
                ("shape", POINTER(c_uint64)), ("strides", POINTER(c_int64)), ("stream", c_void_p)]  # fmt: skip


class Frame(ctypes.Structure):
    """h5z_gpu_frame: what a frame says of itself."""

    _fields_ = [("status", c_int32), ("version", c_uint8), ("codec", c_uint8), ("mode", c_uint8), ("element", c_uint8),
                ("raw_len", c_uint64), ("bound", c_double)]  # fmt: skip


class Chunks(ctypes.Structure):
    """h5z_gpu_chunks: a list of a dataset's chunks."""

    _fields_ = [("count", c_size_t), ("origins", POINTER(c_uint64)), ("at", POINTER(c_uint64)),
                ("lens", POINTER(c_uint64)),
                ("masks", POINTER(c_uint32)), ("wrong", c_char_p), ("twice_count", c_size_t),
                ("twice", POINTER(c_uint64))]  # fmt: skip


class Verdict(ctypes.Structure):
    """h5z_gpu_verdict: what a comparison of values with their originals found."""

    _fields_ = [*((name, c_uint64) for name in ("judged", "nan", "infinite", "fill", "special_broken", "broken")),
                ("first", c_int64), ("into_fill", c_uint64), ("noisy", c_int), ("has_range", c_int),
                *((name, c_double) for name in ("limit", "worst", "psnr")), ("range", c_double * 2)]  # fmt: skip


# A function's result, and its arguments in order.
Signature = tuple[Any, tuple[Any, ...]]

_words = (POINTER(c_uint32), c_size_t)
# Words, type, extents and fill value of a chunk.
_described = (*_words, c_char_p, c_size_t, POINTER(c_uint64), c_void_p)
_array, _places = POINTER(Array), POINTER(c_int64)
# A function of HDF5 and a dataset.
_dataset = (c_void_p, c_int64)

FUNCTIONS: Mapping[str, Signature] = {
    "h5z_gpu_version": (c_char_p, ()),
    "h5z_gpu_filter_id": (c_int, ()),
    "h5z_gpu_last_error": (c_char_p, ()),
    "h5z_gpu_last_errno": (c_int, ()),
    "h5z_gpu_words": (c_int64, (c_char_p, POINTER(c_uint32))),
    "h5z_gpu_text": (c_int64, (*_words, c_char_p, c_size_t)),
    "h5z_gpu_tools": (c_int64, (*_words, c_char_p, c_size_t)),
    "h5z_gpu_choices": (c_int64, (c_char_p, c_size_t)),
    "h5z_gpu_stored_words": (c_int64, (*_described, POINTER(c_uint32))),
    "h5z_gpu_max_encoded": (c_size_t, (c_size_t,)),
    "h5z_gpu_encode": (c_int64, (*_described, c_void_p, c_size_t, c_void_p, c_size_t)),
    "h5z_gpu_encode_batch": (
        c_int64,
        (*_described, c_size_t, POINTER(c_void_p), c_size_t, POINTER(c_void_p), c_size_t, POINTER(c_int64)),
    ),
    "h5z_gpu_raw_len": (c_int64, (c_void_p, c_size_t)),
    "h5z_gpu_decode": (c_int64, (c_void_p, c_size_t, c_void_p, c_size_t)),
    "h5z_gpu_decode_batch": (
        c_int64,
        (c_size_t, POINTER(c_void_p), POINTER(c_size_t), POINTER(c_void_p), POINTER(c_size_t), POINTER(c_int)),
    ),
    "h5z_gpu_encode_array": (
        c_int64,
        (*_words, _array, POINTER(c_uint64), c_void_p, c_size_t, _places, c_int, POINTER(c_void_p)),
    ),
    "h5z_gpu_next": (c_int64, (c_void_p, POINTER(POINTER(c_void_p)), POINTER(POINTER(c_size_t)))),
    "h5z_gpu_end": (None, (POINTER(c_void_p),)),
    "h5z_gpu_range": (
        c_int64,
        (_array, POINTER(c_uint64), c_void_p, c_size_t, _places, c_int, POINTER(c_double)),
    ),
    "h5z_gpu_read_dataset": (
        c_int64,
        (*_dataset, c_int64, POINTER(c_uint64), _array, c_int, c_int, POINTER(c_void_p)),
    ),
    "h5z_gpu_write_dataset": (c_int64, (*_dataset, c_int64, POINTER(c_uint64), _array, c_int, POINTER(c_void_p))),
    "h5z_gpu_step": (c_int64, (c_void_p,)),
    "h5z_gpu_special_chunks": (c_int64, (c_void_p, c_size_t, POINTER(POINTER(c_uint64)))),
    "h5z_gpu_end_transfer": (None, (POINTER(c_void_p),)),
    "h5z_gpu_list_chunks": (c_int64, (*_dataset, c_int, c_void_p, c_void_p, POINTER(POINTER(Chunks)))),
    "h5z_gpu_end_chunks": (None, (POINTER(POINTER(Chunks)),)),
    "h5z_gpu_find_chunks": (c_int64, (*_dataset, c_size_t, c_size_t, *2 * (POINTER(c_uint64),))),
    "h5z_gpu_raw_chunk": (c_int64, (c_int, c_uint64, c_uint64, c_uint64)),
    "h5z_gpu_decode_file": (
        c_int64,
        (c_int, c_size_t, *2 * (POINTER(c_uint64),), _array, POINTER(c_uint64), _places, c_int, POINTER(c_int)),
    ),
    "h5z_gpu_decode_memory": (
        c_int64,
        (c_size_t, POINTER(c_void_p), POINTER(c_size_t), _array, POINTER(c_uint64), _places, c_int, POINTER(c_int)),
    ),
    "h5z_gpu_copy": (c_int64, (_array, _array)),
    "h5z_gpu_frames": (
        c_int64,
        (c_int, c_size_t, *2 * (POINTER(c_uint64),), c_uint64, c_int, c_int, POINTER(Frame)),
    ),
    "h5z_gpu_judge": (
        c_int64,
        (c_int, c_double, c_char_p, c_void_p, c_size_t, c_void_p, c_void_p, c_int, POINTER(c_double), POINTER(c_uint8),
         POINTER(Verdict)),
    ),
    "h5z_gpu_hdf5_folders": (c_int64, (c_char_p, c_size_t)),
    "h5z_gpu_status": (c_int64, (c_char_p, c_size_t)),
    "h5z_gpu_device_chunks": (c_int64, (c_int,)),
    "h5z_gpu_release_memory": (c_int64, ()),
}

# What HDF5 asks of a plugin. The struct that it answers is for HDF5 alone.
PLUGIN: Mapping[str, Signature] = {"H5PLget_plugin_info": (c_void_p, ())}

# Of HDF5, in whichever library h5py has. Older ones lack some.
HDF5: Mapping[str, Signature] = {
    "H5Dget_chunk_index_type": (c_int, (c_int64, POINTER(c_int))),
    "H5Dget_chunk_storage_size": (c_int, (c_int64, POINTER(c_uint64), POINTER(c_uint64))),
    "H5Oget_native_info": (c_int, (c_int64, c_void_p, c_uint)),
    "H5Pget_chunk_opts": (c_int, (c_int64, POINTER(c_uint))),
    "H5Pget_driver_info": (c_void_p, (c_int64,)),
}

# Of netCDF-C, in whichever library netCDF4 has.
_variable = (c_int, c_int)
NETCDF: Mapping[str, Signature] = {
    "nc_def_var_fill": (c_int, (*_variable, c_int, c_void_p)),
    "nc_def_var_filter": (c_int, (*_variable, c_uint, c_size_t, POINTER(c_uint))),
    "nc_enddef": (c_int, (c_int,)),
    "nc_inq_var_fill": (c_int, (*_variable, POINTER(c_int), c_void_p)),
    "nc_inq_var_filter_ids": (c_int, (*_variable, POINTER(c_size_t), POINTER(c_uint))),
    "nc_inq_var_filter_info": (c_int, (*_variable, c_uint, POINTER(c_size_t), POINTER(c_uint))),
    "nc_redef": (c_int, (c_int,)),
    "nc_strerror": (c_char_p, (c_int,)),
}


def declare(library: ctypes.CDLL, functions: Mapping[str, Signature]) -> list[str]:
    """Gives a library's functions their types; names those that it lacks."""
    missing = []
    for name, (result, arguments) in functions.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            missing.append(name)
        else:
            function.restype, function.argtypes = result, arguments
    return missing
