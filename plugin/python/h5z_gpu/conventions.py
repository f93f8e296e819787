# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the attributes of a file say by its conventions: CF, NUG, COARDS, Unidata's CDM, HDF-EOS5, NeXus.

Values of attributes come in many types: a text is a scalar or an array, of fixed or variable length (netCDF's NC_CHAR
and NC_STRING), bytes or `str`; numbers may be several, or be written as a text. `texts_in` and `numbers_in` are the
one reader of each. All else here rests on them:

    names_in       the variables that `coordinates`, `bounds`, `grid_mapping` and the like name
    is_coordinate  whether attributes say that a variable is a coordinate
    missing_in     the values that stand for missing ones
    limits_in      the limits outside of which readers take a value for missing

Nothing here opens a file or needs h5py: attributes are any mapping, such as `dataset.attrs` or xarray's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Optional

import numpy as np

# Attributes that name variables which the meaning of others rests on. xarray takes all but the first as encodings.
NAMING = ("coordinates", "bounds", "climatology", "grid_mapping", "cell_measures", "formula_terms", "geometry",
          "node_coordinates", "node_count", "part_node_count", "interior_ring", "coordinate_interpolation",
          "interpolation_parameters", "edge_coordinates", "face_coordinates", "volume_coordinates", "_CoordinateAxes",
          "_CoordinateSystems", "_CoordinateTransforms", "axes")
FLAGS = ("flag_values", "flag_masks", "flag_meanings")
ANCILLARY = "ancillary_variables"
# "area: areacella": the word before a colon is a label, not a variable.
_LABELLED = ("cell_measures", "formula_terms", "interpolation_parameters")

# Attributes that only coordinates have. `positive` is none of them: CMIP gives it to fluxes.
_OF_COORDINATES = ("axis", "_CoordinateAxisType", "_CoordinateZisPositive", "_CoordinateAliasForDimension", "bounds",
                   "climatology", "formula_terms", "cf_role")
# CF 4.1 and 4.2 allow six spellings of each; "degrees" alone may be a direction.
NORTH = {"degrees_north", "degree_north", "degree_N", "degrees_N", "degreeN", "degreesN"}
_EAST = {"degrees_east", "degree_east", "degree_E", "degrees_E", "degreeE", "degreesE"}
# "days since 2000-01-01", and CDO's absolute time "day as %Y%m%d.%f".
_TIME = re.compile(r"\s*\w+\s+since\s+\S|\s*\w+\s+as\s+%", re.IGNORECASE)
NORTHWARD = {"latitude", "grid_latitude", "projection_y_coordinate"}
_STANDARD = {"latitude", "longitude", "grid_latitude", "grid_longitude", "time", "forecast_reference_time",
             "forecast_period"}
_COORDINATE = re.compile(r"\w+_coordinate(_g[12])?")  # projection_x_coordinate, ocean_s_coordinate_g2, ...
_FLAG = {"status_flag", "quality_flag"}
# Files without any convention: what readers such as netCDF-Java, GDAL and Panoply go by in the end.
_NAMES = {"lat", "lat2d", "latitude", "lon", "lon2d", "longitude", "nav_lat", "nav_lon", "xlat", "xlong"}
_GEOLOCATION = "Geolocation Fields"  # HDF-EOS5's group of coordinates

# HDF-EOS5 and GPM have names of their own.
MISSING = ("_FillValue", "missing_value", "MissingValue", "CodeMissingValue")
LIMITS = ("valid_range", "valid_min", "valid_max")
SAYING = {*_OF_COORDINATES, *FLAGS, "units", "Units", "standard_name"}
"""All that `is_coordinate` and `is_flag` look at."""


# --- values of attributes ---------------------------------------------------------------------------------------------


def value_of(item: Any, name: str) -> Any:
    """An attribute of an object of h5py; None where there is none, or one that cannot be read."""
    return value_in(item.attrs, name)


def value_in(attributes: Mapping[str, Any], name: str) -> Any:
    """An attribute; None where there is none, or one that cannot be read."""
    try:
        return attributes.get(name)
    except (OSError, TypeError, ValueError, RuntimeError, KeyError):
        return None


def texts_in(value: Any) -> list[str]:
    """All texts in the value of an attribute. Bytes that are no UTF-8 are kept as surrogates; other values are none."""
    if isinstance(value, (str, bytes)):
        found: list[Any] = [value]
    elif isinstance(value, np.ndarray) and value.dtype.kind in "SUO":
        found = value.reshape(-1).tolist()
    elif isinstance(value, (list, tuple)):
        found = list(value)
    else:
        return []
    texts = (v.decode("utf-8", "surrogateescape") if isinstance(v, bytes) else v for v in found)
    return [str(v).rstrip("\0") for v in texts if isinstance(v, str)]


def text_in(value: Any) -> Optional[str]:
    """The text in the value of an attribute, several with blanks between them; None where there is none."""
    found = texts_in(value)
    return " ".join(found) if found else None


def text_of(item: Any, name: str) -> Optional[str]:
    """A text attribute of an object of h5py, or None."""
    return text_in(value_of(item, name))


def numbers_in(value: Any, written: bool = False) -> np.ndarray:
    """All numbers in the value of an attribute, if any, on one axis, in their own type and native order.

    With `written` a text of numbers counts, as `missing_value = "-999."` does in many files.
    """
    if texts := texts_in(value):
        words = re.split(r"[\s,;]+", " ".join(texts).strip()) if written else []
        try:
            return np.array([float(re.sub(r"(?<=[\d.])[fFdD]$", "", word)) for word in words])
        except ValueError:
            return np.zeros(0)
    try:
        found = np.asarray([] if value is None else value).reshape(-1)
    except (TypeError, ValueError):
        return np.zeros(0)
    if found.dtype.kind not in "iuf":
        return np.zeros(0)
    return found.astype(found.dtype.newbyteorder("="), copy=False)


def number_of(item: Any, name: str) -> Optional[float]:
    """A numeric attribute of one element, of an object of h5py; or None."""
    found = numbers_in(value_of(item, name))
    return float(found[0]) if found.size == 1 else None


# --- what is a coordinate ---------------------------------------------------------------------------------------------


def names_in(key: str, value: Any) -> set[str]:
    """The variables that an attribute names, as they are written there: "lat", "../lat", "/grid/lat".

    The attribute is one of NAMING or ANCILLARY: "area: areacella" names one variable, "crs: x y" three.
    """
    names = set()
    for text in texts_in(value):
        names.add(text.strip())  # a name with blanks, such as "Geolocation Fields/Latitude"
        text = re.sub(r"[,;\"'\[\](){}]", " ", text)
        if key in _LABELLED:
            text = re.sub(r"[^\s:]+\s*:", " ", text)
        names.update(text.replace(":", " ").split())
    return names - {"", "."}


def names_by(places: Iterable[Mapping[Any, Any]], keys: Iterable[str]) -> set[str]:
    """The variables that such attributes name, of all these mappings, without the paths before the names."""
    keys = tuple(keys)
    found = (names_in(key, where[key]) for where in places for key in keys if key in where)
    return {name.rsplit("/", 1)[-1] for names in found for name in names}


def is_coordinate(attributes: Mapping[str, Any], path: str = "") -> bool:
    """Whether attributes of a variable, or else its name, say that it is a coordinate: latitude, time and the like.

    `path` is its name, with its groups.
    """
    if any(key in attributes for key in _OF_COORDINATES):
        return True
    units = _get(attributes, "units", "Units") or ""
    if units.strip() in NORTH | _EAST or _TIME.match(units):
        return True
    standard = (_get(attributes, "standard_name") or "").split()
    if len(standard) == 1 and (standard[0] in _STANDARD or _COORDINATE.fullmatch(standard[0])):
        return True
    *groups, name = path.split("/")
    return name.lower() in _NAMES or _GEOLOCATION in groups


def is_flag(attributes: Mapping[str, Any]) -> bool:
    """Whether attributes say that a variable holds flags."""
    standard = (_get(attributes, "standard_name") or "").split()
    return any(key in attributes for key in FLAGS) or (bool(standard) and standard[-1] in _FLAG)


def _get(attributes: Mapping[str, Any], *names: str) -> Optional[str]:
    """The text of the first of these attributes that is there."""
    for name in names:
        if name in attributes:
            try:
                return text_in(attributes[name])
            except (OSError, TypeError, ValueError, RuntimeError, KeyError):
                return None
    return None


# --- what is missing --------------------------------------------------------------------------------------------------


def missing_in(attributes: Mapping[str, Any]) -> np.ndarray:
    """All values that attributes declare as missing, those written as texts too; each in its own type, as objects."""
    found = [number for name in MISSING for number in _numbers(attributes, name).tolist()]
    return np.array(found, object)


def limits_in(attributes: Mapping[str, Any]) -> tuple[list[float], list[float]]:
    """Lower and upper limits of valid values. What has no meaning is left out: NaN, three numbers, a reversed range."""
    low, high = list(_numbers(attributes, "valid_min")), list(_numbers(attributes, "valid_max"))
    low, high = (x if len(x) == 1 else [] for x in (low, high))
    both = _numbers(attributes, "valid_range")
    if both.size == 2:
        low, high = [*low, both[0]], [*high, both[1]]
    pairs = [[float(v) for v in x if not np.isnan(v)] for x in (low, high)]
    if pairs[0] and pairs[1] and max(pairs[0]) > min(pairs[1]):
        return [], []
    return pairs[0], pairs[1]


def _numbers(attributes: Mapping[str, Any], name: str) -> np.ndarray:
    try:
        return numbers_in(attributes[name], written=True) if name in attributes else np.zeros(0)
    except (OSError, TypeError, ValueError, RuntimeError, KeyError):
        return np.zeros(0)
