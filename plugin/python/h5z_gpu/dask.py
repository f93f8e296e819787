# SPDX-License-Identifier: MIT OR Apache-2.0
"""The filter in the workers of dask.distributed, which write into datasets that another process has created."""
from __future__ import annotations

from typing import Any

from distributed import WorkerPlugin

from .register import register


class Plugin(WorkerPlugin):
    """`client.register_plugin(h5z_gpu.dask.Plugin())` imports h5z_gpu in every worker, also in those to come."""

    name = "h5z_gpu"

    def setup(self, worker: Any) -> None:
        register()
