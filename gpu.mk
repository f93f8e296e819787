# SPDX-License-Identifier: MIT OR Apache-2.0
# The CUDA compiler as Python packages, so that kernels are built on a machine without CUDA. Five packages, all pinned: newer
# companions write PTX that drivers of CUDA 13.0 do not take. H5Z_GPU_CUDA=off, or an nvcc of your own in H5Z_GPU_NVCC or
# CUDA_HOME, and nothing is installed.

NVCC_PACKAGES := nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-crt==13.0.88 \
                 nvidia-cuda-runtime==13.0.96 nvidia-cuda-cccl==13.0.85

ifeq ($(filter off,$(H5Z_GPU_CUDA))$(H5Z_GPU_NVCC)$(CUDA_HOME)$(CUDA_PATH),)
NVCC := .env/nvcc
export H5Z_GPU_PYTHON := $(CURDIR)/.env/bin/python
endif

# Without a network the plugin is still built, for the CPU alone; build.rs says so.
.env/nvcc: gpu.mk | .env/made
	@echo "Python packages for the kernels (104 MB)"
	@$(PIP) $(NVCC_PACKAGES) && touch $@ || echo "The CUDA compiler could not be installed."
