# SPDX-License-Identifier: MIT OR Apache-2.0
"""Names of attributes by which CF says what a variable is for."""

from __future__ import annotations

# Attributes that name variables which the meaning of others rests on.
NAMING = ("coordinates", "bounds", "climatology", "grid_mapping", "cell_measures", "formula_terms", "geometry",
          "node_coordinates", "node_count", "part_node_count", "interior_ring")
FLAGS = ("flag_values", "flag_masks", "flag_meanings")
ANCILLARY = "ancillary_variables"


def names_in(text: str) -> set[str]:
    """The variables that such an attribute names, as in "area: areacella"."""
    return {word.rstrip(":") for word in text.split()}
