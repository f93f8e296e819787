# SPDX-License-Identifier: MIT OR Apache-2.0
# The CUDA compiler as a Python package, so that kernels are built on a machine without CUDA: NVRTC of CUDA 12, whose
# code runs on drivers from 525 on. With H5Z_GPU_CUDA=off, or a compiler of your own in H5Z_GPU_NVRTC, H5Z_GPU_NVCC or
# CUDA_HOME, nothing is installed. COMPILER=nvcc takes nvcc of CUDA 13 (drivers from 580 on, no code for 7.0), to
# compare what the two make; all its packages are pinned, since newer companions write PTX that these drivers do not
# take.

NVRTC_PACKAGES := nvidia-cuda-nvrtc-cu12==12.9.86
NVCC_PACKAGES := nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-crt==13.0.88 \
                 nvidia-cuda-runtime==13.0.96 nvidia-cuda-cccl==13.0.85
COMPILER := nvrtc

ifeq ($(filter off,$(H5Z_GPU_CUDA))$(H5Z_GPU_NVRTC)$(H5Z_GPU_NVCC)$(CUDA_HOME)$(CUDA_PATH),)
CUDA_COMPILER := .env/$(COMPILER)
export H5Z_GPU_PYTHON := $(CURDIR)/.env/bin/python
ifeq ($(COMPILER),nvcc)
export H5Z_GPU_NVCC = $(shell ls $(CURDIR)/.env/lib/python3.*/site-packages/nvidia/cu13/bin/nvcc 2>/dev/null)
endif
endif

# Without a network the plugin is still built, for the CPU alone; kernels/build.rs says so.
NO_COMPILER := pip could not install the CUDA compiler (its reason is above), so the plugin is built without GPU \
    kernels. To have them connect to a package index and type make again, or name a compiler: \
    CUDA_HOME=/usr/local/cuda make
.env/nvrtc: gpu.mk | .env/made
	@echo "A Python package for the kernels (90 MB)"
	@$(PIP) $(NVRTC_PACKAGES) && touch $@ || echo "$(NO_COMPILER)"

.env/nvcc: gpu.mk | .env/made
	@echo "Python packages for the kernels (104 MB)"
	@$(PIP) $(NVCC_PACKAGES) && touch $@ || echo "$(NO_COMPILER)"

# --- the GPU code on another machine -----------------------------------------------------------------------------
# Everything that checks and times it, in one folder; run.sh there prints a page and writes record.toml, which belongs
# into tests/gpu. WITH_PEERS=1 adds hdf5plugin's Blosc2, ZFP and SZ3, without their debug symbols, to be timed beside.

BUNDLE := target/gpu-bundle
.PHONY: gpu-bundle gpu-record-check

gpu-bundle: $(PLUGIN) $(if $(WITH_PEERS),.env/made)
	@H5Z_GPU_CUDA=require $(CARGO) build --quiet --profile $(PROFILE) -p h5z-gpu-tools --bin gpu_check --bin gpu_bench
	@rm -rf $(BUNDLE) && mkdir -p $(BUNDLE)/plugin
	@cp $(PLUGIN) $(BUNDLE)/plugin/
	@cp target/$(PROFILE)/gpu_check target/$(PROFILE)/gpu_bench $(BUNDLE)/
	@cp -r tests/vectors/v2 $(BUNDLE)/vectors
	@cp tests/gpu/*.py tests/gpu/run.sh tests/bench/unchanged.py $(BUNDLE)/
	@$(CC) -std=c11 -O2 -shared -fPIC -pthread -Iplugin/include -o $(BUNDLE)/libdevice_buffer.so \
	    tests/gpu/device_buffer.c -L$(BUNDLE)/plugin -l:libh5zgpu.so '-Wl,-rpath,$$ORIGIN/plugin'
	@cp -r target/bin target/preload $(BUNDLE)/
	@mkdir $(BUNDLE)/h5z_gpu && cp plugin/python/h5z_gpu/*.py $(BUNDLE)/h5z_gpu/
	@tests/gpu/sources.sh >$(BUNDLE)/sources.txt
	@$(if $(WITH_PEERS),$(PIP) --no-deps --target $(BUNDLE)/peers --python-version 3.12 \
	    --platform manylinux_2_28_x86_64 hdf5plugin==7.1.0)
	@$(if $(WITH_PEERS),cd $(BUNDLE)/peers/hdf5plugin/plugins && ls | grep -vE 'h5(blosc2|zfp|sz3)\.so' | xargs rm -f \
	    && strip --strip-unneeded *.so)
	@tar czf $(BUNDLE).tgz -C $(dir $(BUNDLE)) $(notdir $(BUNDLE))
	@test $$(du -m $(BUNDLE).tgz | cut -f1) -le 60 || { echo "$(BUNDLE).tgz is larger than 60 MiB"; exit 1; }
	@grep -qE '(NVRTC|nvcc) [0-9]+\.[0-9]' $(BUNDLE)/plugin/libh5zgpu.so \
	    || { echo "The plugin was built without GPU code."; exit 1; }
	@echo "$(BUNDLE).tgz: $$(du -m $(BUNDLE).tgz | cut -f1) MiB.  Unpack it on a machine with a GPU, ./run.sh in it"

gpu-record-check:
	@tests/gpu/record.sh
