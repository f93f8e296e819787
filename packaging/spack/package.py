# SPDX-License-Identifier: MIT OR Apache-2.0
from spack_repo.builtin.build_systems.makefile import MakefilePackage

from spack.package import *


class H5zGpu(MakefilePackage):
    """HDF5 filter for floating-point data: error-bounded and lossless compression, on NVIDIA GPUs and CPUs with the
    same bytes."""

    license("MIT OR Apache-2.0")

    # A release adds `homepage`, `url` and version("0.1.0", sha256="..."). Until then: spack dev-build h5z-gpu@0.1.0, in
    # a clone.
    version("0.1.0")

    variant("cuda", default=False, description="Kernels for NVIDIA GPUs; a driver is needed at run time only, and only "
            "for using them")

    depends_on("c", type="build")
    depends_on("rust@1.89:", type="build")
    depends_on("gmake", type="build")
    # Drivers from 525 on take what a compiler of CUDA 12 writes, from 12.8 on for all GPUs.
    depends_on("cuda@12.8:12", type="build", when="+cuda")
    # Not linked: the plugin serves whichever HDF5 loads it. The command line asks those that it finds.
    depends_on("hdf5@1.10:", type="test")

    conflicts("platform=darwin", msg="Linux only")
    conflicts("platform=windows", msg="Linux only")

    def setup_build_environment(self, env):
        if self.spec.satisfies("+cuda"):
            env.set("H5Z_GPU_CUDA", "require")
            env.set("CUDA_HOME", self.spec["cuda"].prefix)
        else:
            env.set("H5Z_GPU_CUDA", "off")

    def build(self, spec, prefix):
        make("plugin")

    def install(self, spec, prefix):
        make("install", f"PREFIX={prefix}")

    def setup_run_environment(self, env):
        env.prepend_path("HDF5_PLUGIN_PATH", self.prefix.lib.join("h5z-gpu").plugin)

    def setup_dependent_build_environment(self, env, dependent_spec):
        env.prepend_path("HDF5_PLUGIN_PATH", self.prefix.lib.join("h5z-gpu").plugin)

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def round_trip(self):
        tool = Executable(self.prefix.bin.join("h5z-gpu"))
        tool("--version")
        tool("words", "abs", "1e-3")
