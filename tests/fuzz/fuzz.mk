# SPDX-License-Identifier: MIT OR Apache-2.0
# make fuzz SECONDS=600 K=planes    libFuzzer over frames, words and the C interface; every target without K.
#                                   JOBS=16 processes, ASAN=1 under AddressSanitizer. See CONTRIBUTING.md
# make hostile CASES=1e6            valid frames changed at random, by the crate and the C interface; JOBS, SEED, ASAN.
#                                   LEAVE=target/tmp/readers/hostile writes them with the crate's answers instead

.PHONY: fuzz hostile

FUZZ_HOST := $(shell rustc -vV 2>/dev/null | sed -n 's/^host: //p')
# What clang's -fsanitize=fuzzer asks of LLVM. A counter for each edge; the checks of a debug build are in the profile.
COVER := -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-simplifycfg-branch-fold-threshold=0
# Without GPU code some functions of the library have no caller.
COVER += -Adead_code
# A stable compiler has the sanitizer's runtime, and takes the option where it is told to. The library at -O3 would take
# LLVM three times as long.
ASANS := $(if $(ASAN),-Zsanitizer=address)
LESS  := $(if $(ASAN),--config profile.fuzz.package.h5z-gpu.opt-level=1)
FUZZ  := target/fuzz$(if $(ASAN),-asan)
# Memory that the words of a file promise may be more than there is: that is an answer, not a crash. libdeflate has the
# same constants in several objects, which the sanitizer reports as soon as the program starts.
ASAN_SAYS := ASAN_OPTIONS=allocator_may_return_null=1:detect_odr_violation=0

fuzz: rust
	@tests/need.sh c++=g++
	@$(if $(ASAN),RUSTC_BOOTSTRAP=1) RUSTFLAGS="$(COVER) $(ASANS)" $(CARGO) build --quiet --target-dir $(FUZZ) \
	    --target $(FUZZ_HOST) -p h5z-gpu-fuzz --features libfuzzer --profile fuzz $(LESS) \
	    --bin fuzz_frames --bin fuzz_words --bin fuzz_calls
	@H5Z_GPU_FUZZ_SEEDS=$(FUZZ)/seeds $(FUZZ)/$(FUZZ_HOST)/fuzz/fuzz_calls >/dev/null
	@BIN=$(FUZZ)/$(FUZZ_HOST)/fuzz SEEDS=$(FUZZ)/seeds OUT=$(FUZZ)/out \
	    tests/fuzz/run.sh $(or $(SECONDS),600) $(or $(JOBS),1) $(K)

hostile: rust
	@$(if $(ASAN),RUSTC_BOOTSTRAP=1) RUSTFLAGS="$(ASANS)" $(CARGO) build --quiet --target-dir $(FUZZ) \
	    --target $(FUZZ_HOST) -p h5z-gpu-fuzz --profile $(if $(ASAN),fuzz,release) $(LESS) --bin hostile
	@$(if $(LEAVE),mkdir -p $(dir $(LEAVE)))
	@$(ASAN_SAYS) $(FUZZ)/$(FUZZ_HOST)/$(if $(ASAN),fuzz,release)/hostile \
	    $(if $(LEAVE),--leave $(LEAVE) $(or $(SEED),443) $(or $(CASES),5e4), \
	    $(or $(CASES),1e6) $(or $(JOBS),1) $(or $(SEED),443))
