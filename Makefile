# Every target does its own set-up. Python 3.11+ and cargo are enough to start from; the tests that run against a real
# Kafka broker need Java 17 and Maven too. `make help` lists the targets.

PYTHON ?= python3
# The cargo profile of the extension. `make PROFILE=dev build` compiles faster and runs many times slower.
PROFILE ?= release
# Most tests that take long are waiting (for a session to expire, for a broker), so two cores carry four of them.
WORKERS ?= 4
PYTEST_ARGS ?=
BENCH_ARGS ?=
# For test-long: cases of each property in Rust, broker releases, seconds of chaos and for each fuzz target.
CASES ?= 20000
# How many times as many seeds the oracle tests of test-long go through.
SEED_FACTOR ?= 20
KAFKA_LONG ?= 3.9.2
CHAOS_SECONDS ?= 600
FUZZ_SECONDS ?= 300
# For pipeline: --groups, --seed, --master.
PIPELINE_ARGS ?=

# Without make's job server, which is not open to what a recipe starts and only makes cargo warn.
CARGO := env -u MAKEFLAGS -u MFLAGS cargo
VENV := .venv
BIN := $(VENV)/bin
WHEELS := target/wheels
# Every file that comes from an index has one of the committed hashes, and so has what builds those that come as sources.
INSTALL := $(BIN)/uv pip install --quiet --require-hashes --constraint requirements/constraints.txt --build-constraints requirements/constraints.txt
# A busy machine may stretch one of two times: a ratio that is beyond its bound is measured twice more before it fails.
AGAIN := --reruns 2 --only-rerun RatioError
PYTEST := KAFKA_ASSIGNORS_INSTALLED=1 $(BIN)/python -P -m pytest
SOURCES := Cargo.toml Cargo.lock pyproject.toml README.md LICENSE \
  $(shell find rust python -type f \( -name '*.rs' -o -name '*.py' -o -name '*.pyi' -o -name '*.j2' -o -name '*.css' -o -name py.typed -o -name Cargo.toml \) -not -path '*/target/*')

MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup build jars browser demo example-join pipeline test test-rust test-python test-long gate gate-proof peers bench bench-partitioners race lint lint-rust lint-python rust fuzz docs site release lock clean FORCE

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# ---- set-up ---------------------------------------------------------------------------------------------------------

setup: $(VENV)/.stamp ## the virtual environment with everything that tests and linters need

$(VENV)/.stamp: pyproject.toml requirements/constraints.txt requirements/installer.txt
	@echo "=== set-up: virtual environment"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements/installer.txt
	@$(INSTALL) --python $(BIN)/python --group dev
	@touch $@

# One wheel, which lint, tests, benchmarks and demo all run as installed: what is tested is what is shipped.
$(WHEELS)/.stamp: $(VENV)/.stamp $(SOURCES)
	@echo "=== build: wheel ($(PROFILE))"
	@rm -rf $(WHEELS) && mkdir -p $(WHEELS)
	@env -u MAKEFLAGS -u MFLAGS $(BIN)/maturin build --quiet --locked --profile $(PROFILE) --interpreter $(BIN)/python --out $(WHEELS)
	@touch $@

# FORCE, since `maturin develop` may have put an editable install in the wheel's place.
$(VENV)/.installed: $(WHEELS)/.stamp FORCE
	@if [ $(WHEELS)/.stamp -nt $@ ] || ! $(BIN)/python -P -c 'import kafka_assignors as k, sys; sys.exit(not k.__file__.startswith(sys.prefix))' 2>/dev/null; \
	  then $(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --reinstall $(WHEELS)/*.whl && touch $@; fi

# The real broker and the Java test member, in .cache. The tests make them too, where they are missing; asked for here, Maven
# downloads while something else compiles.
jars: $(VENV)/.stamp
	@echo "=== set-up: Apache Kafka from Maven"
	@PYTHONPATH=tests $(BIN)/python -P -m support.jars

# The tests look at the report in it. Installed as root from Debian where there is none; else one sentence says what to do.
browser: $(VENV)/.stamp
	@echo "=== set-up: Chromium"
	@PYTHONPATH=tests $(BIN)/python -P -m support.browser

build: $(VENV)/.installed ## the wheel, in target/wheels and installed in .venv
	@ls $(WHEELS)/*.whl

LOCK := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --custom-compile-command 'make lock'
lock: $(VENV)/.stamp ## newer versions, and their hashes, for requirements/
	@$(LOCK) --upgrade $(foreach group,dev installer peers site release try,--group $(group)) --output-file requirements/constraints.txt
	@$(foreach group,installer release try,$(LOCK) --group $(group) --constraint requirements/constraints.txt --output-file requirements/$(group).txt &&) true

clean: ## away with everything that these targets made
	@rm -rf $(VENV) target dist .cache .hypothesis .pytest_cache .mypy_cache .ruff_cache .benchmarks

demo: $(VENV)/.installed ## a group at work, live: members join, die and change their minds
	@PYTHONPATH=examples $(BIN)/python -P -m demo

example-join: $(VENV)/.installed ## impressions joined with clicks: what members rebuild with each assignor
	@PYTHONPATH=examples $(BIN)/python -P -m stream_join

# Needs Java, and no Kafka. The first line says where the report will be, before anything is set up.
PIPELINE := target/pipeline
pipeline: ## a made-up fleet through the whole Spark pipeline, to a report: PIPELINE_ARGS='--groups 5000'
	@echo "The report will be here: file://$(CURDIR)/$(PIPELINE)/report.html"
	@$(MAKE) $(VENV)/.installed
	@$(BIN)/python -P -m kafka_assignors.spark pipeline --out $(PIPELINE) $(PIPELINE_ARGS)

# ---- checks ---------------------------------------------------------------------------------------------------------

# What compiles and what downloads go side by side; then one after the other, the cheapest refusal first. The tests come
# last, so that pytest's closing lines end the log.
test: ## everything that CI runs, once
	@$(MAKE) -j3 --output-sync=target $(VENV)/.installed rust jars browser
	@$(MAKE) lint-python
	@$(MAKE) gate
	@$(MAKE) test-python

# One recipe, since clippy and the tests wait for the same lock on target/debug.
rust:
	@$(MAKE) lint-rust
	@$(MAKE) test-rust

lint: lint-rust lint-python ## formatting, clippy, ruff, mypy, the stub against the built module

lint-rust:
	@echo "=== lint: cargo fmt, clippy"
	@$(CARGO) fmt --all --check
	@$(CARGO) clippy --quiet --workspace --all-targets --locked -- -D warnings

lint-python: $(VENV)/.installed
	@echo "=== lint: ruff, mypy, stubtest"
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --quiet --check
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/mypy --no-error-summary benches/conftest.py
	@MYPYPATH= $(BIN)/python -P -m mypy.stubtest --concise --mypy-config-file pyproject.toml \
	  --allowlist tests/stubtest-allowlist.txt kafka_assignors._core

test-rust:
	@echo "=== test: cargo test"
	@$(CARGO) test --quiet --package kafka-assignors-core --locked

test-python: $(VENV)/.installed ## only pytest, against the wheel: make test-python PYTEST_ARGS='-k name'
	@echo "=== test: pytest"
	@$(PYTEST) -n $(WORKERS) --dist loadgroup -m "not cluster" $(PYTEST_ARGS)

gate: $(VENV)/.installed ## the quick half of the benchmarks against the committed bounds on their ratios
	@echo "=== gate: benchmarks"
	@if [ -d benches ]; then $(PYTEST) benches --benchmark-only $(AGAIN) -m quick --quiet $(PYTEST_ARGS); else echo "no benches yet"; fi

peers: $(VENV)/.stamp ## what `make bench` measures beside ours, where it is installed: Faust
	@$(INSTALL) --python $(BIN)/python --group peers

bench: $(VENV)/.installed ## all benchmarks, beside the peers
	@$(PYTEST) benches --benchmark-only $(AGAIN) $(PYTEST_ARGS)

# Wants a quiet machine. One of them: make bench-partitioners BENCH_ARGS='--only simulated-*'; --list names them, --quick
# shows that they work.
bench-partitioners: $(VENV)/.installed ## the published results of the sticky partitioners, reproduced
	@PYTHONPATH=benches:tests $(BIN)/python -P -m partitioners $(BENCH_ARGS)

# Wants a quiet machine for half an hour; parts of it add up: make race BENCH_ARGS='--part 1/4'. Java and Maven, Go and
# librdkafka take part where they are installed; --list names points and peers, --quick shows that it works.
race: $(VENV)/.installed ## our sticky assignors beside every peer's, on the same bytes
	@PYTHONPATH=benches:tests $(BIN)/python -P -m race $(BENCH_ARGS)

# Builds the core a second time, in target/slowdown.
gate-proof: $(VENV)/.installed ## shows that a core slower by a third fails the gate
	@PYTHONPATH=benches:tests $(BIN)/python -P benches/gate_proof.py

# What `make test` has no time for: many more seeds, both broker releases, all benchmarks with their slow peers, fuzzing.
test-long: $(VENV)/.installed ## hours: more seeds, the older broker, slow peers, fuzzing
	@echo "=== test: cargo test, $(CASES) cases a property, $(SEED_FACTOR) times the seeds"
	@PROPTEST_CASES=$(CASES) SEED_FACTOR=$(SEED_FACTOR) $(CARGO) test --quiet --release --package kafka-assignors-core --locked
	@echo "=== test: pytest, long, Apache Kafka $(KAFKA_LONG)"
	@HYPOTHESIS_PROFILE=long CHAOS_SECONDS=$(CHAOS_SECONDS) KAFKA_VERSIONS=$(KAFKA_LONG) $(PYTEST) -n $(WORKERS) --dist loadgroup --timeout 3600 $(PYTEST_ARGS)
	@$(MAKE) bench
	@$(MAKE) fuzz

# Needs a nightly compiler and cargo-fuzz. A crash leaves its input in rust/fuzz/artifacts: name it and put it into
# rust/fuzz/corpus, whose committed cases `make test` runs with the stable compiler.
NIGHTLY ?= nightly
FUZZ := cd rust/fuzz && $(CARGO) +$(NIGHTLY) fuzz
fuzz: ## every fuzz target for FUZZ_SECONDS
	@for target in $$($(FUZZ) list --fuzz-dir .); do echo "=== fuzz: $$target"; \
	  ($(FUZZ) run --fuzz-dir . $$target -- -max_total_time=$(FUZZ_SECONDS) -verbosity=0 -print_funcs=0 -print_final_stats=1) || exit 1; done

SITE := target/site-venv
site: $(VENV)/.stamp ## the documentation as a web site, in target/site; strict, with the API reference
	@test -x $(SITE)/bin/python || $(BIN)/uv venv --quiet --python $(BIN)/python $(SITE)
	@$(INSTALL) --python $(SITE)/bin/python --group site
	@NO_MKDOCS_2_WARNING=1 $(SITE)/bin/python -m mkdocs build --strict --quiet
	@echo "the site is in target/site/index.html"

# A wheel as it is published: for the C library of 2018 and later, linked by zig, whatever this machine has.
RELEASE := target/release-venv
release: $(VENV)/.installed ## wheel and sdist as published, in dist/, with every check that needs no other machine
	@test -x $(RELEASE)/bin/python || $(BIN)/uv venv --quiet --python $(BIN)/python $(RELEASE)
	@$(INSTALL) --python $(RELEASE)/bin/python --group release
	@rm -rf dist
	@echo "=== release: sdist, manylinux wheel"
	@env -u MAKEFLAGS -u MFLAGS $(BIN)/maturin sdist --out dist
	@PATH="$(CURDIR)/$(RELEASE)/bin:$$PATH" env -u MAKEFLAGS -u MFLAGS $(BIN)/maturin build --quiet --locked --release --zig \
	  --compatibility manylinux_2_28 --interpreter $(BIN)/python --out dist
	@echo "=== release: checks"
	@$(RELEASE)/bin/python -m twine check --strict dist/*
	@$(RELEASE)/bin/python -m abi3audit --strict dist/*.whl
	@$(RELEASE)/bin/python -m auditwheel show dist/*.whl
	@$(BIN)/python -P .github/release/check_files.py dist/*
	@$(BIN)/python -P .github/release/try_wheel.py dist
	@echo "=== release: the test suite on the manylinux wheel"
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --reinstall dist/*.whl
	@$(PYTEST) -n $(WORKERS) --dist loadgroup -m "not cluster" $(PYTEST_ARGS)

docs: $(VENV)/.installed ## the examples of README and docs/, executed; the Rust documentation, built
	@$(PYTEST) tests/test_docs.py
	@RUSTDOCFLAGS='-D warnings' $(CARGO) doc --quiet --no-deps --locked --package kafka-assignors-core
