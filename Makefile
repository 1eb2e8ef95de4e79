# Needs make, a Rust toolchain and Python 3.11 or newer; everything else is installed below .venv
# and target. `make help` lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

# The newest Python that is there, or the one given: make test PYTHON=/path/to/python3.12
PYTHON ?= $(shell for candidate in python3 python3.14 python3.13 python3.12 python3.11 python; do \
  if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; \
  then echo "$$candidate"; break; fi; done)

BUILD := .venv
DEMO := target/demo-venv
TEST := target/test-venv
WHEEL := target/wheel.stamp
RELEASE := target/release-check
COVERAGE := target/coverage

RUST_SOURCES := Cargo.toml Cargo.lock $(shell find rust -name '*.rs' -o -name Cargo.toml)
CODE := $(wildcard python tests bench examples tools)
PYTHON_SOURCES := pyproject.toml README.md LICENSE THIRD-PARTY.txt \
  $(shell find python -type f -not -name '*.pyc' -not -name '*.so')

# rustup looks for its toolchains in HOME; where HOME is another, they stand beside its programs
ifndef RUSTUP_HOME
BESIDE_CARGO := $(abspath $(dir $(shell command -v cargo))../../.rustup)
ifneq ($(wildcard $(BESIDE_CARGO)/toolchains),)
export RUSTUP_HOME := $(BESIDE_CARGO)
endif
endif

# One interpreter for every build of the extension, so that cargo rebuilds nothing needlessly
export PYO3_PYTHON := $(abspath $(BUILD))/bin/python
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# Panics of the extension name files of the crates, not folders of this machine
CARGO_FOLDER := $(or $(CARGO_HOME),$(HOME)/.cargo)
export RUSTFLAGS := $(strip $(RUSTFLAGS) --remap-path-prefix=$(CARGO_FOLDER)/registry/src=crates \
  --remap-path-prefix=$(CURDIR)/=)
PIP_INSTALL = -m pip install --quiet

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' Makefile

.PHONY: demo
demo: $(DEMO)/wheel.stamp ## Build the wheel, install it, run the built-in example
	$(DEMO)/bin/themis demo

.PHONY: test
test: lint docs test-rust test-python ## Run all checks and tests

.PHONY: lint
lint: $(TEST)/wheel.stamp ## Formatting, lints, types, stubs
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked --quiet -- -D warnings
	$(TEST)/bin/ruff format --check $(CODE)
	$(TEST)/bin/ruff check $(CODE)
	$(TEST)/bin/mypy
	$(TEST)/bin/stubtest themis._core

.PHONY: test-rust
test-rust: $(BUILD)/tools.stamp ## Tests of the Rust crates
	cargo test --workspace --locked --quiet

.PHONY: test-python
test-python: $(TEST)/wheel.stamp ## Tests of the installed wheel
	$(TEST)/bin/pytest -n auto

.PHONY: test-ray
test-ray: $(TEST)/wheel.stamp ## Test of sweeps on a Ray cluster of two nodes; installs the extra ray
	$(BUILD)/bin/python -m pip --python $(TEST)/bin/python install --quiet "$$(ls dist/themis_sched-*.whl)[ray]"
	$(TEST)/bin/pytest tests/e2e/test_sweeps_on_ray.py

# Counted in builds of their own: of the extension under the tests in Python, and of the Rust tests
.PHONY: coverage
coverage: export CARGO_TARGET_DIR = $(CURDIR)/$(COVERAGE)/cargo
coverage: export LLVM_PROFILE_FILE = /dev/null
coverage: RUSTFLAGS := -C instrument-coverage
coverage: $(BUILD)/tools.stamp ## Lines of the auction and the engine that no test runs
	RUSTFLAGS= cargo install llvm_profparser@^0.15 --locked --quiet --root target/tools
	rm -rf $(COVERAGE)/profiles $(COVERAGE)/*.whl
	$(BUILD)/bin/maturin build --release --locked --strip false --out $(COVERAGE)
	$(BUILD)/bin/python -m venv --without-pip $(COVERAGE)/venv
	$(BUILD)/bin/python -m pip --python $(COVERAGE)/venv/bin/python install --quiet --force-reinstall $(COVERAGE)/*.whl
	$(BUILD)/bin/python -m pip --python $(COVERAGE)/venv/bin/python install --quiet --group test
	LLVM_PROFILE_FILE=$(CURDIR)/$(COVERAGE)/profiles/python-%1m.profraw $(COVERAGE)/venv/bin/pytest -n auto
	cargo test --workspace --locked --release --no-run 2>&1 | sed -n 's/^ *Executable .*(\(.*\))$$/--object \1/p' > $(COVERAGE)/objects
	LLVM_PROFILE_FILE=$(CURDIR)/$(COVERAGE)/profiles/rust-%m.profraw cargo test --workspace --locked --release --quiet
	target/tools/bin/cov show $$(cat $(COVERAGE)/objects) --object $(COVERAGE)/cargo/release/lib_core.so \
	  $$(printf -- '--instr-profile %s ' $(COVERAGE)/profiles/*) | $(BUILD)/bin/python tools/coverage.py

.PHONY: bench
bench: $(TEST)/wheel.stamp ## Benchmarks of the installed wheel, into target/bench.json
	$(TEST)/bin/pytest bench --benchmark-only --benchmark-json=target/bench.json

.PHONY: bench-compare
bench-compare: ## The last make bench against bench/reference.json: ratios, spread, margins
	$(BUILD)/bin/python tools/bench_compare.py target/bench.json

.PHONY: bench-reference
bench-reference: ## Make the last make bench the reference
	$(BUILD)/bin/python tools/bench_compare.py target/bench.json --write

.PHONY: bench-instructions
bench-instructions: $(BUILD)/tools.stamp ## Instructions of fixed auctions and simulations against the reference (valgrind)
	$(BUILD)/bin/python bench/instructions.py

.PHONY: dev
dev: $(BUILD)/tools.stamp ## Install an editable build into .venv
	$(BUILD)/bin/python $(PIP_INSTALL) --group lint --group test --group bench
	$(BUILD)/bin/maturin develop --release --locked

.PHONY: fmt
fmt: $(TEST)/tools.stamp ## Format all sources
	cargo fmt --all
	$(TEST)/bin/ruff check --select I --fix $(CODE)
	$(TEST)/bin/ruff format $(CODE)

.PHONY: licences
licences: ## Write THIRD-PARTY.txt, the licences of the crates that are linked in
	$(or $(PYTHON),python3) tools/third_party.py > target/THIRD-PARTY.txt
	mv target/THIRD-PARTY.txt THIRD-PARTY.txt

.PHONY: advisories
advisories: $(BUILD)/tools.stamp ## Licences, origin and known weaknesses of all that is depended on (needs RustSec's and PyPI's databases)
	cargo install cargo-deny@^0.20 --locked --quiet --root target/tools
	target/tools/bin/cargo-deny --locked check
	$(BUILD)/bin/python $(PIP_INSTALL) --group advisories
	$(BUILD)/bin/pip-audit --strict .

.PHONY: release
release: $(BUILD)/tools.stamp ## What is published, into target/release-check: a wheel for Linux with glibc 2.17 or newer, and the sources
	$(BUILD)/bin/python $(PIP_INSTALL) --group release
	rm -rf $(RELEASE) && mkdir -p $(RELEASE)
	PATH=$(CURDIR)/$(BUILD)/bin:$$PATH CARGO_TARGET_DIR=$(CURDIR)/target/portable \
	  $(BUILD)/bin/maturin build --release --locked --zig --compatibility manylinux2014 --out $(RELEASE)
	$(BUILD)/bin/maturin sdist --out $(RELEASE)

.PHONY: release-check
release-check: release ## Wheel and source archive: contents, types, start-up, tests in fresh environments
	$(BUILD)/bin/python tools/release_check.py artefacts $(RELEASE)/*.whl $(RELEASE)/*.tar.gz
	$(MAKE) --no-print-directory release-of KIND=wheel ARTEFACT="$$(ls $(RELEASE)/*.whl)"
	$(MAKE) --no-print-directory release-of KIND=sdist ARTEFACT="$$(ls $(RELEASE)/*.tar.gz)"
	$(BUILD)/bin/python -m pip --python $(RELEASE)/wheel/bin/python install --quiet --group types
	PATH=$(CURDIR)/$(RELEASE)/wheel/bin:$$PATH pyright --verifytypes themis --ignoreexternal | tail -n 4

# One artefact in an environment of its own, and the part of the tests that shows that it works. The
# sources of an archive are built anew: all of them are dated 1980, and cargo would take what it has.
.PHONY: release-of
release-of:
	$(BUILD)/bin/python -m venv --without-pip $(RELEASE)/$(KIND)
	CARGO_TARGET_DIR=$(CURDIR)/$(RELEASE)/target $(BUILD)/bin/python -m pip \
	  --python $(RELEASE)/$(KIND)/bin/python install --quiet $(ARTEFACT)
	$(BUILD)/bin/python tools/release_check.py installed $(RELEASE)/$(KIND)/bin/python
	$(BUILD)/bin/python -m pip --python $(RELEASE)/$(KIND)/bin/python install --quiet --group test
	$(RELEASE)/$(KIND)/bin/pytest -q -n auto tests/contract tests/golden tests/e2e/test_simulations.py

.PHONY: docs
docs: $(TEST)/wheel.stamp ## Build the documentation below target/docs; warnings are errors
	$(BUILD)/bin/python -m pip --python $(TEST)/bin/python install --quiet --group docs
	$(TEST)/bin/sphinx-build --fail-on-warning --keep-going --quiet -b html \
	  -d target/doctrees docs target/docs
	@echo "docs: target/docs/index.html"

.PHONY: schema
schema: $(TEST)/wheel.stamp ## Write docs/schema.md from the code
	$(TEST)/bin/python -c 'from themis.schema.page import schema_page as page; print(page(), end="")' \
	  > target/schema.md
	mv target/schema.md docs/schema.md

.PHONY: clean
clean: ## Remove all that was built, .venv included
	rm -rf target dist .venv

$(BUILD)/tools.stamp: pyproject.toml
	@test -n "$(PYTHON)" || { echo "error: no Python 3.11 or newer found; \
	name one: make PYTHON=/path/to/python3" >&2; exit 1; }
	@cargo --version >/dev/null || { echo "error: cargo does not run; \
	install a Rust toolchain" >&2; exit 1; }
	$(PYTHON) -m venv $(BUILD)
	$(BUILD)/bin/python $(PIP_INSTALL) --upgrade 'pip>=25.1'
	$(BUILD)/bin/python $(PIP_INSTALL) --group build
	touch $@

$(WHEEL): $(BUILD)/tools.stamp $(RUST_SOURCES) $(PYTHON_SOURCES)
	rm -f dist/themis_sched-*.whl
	$(BUILD)/bin/maturin build --release --locked --out dist
	mkdir -p target && touch $@

$(DEMO)/wheel.stamp: $(WHEEL)
	$(BUILD)/bin/python -m venv --without-pip $(DEMO)
	$(BUILD)/bin/python -m pip --python $(DEMO)/bin/python install --quiet \
	  --force-reinstall --no-deps dist/themis_sched-*.whl
	$(BUILD)/bin/python -m pip --python $(DEMO)/bin/python install --quiet dist/themis_sched-*.whl
	touch $@

$(TEST)/tools.stamp: $(BUILD)/tools.stamp
	$(BUILD)/bin/python -m venv --without-pip $(TEST)
	$(BUILD)/bin/python -m pip --python $(TEST)/bin/python install --quiet \
	  --group lint --group test --group bench
	touch $@

$(TEST)/wheel.stamp: $(TEST)/tools.stamp $(WHEEL)
	$(BUILD)/bin/python -m pip --python $(TEST)/bin/python install --quiet \
	  --force-reinstall --no-deps dist/themis_sched-*.whl
	$(BUILD)/bin/python -m pip --python $(TEST)/bin/python install --quiet dist/themis_sched-*.whl
	touch $@
