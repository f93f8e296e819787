# SPDX-License-Identifier: MIT OR Apache-2.0
# make audit    cargo-deny over the crates: licences, what is there twice, sources, known faults; pip-audit over every
#               list of Python packages. Known faults stand in a git repository (RustSec) and in PyPI's own service:
#               where one cannot be reached, everything else is looked at, its tool says so, and the status is 1.

CARGO_DENY := 0.20.2
LISTS       = $(shell git ls-files '*requirements*.txt' 'tests/hosts/older/*.txt')
# A fault of LangChain, which gives numexpr what strangers wrote; named for all versions of numexpr.
IGNORED    := --ignore-vuln PYSEC-2023-163

.PHONY: audit

target/tools/deny-$(CARGO_DENY): | rust
	@echo "cargo-deny: some minutes the first time"
	@$(CARGO) install --quiet --locked --root target/tools --version $(CARGO_DENY) cargo-deny && touch $@

target/audit-env/made: packaging/requirements-audit.txt
	@tests/need.sh python3=python3 py:ensurepip=python3-venv py:venv=python3-venv
	@python3 -m venv target/audit-env
	@target/audit-env/bin/python -m pip install --quiet --disable-pip-version-check -r $< && touch $@

audit: target/tools/deny-$(CARGO_DENY) target/audit-env/made
	@PATH="$(CURDIR)/target/tools/bin:$$PATH"; failed=0; \
	    cargo deny check licenses bans sources || failed=1; \
	    if cargo deny fetch db >target/audit.log 2>&1; then cargo deny check advisories || failed=1; \
	    else failed=1; tail -n 3 target/audit.log; \
	        echo "NOT LOOKED AT: known faults of crates. RustSec's database could not be fetched."; fi; \
	    target/audit-env/bin/pip-audit --strict --no-deps --disable-pip --progress-spinner off \
	        $(IGNORED) $(addprefix -r ,$(LISTS)) || failed=1; \
	    exit $$failed
