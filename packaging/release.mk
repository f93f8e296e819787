# SPDX-License-Identifier: MIT OR Apache-2.0
# make release    everything that is published, in target/h5z-gpu-VERSION (target/release is cargo's own): wheels,
#                 sdist, jar, modules for WebAssembly, Debian's packages, plugins alone, licences of crates, SBOMs by
#                 cargo-cyclonedx, SHA256SUMS. Then the checks of packaging/check/test_release.py.
#                 ARTEFACTS="sdist java" makes those alone. Debian's packages want the name and address of who makes
#                 them, DEBFULLNAME and DEBEMAIL.
#                 SIGN_KEY=file.pem signs the plugins that lie alone, for an HDF5 that loads no others; the key that
#                 verifies lies beside them. The project keeps no key.

RELEASE   := target/h5z-gpu-$(VERSION)
ARTEFACTS := wheel-x86_64 wheel-aarch64 wheel-musl wheel-macos wheel-windows sdist java wasm h5wasm \
    $(if $(and $(DEBFULLNAME),$(DEBEMAIL),$(shell command -v dpkg-buildpackage)),debian)
SBOMS     := plugin preload program readers/wasm readers/wasm/h5wasm
CYCLONEDX := 0.5.9
CHECKED   := target/package-env/bin/python -m pytest -p no:cacheprovider

.PHONY: release

release: rust target/package-env/made target/tools/cyclonedx-$(CYCLONEDX)
	@rm -rf $(RELEASE) && mkdir -p $(RELEASE)
	@$(if $(filter debian,$(ARTEFACTS))$(filter command,$(origin ARTEFACTS)),,echo \
	    "Left out: Debian's packages, which want Debian's tools, DEBFULLNAME and DEBEMAIL")
	@for each in $(ARTEFACTS); do begin=$$(date +%s) && $(MAKE) --no-print-directory -s release-$$each >/dev/null && \
	    echo "$$each: $$(($$(date +%s) - begin)) s" || { echo "$$each could not be made"; exit 1; }; done
	@target/package-env/bin/python packaging/plugins.py $(RELEASE)
	@$(if $(SIGN_KEY),packaging/sign.sh $(SIGN_KEY) $$(find $(RELEASE) -name '*h5zgpu-*-*.so' -o -name '*.dll' -o \
	    -name '*.dylib') && openssl pkey -in $(SIGN_KEY) -pubout -out $(RELEASE)/h5z-gpu-plugins.pem)
	@$(MAKE) --no-print-directory -s release-sboms
	@cp $(THIRD) $(RELEASE)/
	@cd $(RELEASE) && sha256sum * >.sums && mv .sums SHA256SUMS
	@H5Z_GPU_RELEASE=$(RELEASE) $(CHECKED) -q packaging/check/test_release.py
	@! grep -asq '$(VERSION)+unreleased' $(RELEASE)/*.so || \
	    echo "For trial alone: these builds are unreleased (packaging/README.md, A release, step 2)"
	@echo "$(RELEASE): $$(ls $(RELEASE) | wc -l) files, $$(du -sm $(RELEASE) | cut -f1) MB"

# The name of what is published, and a rule for each kind of it.
release-wheel-x86_64 release-wheel-aarch64: release-wheel-%:
	@$(MAKE) -s wheel MACHINE=$* && cp target/wheel/*_$*.whl $(RELEASE)/

release-wheel-musl release-wheel-macos release-wheel-windows: release-%:
	@$(MAKE) -s $* && cp target/$*/*.whl $(RELEASE)/

release-sdist:
	@$(MAKE) -s sdist && cp target/wheel/h5z_gpu-$(VERSION).tar.gz $(RELEASE)/

release-java: $(JAR)
	@cp $(JAR) $(RELEASE)/$(basename $(JAR_NAME))-$(VERSION).jar

release-wasm: wasm
	@tar czf $(RELEASE)/h5z-gpu-wasm-$(VERSION).tgz --sort=name --owner=0 --group=0 \
	    -C target/wasm h5z_gpu.wasm h5z_gpu.mjs view.html -C $(CURDIR) $(LICENCES)

release-h5wasm: h5wasm
	@cp $(H5WASM) $(RELEASE)/

# Built from the files that git knows of, with this machine's C library and for the CPU alone, as packages are.
release-debian:
	@tests/need.sh dh=debhelper fakeroot=fakeroot
	@rm -rf target/debian && env -u MAKEFLAGS packaging/debian/build.sh target/debian -b -d >target/debian.log 2>&1 || \
	    { tail -n 40 target/debian.log; exit 1; }
	@cp target/debian/*.deb $(RELEASE)/

# cargo-cyclonedx writes beside each Cargo.toml, and names this project's crates by where they lie.
release-sboms: target/tools/cyclonedx-$(CYCLONEDX)
	@PATH="$(CURDIR)/target/tools/bin:$$PATH" SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) \
	    $(CARGO) cyclonedx --quiet --format json --spec-version 1.5 --target all --override-filename release.cdx
	@for each in $(SBOMS); do sed 's|file://$(CURDIR)|file:///h5z-gpu|g' $$each/release.cdx.json \
	    >$(RELEASE)/h5z-gpu-$${each##*/}.cdx.json || exit 1; done
	@find . -name release.cdx.json -not -path './target/*' -delete

target/tools/cyclonedx-$(CYCLONEDX): | rust
	@echo "cargo-cyclonedx, which writes SBOMs: some minutes the first time"
	@$(CARGO) install --quiet --locked --root target/tools --version $(CYCLONEDX) cargo-cyclonedx && touch $@
