# SPDX-License-Identifier: MIT OR Apache-2.0
# make big-endian   unit tests, golden vectors, refused frames and broken rules on s390x, a big-endian machine, under
#                   qemu
# make wine         unit tests, golden vectors and refused frames as a program for Windows, under Wine
# make musl         unit tests, golden vectors and refused frames with musl, the C library of Alpine Linux
# make miri         stages and readers under Miri, for s390x too: undefined behaviour

.PHONY: big-endian miri wine musl

BIG     := s390x-unknown-linux-gnu
NIGHTLY ?= nightly
# The library alone: no kernels, no command line.
PLAIN   := -p h5z-gpu --no-default-features
UNITS   := -p h5z-gpu-codecs -p h5z-gpu --no-default-features --lib
VECTORS := --test promises -- every_vector refused::
ON_BIG  := H5Z_GPU_CUDA=off CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_LINKER=s390x-linux-gnu-gcc
# Not for Miri, which runs programs itself.
QEMU    := CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_RUNNER="qemu-s390x -L /usr/s390x-linux-gnu"
# Round trips of many random chunks take minutes under qemu; the vectors take the same ways.
SLOW    := $(addprefix --skip ,any_bits_keep every_bit_comes_back every_size_and_length a_damaged_tile any_damage_ends \
    bytes_and_values_depend damage_behind)
# Miri interprets: small tests, and nothing that calls zstd, which is C.
SMALL   := bound:: codebook:: ::format:: stage::lorenzo:: stage::quantize:: stored:: scalar::

big-endian: rust
	@tests/need.sh qemu-s390x=qemu-user s390x-linux-gnu-gcc=gcc-s390x-linux-gnu \
	    /usr/s390x-linux-gnu/include/stdio.h=libc6-dev-s390x-cross
	@rustup --quiet target add $(BIG)
	@$(ON_BIG) $(QEMU) $(CARGO) test --target $(BIG) $(UNITS) -- $(SLOW)
	@$(ON_BIG) $(QEMU) $(CARGO) test --target $(BIG) $(PLAIN) $(VECTORS) rules::

miri: rust
	@tests/need.sh s390x-linux-gnu-gcc=gcc-s390x-linux-gnu /usr/s390x-linux-gnu/include/stdio.h=libc6-dev-s390x-cross
	@rustup --quiet component add --toolchain $(NIGHTLY) miri rust-src
	@$(ON_BIG) MIRIFLAGS=-Zmiri-disable-isolation $(CARGO) +$(NIGHTLY) miri test \
	    --target-dir target/miri --target $(BIG) $(UNITS) -- $(SMALL)

# Wine's folder is made anew by each Wine; Debian 12's lacks a library that every program of Rust's asks for.
WINDOWS := x86_64-pc-windows-gnu
PREFIX_OF_WINE := $(CURDIR)/target/wine
wine: rust
	@tests/need.sh x86_64-w64-mingw32-gcc=gcc-mingw-w64-x86-64 wine=wine /usr/lib/wine/wine64=wine64
	@rustup --quiet target add $(WINDOWS)
	@mkdir -p target && WINEPREFIX=$(PREFIX_OF_WINE) WINEDEBUG=-all wine wineboot -i >/dev/null 2>&1
	@x86_64-w64-mingw32-gcc -shared -O2 -s -o $(PREFIX_OF_WINE)/drive_c/windows/system32/bcryptprimitives.dll \
	    tests/wine/bcryptprimitives.c -ladvapi32
	@for what in "$(UNITS)" "$(PLAIN) $(VECTORS)"; do \
	    H5Z_GPU_CUDA=off WINEPREFIX=$(PREFIX_OF_WINE) WINEDEBUG=-all CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER=wine \
	    $(CARGO) test --target $(WINDOWS) --features h5z-gpu/testing,h5z-gpu/judge $$what || exit 1; done

# Zig brings what to link with; Debian has musl itself, which runs what was linked. packaging/wheel.mk names the target.
musl: rust .env/zig
	@tests/need.sh /lib/ld-musl-x86_64.so.1=musl
	@[ -d "$$(rustc --print sysroot)/lib/rustlib/$(MUSL)" ] || rustup --quiet target add $(MUSL)
	@for what in "$(UNITS)" "$(PLAIN) $(VECTORS)"; do \
	    PATH="$(CURDIR)/.env/bin:$$PATH" $(MUSL_FLAGS) cargo-zigbuild test --target $(MUSL) \
	    --features h5z-gpu/testing,h5z-gpu/judge $$what || exit 1; done
