# SPDX-License-Identifier: MIT OR Apache-2.0
"""h5z-gpu among the compressors of ClimateBenchPress: import this before its script `compress` runs.

    python -c "import climate_bench_press, runpy
    runpy.run_module('climatebenchpress.compressor.scripts.compress', run_name='__main__')"
"""
from climatebenchpress.compressor.compressors.abc import Compressor

import h5z_gpu.numcodecs


class H5zGpu(Compressor):
    """Both kinds of bound, each as it is. `small` asks for the shortest frame of all codecs: the table ranks ratios."""

    name = "h5z-gpu"
    description = "h5z-gpu"

    @staticmethod
    def abs_bound_codec(error_bound, **kwargs):
        return h5z_gpu.numcodecs.Compressor(h5z_gpu.Lossy(absolute=error_bound, codec="small"))

    @staticmethod
    def rel_bound_codec(error_bound, **kwargs):
        return h5z_gpu.numcodecs.Compressor(h5z_gpu.Lossy(pointwise_relative=error_bound, codec="small"))
