# SPDX-License-Identifier: MIT OR Apache-2.0
# make wasm    decoders of all codecs as WebAssembly, in target/wasm: the module, its interface for JavaScript, and a
#              page that draws a file. Needs clang, for zstd, and binaryen; a rustup installs Rust's library for the
#              target.

WASM := wasm32-unknown-unknown
# What Rust's target has, and vectors.
WASM_FEATURES := $(addprefix --enable-,simd bulk-memory sign-ext nontrapping-float-to-int mutable-globals multivalue \
    reference-types)

.PHONY: wasm

# Rust exports zstd's allocator too, and what that needs; metadce leaves what exports.json names.
wasm: rust
	@tests/need.sh clang=clang wasm-opt=binaryen
	@[ -d "$$(rustc --print sysroot)/lib/rustlib/$(WASM)" ] || rustup --quiet target add $(WASM) || \
	    { echo "Missing: Rust's library for $(WASM). Type: rustup target add $(WASM)"; exit 1; }
	@RUSTFLAGS="-C target-feature=+simd128" $(CARGO) build --quiet --profile wasm -p h5z-gpu-wasm --target $(WASM)
	@mkdir -p target/wasm && cp wasm/h5z_gpu.mjs wasm/view.html target/wasm/
	@wasm-metadce $(WASM_FEATURES) --graph-file wasm/exports.json -o target/wasm/whole.wasm \
	    $(BUILDS)/$(WASM)/wasm/h5z_gpu_wasm.wasm >/dev/null
	@wasm-opt -O3 $(WASM_FEATURES) -o target/wasm/h5z_gpu.wasm target/wasm/whole.wasm && rm target/wasm/whole.wasm
	@echo "target/wasm/h5z_gpu.wasm: $$(wc -c <target/wasm/h5z_gpu.wasm) bytes," \
	    "$$(gzip -9c target/wasm/h5z_gpu.wasm | wc -c) with gzip"
