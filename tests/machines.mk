# SPDX-License-Identifier: MIT OR Apache-2.0
# make big-endian   unit tests, golden vectors, refused frames and broken rules on s390x, a big-endian machine, under
#                   qemu
# make miri         stages and readers under Miri, for s390x too: undefined behaviour

.PHONY: big-endian miri

BIG     := s390x-unknown-linux-gnu
NIGHTLY ?= nightly
# The library alone: no kernels, no command line.
PLAIN   := -p h5z-gpu --no-default-features
ON_BIG  := H5Z_GPU_CUDA=off CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_LINKER=s390x-linux-gnu-gcc \
    CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_RUNNER="qemu-s390x -L /usr/s390x-linux-gnu"
# Round trips of many random chunks take minutes under qemu; the vectors take the same ways.
SLOW    := $(addprefix --skip ,any_bits_keep every_bit_comes_back every_size_and_length a_damaged_tile any_damage_ends \
    bytes_and_values_depend damage_behind)
# Miri interprets: small tests, and nothing that calls zstd, which is C.
SMALL   := bound:: codebook:: ::format:: stage::lorenzo:: stage::quantize:: stored:: scalar::

big-endian: rust
	@tests/need.sh qemu-s390x=qemu-user s390x-linux-gnu-gcc=gcc-s390x-linux-gnu \
	    /usr/s390x-linux-gnu/include/stdio.h=libc6-dev-s390x-cross
	@rustup --quiet target add $(BIG)
	@$(ON_BIG) $(CARGO) test --target $(BIG) $(PLAIN) --lib --test conformance --test refused --test rules -- $(SLOW)

miri: rust
	@tests/need.sh s390x-linux-gnu-gcc=gcc-s390x-linux-gnu /usr/s390x-linux-gnu/include/stdio.h=libc6-dev-s390x-cross
	@rustup --quiet component add --toolchain $(NIGHTLY) miri rust-src
	@$(ON_BIG) MIRIFLAGS=-Zmiri-disable-isolation $(CARGO) +$(NIGHTLY) miri test \
	    --target-dir target/miri --target $(BIG) $(PLAIN) \
	    --lib -- $(SMALL)
