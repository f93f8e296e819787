# SPDX-License-Identifier: MIT OR Apache-2.0
# make wasm    decoders of all codecs as WebAssembly, in target/wasm: the module, its interface for JavaScript, and a
#              page that draws a file. Needs clang, for zstd, and binaryen. Rust's library for the target is installed
#              by rustup; where there is none it is compiled from its sources (Debian's rust-web-src), which stable Rust
#              has to be allowed to do.

WASM := wasm32-unknown-unknown
# What Rust's target has, and vectors.
WASM_FEATURES := $(addprefix --enable-,simd bulk-memory sign-ext nontrapping-float-to-int mutable-globals multivalue \
    reference-types)

.PHONY: wasm

# Rust exports zstd's allocator too, and what that needs; metadce leaves what exports.json names.
wasm: rust
	@tests/need.sh clang=clang wasm-opt=binaryen
	@own=$$(rustc --print sysroot)/lib/rustlib; anew=; \
	    if [ ! -d "$$own/$(WASM)" ]; then \
	        if [ -d "$$own/src/rust/library/std" ]; then anew="-Z build-std=std,panic_abort"; export RUSTC_BOOTSTRAP=1; \
	        elif ! { command -v rustup >/dev/null && rustup --quiet target add $(WASM); }; then \
	            echo "Missing: Rust's library for $(WASM). Type:"; \
	            echo "    rustup target add $(WASM), or with Debian's Rust: sudo apt-get install rust-web-src"; exit 1; \
	        fi; fi; \
	    ls "$$own"/*/bin/rust-lld >/dev/null 2>&1 || \
	        { tests/need.sh wasm-ld=lld && export CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER=wasm-ld; }; \
	    RUSTFLAGS="-C target-feature=+simd128" \
	    $(CARGO) build --quiet --profile wasm -p h5z-gpu-wasm --target $(WASM) $$anew
	@mkdir -p target/wasm && cp readers/wasm/h5z_gpu.mjs readers/wasm/view.html target/wasm/
	@wasm-metadce $(WASM_FEATURES) --graph-file readers/wasm/exports.json -o target/wasm/whole.wasm \
	    $(BUILDS)/$(WASM)/wasm/h5z_gpu_wasm.wasm >/dev/null
	@wasm-opt -O3 $(WASM_FEATURES) -o target/wasm/h5z_gpu.wasm target/wasm/whole.wasm && rm target/wasm/whole.wasm
	@echo "target/wasm/h5z_gpu.wasm: $$(wc -c <target/wasm/h5z_gpu.wasm) bytes," \
	    "$$(gzip -9c target/wasm/h5z_gpu.wasm | wc -c) with gzip"
