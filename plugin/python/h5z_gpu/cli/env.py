# SPDX-License-Identifier: MIT OR Apache-2.0
"""Prints the shell's line that lets other programs find the plugin: eval "$(h5z-gpu env)"

The line sets HDF5_PLUGIN_PATH to the plugin's folder, then the folders that are set, or that HDF5 searches without the variable.
"""
import argparse
import os
import shlex


def add(parser: argparse.ArgumentParser) -> None:
    """No arguments."""


def run(args: argparse.Namespace) -> int:
    """Prints the line."""
    from .. import library  # noqa: F401  the import has set the variable, or says why it cannot

    print(f"export HDF5_PLUGIN_PATH={shlex.quote(os.environ['HDF5_PLUGIN_PATH'])}")
    return 0
