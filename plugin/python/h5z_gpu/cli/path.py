# SPDX-License-Identifier: MIT OR Apache-2.0
"""Prints the folder of the plugin."""
import argparse


def add(parser: argparse.ArgumentParser) -> None:
    """No arguments."""


def run(args: argparse.Namespace) -> int:
    """Prints the folder."""
    from ..library import PLUGIN_PATH

    print(PLUGIN_PATH)
    return 0
