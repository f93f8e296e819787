# SPDX-License-Identifier: MIT OR Apache-2.0
"""The C interface of libh5zgpu.so for ctypes: `h5z_gpu.h`, and what the package calls of HDF5 and netCDF.

Types of C functions stand here alone. `declare` gives them to a library once, where it is loaded; from then on ctypes
converts Python's numbers by itself and refuses what is no number. tests/hosts/test_capi.py compares this file with the
header.

C's types as they are written here: `const` is left out; a pointer to a number or a struct is POINTER(...); `char *`, a
text, is c_char_p; `void *`, a pointer to an opaque struct, and a pointer to a function are c_void_p. For a pointer to
numbers a caller gives an array of ctypes, `byref(...)`, `views.numbers(array, type)` or None.
"""
from __future__ import annotations

import ctypes
from collections.abc import Mapping
from ctypes import (
    POINTER, c_bool, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_uint, c_uint8, c_uint32, c_uint64,
    c_void_p,
)
from typing import Any

# enum h5z_gpu_failure: what a function answers, and the status of a frame.
FAILED, DAMAGED, IO, NO_MEMORY, OTHER_WAY = -1, -2, -3, -4, -5

# Numbers that the header defines.
WORDS_MAX = 20
READ_ONLY, EVERY_DEVICE = 1, 2  # flags of an array
SPECIAL, BROKEN = 1, 2  # marks of values that were judged
KEEP_SIGN, KEEP_ZERO, KEEP_RANGE = 1, 2, 4  # what is kept beside a bound


class Array(ctypes.Structure):
    """h5z_gpu_array: an array in memory."""

    _fields_ = [("data", c_void_p), ("device", c_int32), ("flags", c_uint32), ("type", c_char_p), ("rank", c_size_t),
                ("shape", POINTER(c_uint64)), ("strides", POINTER(c_int64)), ("stream", c_void_p)]


class Frame(ctypes.Structure):
    """h5z_gpu_frame: what a frame says of itself."""

    _fields_ = [("status", c_int32), ("version", c_uint8), ("codec", c_uint8), ("mode", c_uint8), ("element", c_uint8),
                ("draft", c_uint32), ("raw_len", c_uint64), ("bound", c_double)]


class Chunks(ctypes.Structure):
    """h5z_gpu_chunks: a list of a dataset's chunks."""

    _fields_ = [("count", c_size_t), ("origins", POINTER(c_uint64)), ("at", POINTER(c_uint64)),
                ("lens", POINTER(c_uint64)),
                ("masks", POINTER(c_uint32)), ("wrong", c_char_p), ("twice_count", c_size_t),
                ("twice", POINTER(c_uint64))]


class Verdict(ctypes.Structure):
    """h5z_gpu_verdict: what a comparison of values with their originals found."""

    _fields_ = [*((name, c_uint64) for name in ("judged", "nan", "infinite", "fill", "special_broken", "broken")),
                ("kept_broken", c_uint64 * 3), ("first", c_int64), ("into_fill", c_uint64), ("noisy", c_int),
                ("has_range", c_int),
                *((name, c_double) for name in ("limit", "worst", "psnr")), ("range", c_double * 2)]


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
    "h5z_gpu_encode_batch": (c_int64, (*_described, c_size_t, POINTER(c_void_p), c_size_t, POINTER(c_void_p), c_size_t,
                                       POINTER(c_int64))),
    "h5z_gpu_raw_len": (c_int64, (c_void_p, c_size_t)),
    "h5z_gpu_decode": (c_int64, (c_void_p, c_size_t, c_void_p, c_size_t)),
    "h5z_gpu_decode_batch": (c_int64, (c_size_t, POINTER(c_void_p), POINTER(c_size_t), POINTER(c_void_p),
                                       POINTER(c_size_t), POINTER(c_int))),
    "h5z_gpu_device_of": (c_int64, (c_void_p,)),
    "h5z_gpu_enter_device": (c_int64, (c_int,)),
    "h5z_gpu_leave_device": (None, ()),
    "h5z_gpu_encode_array": (c_int64, (*_words, _array, POINTER(c_uint64), c_void_p, c_size_t, _places, c_int,
                                       POINTER(c_void_p))),
    "h5z_gpu_next": (c_int64, (c_void_p, POINTER(POINTER(c_void_p)), POINTER(POINTER(c_size_t)))),
    "h5z_gpu_end": (None, (POINTER(c_void_p),)),
    "h5z_gpu_range": (c_int64, (_array, POINTER(c_uint64), c_void_p, c_size_t, _places, c_int, POINTER(c_double))),
    "h5z_gpu_read_dataset": (c_int64, (*_dataset, c_int64, POINTER(c_uint64), _array, c_int, c_int, POINTER(c_void_p))),
    "h5z_gpu_write_dataset": (c_int64, (*_dataset, c_int64, POINTER(c_uint64), _array, c_int, POINTER(c_void_p))),
    "h5z_gpu_step": (c_int64, (c_void_p,)),
    "h5z_gpu_special_chunks": (c_int64, (c_void_p, c_size_t, POINTER(POINTER(c_uint64)))),
    "h5z_gpu_end_transfer": (None, (POINTER(c_void_p),)),
    "h5z_gpu_list_chunks": (c_int64, (*_dataset, c_int, c_void_p, c_void_p, POINTER(POINTER(Chunks)))),
    "h5z_gpu_end_chunks": (None, (POINTER(POINTER(Chunks)),)),
    "h5z_gpu_find_chunks": (c_int64, (*_dataset, c_size_t, c_size_t, *2 * (POINTER(c_uint64),))),
    "h5z_gpu_raw_chunk": (c_int64, (c_int, c_uint64, c_uint64, c_uint64)),
    "h5z_gpu_decode_file": (c_int64, (c_int, c_size_t, *2 * (POINTER(c_uint64),), _array, POINTER(c_uint64), _places,
                                      c_int, POINTER(c_int))),
    "h5z_gpu_decode_memory": (c_int64, (c_size_t, POINTER(c_void_p), POINTER(c_size_t), _array, POINTER(c_uint64),
                                        _places, c_int, POINTER(c_int))),
    "h5z_gpu_copy": (c_int64, (_array, _array)),
    "h5z_gpu_frames": (c_int64, (c_int, c_size_t, *2 * (POINTER(c_uint64),), c_uint64, c_int, c_int, POINTER(Frame))),
    "h5z_gpu_judge": (c_int64, (c_int, c_double, c_uint32, c_char_p, c_void_p, c_size_t, c_void_p, c_void_p, c_int,
                                POINTER(c_double), POINTER(c_uint8), POINTER(Verdict))),
    "h5z_gpu_hdf5_folders": (c_int64, (c_char_p, c_size_t)),
    "h5z_gpu_status": (c_int64, (c_char_p, c_size_t)),
    "h5z_gpu_device_chunks": (c_int64, (c_int,)),
    "h5z_gpu_release_memory": (c_int64, ()),
}

# What HDF5 asks of a plugin. The struct that it answers is for HDF5 alone.
PLUGIN: Mapping[str, Signature] = {"H5PLget_plugin_info": (c_void_p, ())}

# Of HDF5, in whichever library h5py has. Older ones lack some. `hid` is hid_t, which stands for any open object.
_hid, _lists = c_int64, (c_int64, c_int64)
_region = (c_int64, c_char_p, c_int64, c_int64, c_void_p)
HDF5: Mapping[str, Signature] = {
    "H5Acreate2": (c_int64, (_hid, c_char_p, _hid, _hid, *_lists)),
    "H5Aget_space": (c_int64, (_hid,)),
    "H5Aget_type": (c_int64, (_hid,)),
    "H5Aopen": (c_int64, (_hid, c_char_p, c_int64)),
    "H5Aread": (c_int, (_hid, _hid, c_void_p)),
    "H5Awrite": (c_int, (_hid, _hid, c_void_p)),
    "H5Dcreate2": (c_int64, (_hid, c_char_p, _hid, _hid, c_int64, *_lists)),
    "H5Dcreate_anon": (c_int64, (_hid, _hid, _hid, *_lists)),
    "H5Dget_chunk_index_type": (c_int, (_hid, POINTER(c_int))),
    "H5Dget_chunk_storage_size": (c_int, (_hid, POINTER(c_uint64), POINTER(c_uint64))),
    "H5Dread": (c_int, (_hid, _hid, _hid, _hid, c_int64, c_void_p)),
    "H5Dvlen_reclaim": (c_int, (_hid, _hid, c_int64, c_void_p)),
    "H5Dwrite": (c_int, (_hid, _hid, _hid, _hid, c_int64, c_void_p)),
    "H5Ewalk2": (c_int, (c_int64, c_int, c_void_p, c_void_p)),
    "H5Fget_free_sections": (c_int64, (_hid, c_int, c_size_t, c_void_p)),
    "H5Fget_info2": (c_int, (_hid, c_void_p)),
    "H5Fset_libver_bounds": (c_int, (_hid, c_int, c_int)),
    "H5Gcreate2": (c_int64, (_hid, c_char_p, c_int64, *_lists)),
    "H5Gcreate_anon": (c_int64, (_hid, *_lists)),
    "H5Idec_ref": (c_int, (_hid,)),
    "H5Iget_type": (c_int, (_hid,)),
    "H5Lcreate_external": (c_int, (c_char_p, c_char_p, _hid, c_char_p, *_lists)),
    "H5Lcreate_soft": (c_int, (c_char_p, _hid, c_char_p, *_lists)),
    "H5Lcreate_ud": (c_int, (_hid, c_char_p, c_int, c_void_p, c_size_t, *_lists)),
    "H5Lget_val": (c_int, (_hid, c_char_p, c_void_p, c_size_t, c_int64)),
    "H5Lis_registered": (c_int, (c_int,)),
    "H5Lregister": (c_int, (c_void_p,)),
    "H5Ocopy": (c_int, (_hid, c_char_p, _hid, c_char_p, *_lists)),
    "H5Oget_comment": (c_int64, (_hid, c_void_p, c_size_t)),
    "H5Oget_info3": (c_int, (_hid, c_void_p, c_uint)),
    "H5Oget_native_info": (c_int, (_hid, c_void_p, c_uint)),
    "H5Olink": (c_int, (_hid, _hid, c_char_p, *_lists)),
    "H5Oopen_by_addr": (c_int64, (_hid, c_uint64)),
    "H5Oset_comment": (c_int, (_hid, c_char_p)),
    "H5Pcreate": (c_int64, (_hid,)),
    "H5Pencode": (c_int, (_hid, c_void_p, POINTER(c_size_t))),
    "H5Pencode1": (c_int, (_hid, c_void_p, POINTER(c_size_t))),
    "H5Pequal": (c_int, (_hid, _hid)),
    "H5Pget_attr_creation_order": (c_int, (_hid, POINTER(c_uint))),
    "H5Pget_attr_phase_change": (c_int, (_hid, *2 * (POINTER(c_uint),))),
    "H5Pget_chunk_opts": (c_int, (_hid, POINTER(c_uint))),
    "H5Pget_driver_info": (c_void_p, (_hid,)),
    "H5Pget_est_link_info": (c_int, (_hid, *2 * (POINTER(c_uint),))),
    "H5Pget_fill_value": (c_int, (_hid, _hid, c_void_p)),
    "H5Pget_filter2": (c_int, (_hid, c_uint, POINTER(c_uint), POINTER(c_size_t), POINTER(c_uint), c_size_t, c_void_p,
                               c_void_p)),
    "H5Pget_istore_k": (c_int, (_hid, POINTER(c_uint))),
    "H5Pget_link_creation_order": (c_int, (_hid, POINTER(c_uint))),
    "H5Pget_link_phase_change": (c_int, (_hid, *2 * (POINTER(c_uint),))),
    "H5Pget_local_heap_size_hint": (c_int, (_hid, POINTER(c_size_t))),
    "H5Pget_nfilters": (c_int, (_hid,)),
    "H5Pget_obj_track_times": (c_int, (_hid, POINTER(c_bool))),
    "H5Pget_shared_mesg_index": (c_int, (_hid, c_uint, *2 * (POINTER(c_uint),))),
    "H5Pget_shared_mesg_nindexes": (c_int, (_hid, POINTER(c_uint))),
    "H5Pget_shared_mesg_phase_change": (c_int, (_hid, *2 * (POINTER(c_uint),))),
    "H5Pget_sym_k": (c_int, (_hid, *2 * (POINTER(c_uint),))),
    "H5Pset_attr_creation_order": (c_int, (_hid, c_uint)),
    "H5Pset_attr_phase_change": (c_int, (_hid, c_uint, c_uint)),
    "H5Pset_char_encoding": (c_int, (_hid, c_int)),
    "H5Pset_est_link_info": (c_int, (_hid, c_uint, c_uint)),
    "H5Pset_fill_value": (c_int, (_hid, _hid, c_void_p)),
    "H5Pset_filter": (c_int, (_hid, c_int, c_uint, c_size_t, POINTER(c_uint))),
    "H5Pset_link_creation_order": (c_int, (_hid, c_uint)),
    "H5Pset_link_phase_change": (c_int, (_hid, c_uint, c_uint)),
    "H5Pset_local_heap_size_hint": (c_int, (_hid, c_size_t)),
    "H5Pset_obj_track_times": (c_int, (_hid, c_bool)),
    "H5Pset_relax_file_integrity_checks": (c_int, (_hid, c_uint64)),
    "H5Rcreate": (c_int, (c_void_p, _hid, c_char_p, c_int, _hid)),
    "H5Rcreate_attr": (c_int, (_hid, c_char_p, c_char_p, c_int64, c_void_p)),
    "H5Rcreate_object": (c_int, (_hid, c_char_p, c_int64, c_void_p)),
    "H5Rcreate_region": (c_int, _region),
    "H5Rdereference2": (c_int64, (_hid, c_int64, c_int, c_void_p)),
    "H5Rdestroy": (c_int, (c_void_p,)),
    "H5Rget_attr_name": (c_int64, (c_void_p, c_void_p, c_size_t)),
    "H5Rget_region": (c_int64, (_hid, c_int, c_void_p)),
    "H5Rget_type": (c_int, (c_void_p,)),
    "H5Ropen_object": (c_int64, (c_void_p, *_lists)),
    "H5Ropen_region": (c_int64, (c_void_p, *_lists)),
    "H5Sextent_equal": (c_int, (_hid, _hid)),
    "H5Sget_simple_extent_npoints": (c_int64, (_hid,)),
    "H5Tcommit_anon": (c_int, (_hid, _hid, *_lists)),
    "H5Tcommitted": (c_int, (_hid,)),
    "H5Tequal": (c_int, (_hid, _hid)),
    "H5Tget_class": (c_int, (_hid,)),
    "H5Tget_create_plist": (c_int64, (_hid,)),
    "H5Tget_size": (c_size_t, (_hid,)),
    "H5Tis_variable_str": (c_int, (_hid,)),
    "H5Treclaim": (c_int, (_hid, _hid, c_int64, c_void_p)),
    "H5Tregister": (c_int, (c_int, c_char_p, _hid, _hid, c_void_p)),
    "H5Tunregister": (c_int, (c_int, c_char_p, _hid, _hid, c_void_p)),
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
