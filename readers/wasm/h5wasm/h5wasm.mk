# SPDX-License-Identifier: MIT OR Apache-2.0
# make h5wasm    the decoders as a plugin of h5wasm, in target/wasm. A plugin's code lies wherever the program puts it,
#                and Rust's library comes compiled for a fixed place: so it is compiled anew, which needs its sources,
#                and stable Rust has to be allowed to do it. The linker is the toolchain's own, else Debian's. clang as
#                old as Debian 12's (14) makes such code for Emscripten alone, and says nothing where it does not.

.PHONY: h5wasm

H5WASM := target/wasm/libH5Zh5zgpu.so
LIBRARY = $$(rustc --print sysroot)/lib/rustlib

h5wasm: rust
	@tests/need.sh clang=clang
	@[ -d "$(LIBRARY)/src/rust/library/std" ] || { echo "Missing: the sources of Rust's library. Type:"; \
	    echo "    rustup component add rust-src, or with Debian's Rust: sudo apt-get install rust-web-src"; exit 1; }
	@CFLAGS_wasm32_unknown_unknown="-fPIC --target=wasm32-unknown-emscripten -nostdlibinc" RUSTC_BOOTSTRAP=1 \
	    RUSTFLAGS="-C target-feature=+simd128 -C relocation-model=pic -Z unstable-options -C panic=immediate-abort" \
	    $(CARGO) build --quiet --profile wasm -p h5z-gpu-h5wasm --target wasm32-unknown-unknown -Z build-std=std \
	    --target-dir $(BUILDS)/h5wasm
	@mkdir -p target/wasm
	@link=$$(ls $(LIBRARY)/*/bin/gcc-ld/wasm-ld 2>/dev/null | head -n 1); \
	    [ -n "$$link" ] || { tests/need.sh wasm-ld=lld && link=wasm-ld; }; \
	    $$link -shared --experimental-pic --allow-undefined --gc-sections --strip-all --no-export-dynamic \
	    --export=H5PLget_plugin_type --export=H5PLget_plugin_info \
	    $(BUILDS)/h5wasm/wasm32-unknown-unknown/wasm/libh5z_gpu_h5wasm.a -o $(H5WASM)
	@echo "$(H5WASM): $$(wc -c <$(H5WASM)) bytes"
