# SPDX-License-Identifier: MIT OR Apache-2.0
from spack_repo.builtin.build_systems.makefile import MakefilePackage

from spack.package import *


class H5zGpu(MakefilePackage):
    """HDF5 filter for floating-point data: error-bounded and lossless compression, on NVIDIA GPUs
    and CPUs with the same bytes."""

    license("MIT OR Apache-2.0")

    # A release adds `homepage`, `url`, maintainers(...) and version("0.1.0", sha256="..."). Until
    # then: spack dev-build h5z-gpu@0.1.0, in a clone.
    version("0.1.0")

    variant(
        "cuda", default=False, description="Kernels for NVIDIA GPUs; a driver is used at run time"
    )

    depends_on("c", type="build")
    depends_on("rust@1.89:", type="build")
    # Drivers from 525 on take what a compiler of CUDA 12 writes, from 12.8 on for all GPUs.
    depends_on("cuda@12.8:12", type="build", when="+cuda")
    # Not linked: the plugin serves whichever HDF5 loads it. The command line asks those it finds.
    depends_on("hdf5@1.10:", type="test")

    # Wheels for macOS are built on Linux and were never run there; a build on macOS itself was never tried.
    conflicts("platform=darwin", msg="not tried on macOS: the project builds wheels for it, make wheel-macos")

    build_targets = ["plugin"]
    # `make test` and `make check` install what they need from networks: not here.
    build_time_test_callbacks = []
    install_time_test_callbacks = []

    def setup_build_environment(self, env: EnvironmentModifications) -> None:
        if self.spec.satisfies("+cuda"):
            env.set("H5Z_GPU_CUDA", "require")
            env.set("CUDA_HOME", self.spec["cuda"].prefix)
        else:
            env.set("H5Z_GPU_CUDA", "off")

    @property
    def install_targets(self):
        return ["install", f"PREFIX={self.prefix}"]

    def setup_run_environment(self, env: EnvironmentModifications) -> None:
        env.prepend_path("HDF5_PLUGIN_PATH", self.prefix.lib.join("h5z-gpu").plugin)

    def setup_dependent_build_environment(
        self, env: EnvironmentModifications, dependent_spec: Spec
    ) -> None:
        env.prepend_path("HDF5_PLUGIN_PATH", self.prefix.lib.join("h5z-gpu").plugin)

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def round_trip(self):
        tool = Executable(self.prefix.bin.join("h5z-gpu"))
        tool("--version")
        tool("words", "abs", "1e-3")
