# Every target does its own set-up. Python 3.11+ and cargo are enough to start from; the tests that run against a real
# Kafka broker need Java 17 and Maven too. `make help` lists the targets.

PYTHON ?= python3
# Most long tests wait for a session to expire, or for a broker. Tests without a broker compute less, so that two cores can run
# more of them at a time.
WORKERS ?= 7
QUICK_WORKERS ?= 10
PYTEST_ARGS ?=
BENCH_ARGS ?=
DEMO_ARGS ?=
# For test-long: cases of each property in Rust, broker releases, chaos (seconds, and records a second), seconds for each fuzz
# target.
CASES ?= 20000
# The factor by which test-long multiplies the seeds of the oracle tests.
SEED_FACTOR ?= 20
KAFKA_LONG ?= 3.9.2
CHAOS_SECONDS ?= 600
CHAOS_RATE ?= 1800
FUZZ_SECONDS ?= 300
# For pipeline: --groups, --seed, --master.
PIPELINE_ARGS ?=

# Without the variables of make's job server: programs of a recipe cannot use it, and cargo would warn.
CARGO := env -u MAKEFLAGS -u MFLAGS cargo
VENV := .venv
BIN := $(VENV)/bin
WHEELS := target/wheels
# Every file from an index must have one of the committed hashes, also the build tools of packages that come as sources. PySpark
# comes as sources: its jars are compressed already, and compressing them again for a wheel that is unpacked at once would take
# 18 seconds of a processor.
INSTALL := $(BIN)/uv pip install --quiet --require-hashes --constraint requirements/constraints.txt --build-constraints requirements/constraints.txt --config-settings-package pyspark:--build-option=--compression=stored
# A busy machine may stretch one of two times: a ratio that is beyond its bound is measured twice more before it fails.
AGAIN := --reruns 2 --only-rerun RatioError
PYTEST := KAFKA_ASSIGNORS_INSTALLED=1 $(BIN)/python -P -m pytest
# With the default, pytest-xdist 3.8 waits forever once a worker has died. So a dead worker ends the run, with its test's name.
SPREAD := --dist loadgroup --max-worker-restart 0
SOURCES := Cargo.toml Cargo.lock pyproject.toml README.md LICENSE \
  $(shell find rust python -type f \( -name '*.rs' -o -name '*.py' -o -name '*.pyi' -o -name '*.j2' -o -name '*.css' -o -name '*.js' -o -name '*.json' -o -name '*.yml' -o -name py.typed -o -name Cargo.toml \) -not -path '*/target/*')

# cargo's files for incremental builds make a first build a fifth longer. So only later builds, by the next `make`, write them.
ifeq ($(wildcard target/debug),)
export CARGO_INCREMENTAL ?= 0
endif

# A cache of this checkout's own, which goes away with the checkout. If an index sends no cache headers, uv stores another 1.4 GB
# of PySpark for each new environment; in a home directory that many checkouts share, these copies fill the disk.
export UV_CACHE_DIR ?= $(CURDIR)/.cache/uv

# Without compiled files Python compiles each module again in each process, and the tests start hundreds.
unexport PYTHONDONTWRITEBYTECODE

MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help matrix matrix-ends lakes setup build jars browser prometheus programs class-archives demo example-join example-own pipeline test check compile-tests test-rust test-python test-seeds simulated-seeds compile-seeds other-seeds test-needs beside-wheel beside-tests test-long gate gate-counts gate-ratios gate-proof peers bench bench-partitioners race lint lint-rust lint-sources lint-module gate-program fuzz docs site wheels check-wheels try-wheels reproduce publish verify-published tag figures public-names core-names release lock clean FORCE

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

# The frameworks and tracers that run on our consumers, for the tests that need them.
$(VENV)/.frameworks: $(VENV)/.stamp
	@echo "=== set-up: frameworks and tracers"
	@$(INSTALL) --python $(BIN)/python --group frameworks
	@touch $@

# The wheel in three builds of the same sources, each as cargo's profile of that name has it. `dev` compiles in a fraction of the
# time: tests that measure nothing run on it. `release` is optimised like the published wheel: measurements run on it.
# `optimized` is nearly as fast, and takes a third less to compile: CI runs on it. All three have the feature `bench`, the floors
# that benchmarks divide by. Published wheels do not have this feature: `make release` builds them.
$(WHEELS)/%/.stamp: $(VENV)/.stamp $(SOURCES)
	@echo "=== build: wheel ($*)"
	@rm -rf $(@D) && mkdir -p $(@D)
	@env -u MAKEFLAGS -u MFLAGS $(BIN)/maturin build --quiet --locked --profile $* --features bench --interpreter $(BIN)/python --out $(@D)
	@touch $@

# Lint, tests, benchmarks and demo run the wheel as installed. One of the three is installed at a time, and a file names it.
# FORCE, since `maturin develop` may have put an editable install in the wheel's place.
$(VENV)/.installed-%: $(WHEELS)/%/.stamp FORCE
	@if [ ! -e $@ ] || [ $< -nt $@ ] || ! $(BIN)/python -P -c 'import kafka_assignors as k, sys; sys.exit(not k.__file__.startswith(sys.prefix))' 2>/dev/null; \
	  then rm -f $(VENV)/.installed-* && $(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --reinstall $(<D)/*.whl && touch $@; fi
WORKING ?= dev
MEASURED ?= release
WORKS := $(VENV)/.installed-$(WORKING)
MEASURES := $(VENV)/.installed-$(MEASURED)
.PRECIOUS: $(WHEELS)/%/.stamp

# The real broker and the Java test member, in .cache. Tests that miss them would make them, too. With a target of their
# own Maven downloads while something else compiles.
jars: $(VENV)/.stamp
	@echo "=== set-up: Apache Kafka from Maven"
	@PYTHONPATH=tests $(BIN)/python -P -m support.jars

# Archives in .cache of the classes that the JVMs of Spark, of the brokers and of the Java members load. Without them each of 150
# starts would read and verify the classes again.
class-archives: $(WORKS)
	@echo "=== set-up: archives of Java's classes"
	@PYTHONPATH=tests $(BIN)/python -P -m support.class_archives

# Programs that the tests of `test-needs` would compile themselves: those of the race's peers, and the one that lists the core's
# public names.
programs: jars
	@echo "=== set-up: programs of the race's peers, and the core's public names"
	@PYTHONPATH=benches:tests $(BIN)/python -P -m race.contenders
	@PYTHONPATH=tests $(BIN)/python -P -m support.core_names >/dev/null

# Chromium, in which tests open the report. If there is none, root installs it from Debian; other users get one sentence with
# what to do.
browser: $(VENV)/.stamp
	@echo "=== set-up: Chromium"
	@PYTHONPATH=tests $(BIN)/python -P -m support.browser

# Prometheus, with which tests try the dashboard and the alert rules. It is installed like Chromium.
prometheus: $(VENV)/.stamp
	@echo "=== set-up: Prometheus"
	@PYTHONPATH=tests $(BIN)/python -P -m support.prometheus

build: $(MEASURES) ## the wheel with the floors of the benchmarks, in target/wheels/release and installed in .venv
	@ls $(WHEELS)/release/*.whl

LOCK := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --custom-compile-command 'make lock'
lock: $(VENV)/.stamp ## newer versions, and their hashes, for requirements/
	@$(LOCK) --upgrade $(foreach group,dev frameworks installer peers site release try musl,--group $(group)) --output-file requirements/constraints.txt
	@PYTHONPATH=tests $(BIN)/python -P -m support.matrix --lock
	@$(LOCK) --upgrade --group lakes --output-file requirements/lakes.txt
	@$(foreach group,installer release try musl,$(LOCK) --group $(group) --constraint requirements/constraints.txt --output-file requirements/$(group).txt &&) true

clean: ## away with everything that these targets made
	@rm -rf $(VENV) target dist .cache .hypothesis .pytest_cache .mypy_cache .ruff_cache .benchmarks

# With another strategy, or an assignor of your own: make demo DEMO_ARGS='--strategy "own_assignors.caps:Caps(most=20)"'
demo: $(WORKS) ## a group at work, live: members join, die and change their minds
	@PYTHONPATH=examples $(BIN)/python -P -m demo $(DEMO_ARGS)

example-join: $(WORKS) ## impressions joined with clicks: what members rebuild with each assignor
	@PYTHONPATH=examples $(BIN)/python -P -m stream_join

example-own: $(WORKS) ## four assignors of one's own, live: who has what, and why
	@PYTHONPATH=examples $(BIN)/python -P -m own_assignors

# Needs Java, and no Kafka. The first line says where the report will be, before anything is set up.
PIPELINE := target/pipeline
pipeline: ## a made-up fleet through the whole Spark pipeline, to a report: PIPELINE_ARGS='--groups 5000'
	@echo "The report will be here: file://$(CURDIR)/$(PIPELINE)/report.html"
	@$(MAKE) $(WORKS)
	@$(BIN)/kafka-assignors spark pipeline --out $(PIPELINE) $(PIPELINE_ARGS)

# ---- checks ---------------------------------------------------------------------------------------------------------

# A newcomer's tests: they need Python, cargo, and Java for one Spark job. The set-up waits for files and the tests wait for
# sessions to expire, so the compiler works beside both.
test: ## the tests a newcomer needs: all that needs no real broker, browser or other project
	@$(MAKE) -j2 --output-sync=target $(WHEELS)/$(WORKING)/.stamp gate-program
	@$(MAKE) -j2 --output-sync=target test-python test-rust
	@$(MAKE) gate-counts

# `make check` begins with the first step of `make test`: it compiles the wheel. `make test` follows as soon as there is a wheel.
# Everything runs on one wheel, since a second wheel would have to be compiled, too. The last two crates of the wheel take two
# minutes of one core. Meanwhile the other core runs `beside-wheel`, whose targets need no wheel. Clippy needs the macros that the
# build of the wheel has compiled; therefore it runs beside `make test`, whose tests wait for a third of their time. At the end
# one core measures the ratios, and the other core runs seeds at the lowest priority. The last lines of pytest stand before those
# of the gate. make keeps the lines of a target together only if it may run two jobs.
check: export WORKING := optimized
check: export MEASURED := optimized
check: ## everything that CI runs: `make test`, then all that it leaves out
	@$(MAKE) -j3 --output-sync=target $(WHEELS)/$(WORKING)/.stamp compile-tests beside-wheel
	@$(MAKE) $(VENV)/.installed-$(WORKING)
	@$(MAKE) -j2 --output-sync=target beside-tests & beside=$$!; \
	  $(MAKE) test || { kill $$beside 2>/dev/null; exit 1; }; \
	  $(MAKE) -j2 --output-sync=target test-needs; needs=$$?; wait $$beside && exit $$needs
	@RUST_TEST_THREADS=1 nice -n 19 $(MAKE) --output-sync=target simulated-seeds & seeds=$$!; \
	  $(MAKE) gate-ratios; ratios=$$?; wait $$seeds && exit $$ratios

beside-wheel: jars browser prometheus
	@nice $(MAKE) programs
	@nice $(MAKE) other-seeds
	@nice $(MAKE) lint-sources

# `matrix-ends` spends most of its time waiting for sessions to expire.
beside-tests:
	@$(MAKE) class-archives
	@$(MAKE) lint-rust
	@$(MAKE) lint-module
	@$(MAKE) compile-seeds
	@$(MAKE) matrix-ends

lint: lint-rust lint-sources lint-module ## formatting, clippy, ruff, mypy, the stub against the built module

# In the profile of the wheel, clippy uses the macros and build scripts that the wheel has compiled.
lint-rust:
	@echo "=== lint: cargo fmt, clippy"
	@$(CARGO) fmt --all --check
	@$(CARGO) clippy --quiet --profile $(WORKING) --workspace --exclude kafka-assignors-seeds --all-targets --features kafka-assignors-python/bench --locked -- -D warnings
	@# The features of the published wheels.
	@$(CARGO) clippy --quiet --profile $(WORKING) --package kafka-assignors-python --locked -- -D warnings

lint-sources: $(VENV)/.stamp
	@echo "=== lint: ruff, zizmor, mypy"
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --quiet --check
	@$(BIN)/zizmor --offline --quiet .github/workflows
	@$(BIN)/mypy --no-error-summary
	@MYPYPATH=tests $(BIN)/mypy --no-error-summary benches/conftest.py

lint-module: $(WORKS)
	@echo "=== lint: stubtest"
	@MYPYPATH= $(BIN)/python -P -m mypy.stubtest --concise --mypy-config-file pyproject.toml \
	  --allowlist tests/stubtest-allowlist.txt kafka_assignors._core

compile-tests:
	@echo "=== build: cargo test"
	@$(CARGO) test --quiet --no-run --package kafka-assignors-core --locked

test-rust:
	@echo "=== test: cargo test"
	@$(CARGO) test --quiet --package kafka-assignors-core --locked

test-seeds: simulated-seeds other-seeds ## the seeds that `test` leaves out: of the simulated groups 15 of 16

# The simulated groups take five times as long in a core without optimisation. rust/seeds uses the core as it is
# compiled for the wheel.
simulated-seeds:
	@echo "=== test: cargo test, the other seeds of the simulated groups"
	@$(CARGO) test --quiet --profile optimized --package kafka-assignors-seeds --locked -- --ignored

compile-seeds:
	@echo "=== build: cargo test, the other seeds of the simulated groups"
	@$(CARGO) test --quiet --no-run --profile optimized --package kafka-assignors-seeds --locked

SIMULATED := simulation consumer_protocol
OTHERS := $(filter-out $(SIMULATED),$(notdir $(patsubst %/main.rs,%,$(basename $(wildcard rust/core/tests/*.rs)) $(wildcard rust/core/tests/*/main.rs))))
other-seeds:
	@echo "=== test: cargo test, the other seeds"
	@$(CARGO) test --quiet --package kafka-assignors-core --locked --lib $(addprefix --test ,$(OTHERS)) -- --ignored

# tests/support/needs.py finds the needs of a test in the test itself.
test-python: $(WORKS) ## only pytest, without what `check` adds: make test-python PYTEST_ARGS='-k name'
	@echo "=== test: pytest"
	@# This first run writes Python's compiled files. Otherwise all test processes, which start at the same time, would compile
	@# every module: 39 s of CPU time. An error of collection is hidden here, and shown by the next command.
	@$(PYTEST) --collect-only -qq -m "not needs" >/dev/null || true
	@$(PYTEST) -n $(QUICK_WORKERS) $(SPREAD) --durations=30 -m "not needs" $(PYTEST_ARGS)

test-needs: $(MEASURES) $(VENV)/.frameworks ## the tests that need a real broker, a browser, Spark, other projects or a long time
	@echo "=== test: pytest, with a broker, a browser, Spark and other projects"
	@$(PYTEST) -n $(WORKERS) $(SPREAD) --durations=30 -m "needs and not cluster and not long" $(PYTEST_ARGS)

# Some of them: make matrix MATRIX_ARGS='--only kafka-python-2'. The environments stay in target/matrix.
MATRIX_ARGS ?=
MATRIX := PYTHONPATH=tests $(BIN)/python -P -m support.matrix
matrix: $(WHEELS)/$(WORKING)/.stamp ## the clients' tests on every supported release of each client, and the table of docs/clients.md
	@$(MATRIX) --wheel $(WHEELS)/$(WORKING)/*-abi3-*.whl $(MATRIX_ARGS)

matrix-ends: $(WHEELS)/$(WORKING)/.stamp ## the clients' tests on the oldest release of each client; `make test` has the newest
	@echo "=== test: pytest, the oldest release of each client"
	@$(MATRIX) --wheel $(WHEELS)/$(WORKING)/*-abi3-*.whl --ends --write-nothing

# The jars of Iceberg and Delta are for an older Spark than the newest, so this Spark gets an environment of its own.
lakes: $(WHEELS)/$(WORKING)/.stamp ## the Spark pipeline on tables of Iceberg and Delta, beside folders
	@PYTHONPATH=tests $(BIN)/python -P -m support.lakes --wheel $(WHEELS)/$(WORKING)/*-abi3-*.whl

gate: gate-counts gate-ratios ## the quick half of the benchmarks against the committed bounds

# Counts of instructions and allocations are the same on a busy machine.
gate-program:
	@if command -v valgrind >/dev/null; \
	  then $(CARGO) build --quiet --profile optimized --locked --package kafka-assignors-gate; fi

gate-counts: $(WORKS)
	@echo "=== gate: instructions and allocations"
	@$(PYTEST) benches --benchmark-only -m counts --quiet $(PYTEST_ARGS)

gate-ratios: $(MEASURES)
	@echo "=== gate: ratios of times"
	@$(PYTEST) benches --benchmark-only $(AGAIN) -m "quick and not counts" --quiet $(PYTEST_ARGS)

peers: $(VENV)/.stamp ## what `make bench` measures beside ours, where it is installed: Faust
	@$(INSTALL) --python $(BIN)/python --group peers

bench: $(MEASURES) ## all benchmarks, beside the peers
	@$(PYTEST) benches --benchmark-only $(AGAIN) $(PYTEST_ARGS)

# Needs a quiet machine. One scenario: make bench-partitioners BENCH_ARGS='--only simulated-*'; --list names them, --quick
# shows that they work.
bench-partitioners: $(MEASURES) ## the published results of the sticky partitioners, reproduced
	@PYTHONPATH=benches:tests $(BIN)/python -P -m partitioners $(BENCH_ARGS)

# Needs a quiet machine for about two hours; the results of parts are merged: make race BENCH_ARGS='--part 1/4'. Java and Maven,
# Go and librdkafka take part where they are installed; --list names points and peers, --quick shows that it works.
race: $(MEASURES) ## our sticky assignors beside every peer's, on the same bytes
	@PYTHONPATH=benches:tests $(BIN)/python -P -m race $(BENCH_ARGS)

# Builds the core a second time, in target/slowdown.
gate-proof: $(MEASURES) ## shows that a core slower by a third fails the gate
	@PYTHONPATH=benches:tests $(BIN)/python -P benches/gate_proof.py

# What `make test` has no time for: many more seeds, both broker releases, all benchmarks with their slow peers, fuzzing.
test-long: $(MEASURES) $(VENV)/.frameworks ## hours: more seeds, the older broker, slow peers, fuzzing
	@echo "=== test: cargo test, $(CASES) cases a property, $(SEED_FACTOR) times the seeds"
	@PROPTEST_CASES=$(CASES) SEED_FACTOR=$(SEED_FACTOR) $(CARGO) test --quiet --release --package kafka-assignors-core --locked -- --include-ignored
	@echo "=== test: pytest, long, Apache Kafka $(KAFKA_LONG)"
	@HYPOTHESIS_PROFILE=long CHAOS_SECONDS=$(CHAOS_SECONDS) CHAOS_RATE=$(CHAOS_RATE) KAFKA_VERSIONS=$(KAFKA_LONG) $(PYTEST) -n $(WORKERS) $(SPREAD) --timeout 3600 $(PYTEST_ARGS)
	@$(MAKE) matrix
	@$(MAKE) lakes
	@$(MAKE) bench
	@$(MAKE) reproduce
	@$(MAKE) fuzz

# Needs a nightly compiler and cargo-fuzz. A crash leaves its input in rust/fuzz/artifacts: name it and put it into
# rust/fuzz/corpus, whose committed cases `make test` runs with the stable compiler.
NIGHTLY ?= nightly
FUZZ := cd rust/fuzz && $(CARGO) +$(NIGHTLY) fuzz
fuzz: ## every fuzz target for FUZZ_SECONDS
	@targets=$$($(FUZZ) list --fuzz-dir .) || \
	  { echo "make fuzz needs the $(NIGHTLY) compiler and the command cargo-fuzz, which crates.io has under that name" >&2; exit 1; }; \
	for target in $$targets; do echo "=== fuzz: $$target"; \
	  ($(FUZZ) run --fuzz-dir . $$target -- -max_total_time=$(FUZZ_SECONDS) -verbosity=0 -print_funcs=0 -print_final_stats=1) || exit 1; done

SITE := target/site-venv
site: $(VENV)/.stamp ## the documentation as a web site, in target/site; strict, with the API reference
	@test -x $(SITE)/bin/python || $(BIN)/uv venv --quiet --python $(BIN)/python $(SITE)
	@$(INSTALL) --python $(SITE)/bin/python --group site
	@NO_MKDOCS_2_WARNING=1 $(SITE)/bin/python -m mkdocs build --strict --quiet
	@echo "the site is in target/site/index.html"

# The tools that build and check a release: maturin, zig and the readers of other platforms' files, by hash.
RELEASE := target/release-venv
RELEASE_PYTHON := $(RELEASE)/bin/python -B
$(RELEASE)/.stamp: $(VENV)/.stamp requirements/release.txt
	@test -x $(RELEASE)/bin/python || $(BIN)/uv venv --quiet --python $(BIN)/python $(RELEASE)
	@$(BIN)/uv pip install --quiet --require-hashes --python $(RELEASE)/bin/python --requirement requirements/release.txt
	@touch $@

# Some of the release: make wheels PLATFORMS='sdist manylinux-x86_64'. .github/release/platforms.py lists them.
PLATFORMS ?=
ABI ?=
# RECORD=yes writes down what was built or ran, in docs/figures/releases and on docs/releases.md. `make publish` refuses
# sources that differ from HEAD; therefore RECORD is off by default.
RECORD ?=
RECORDS := docs/figures/releases
wheels: $(RELEASE)/.stamp ## every wheel of a release, cross-built and checked, and the sdist, in dist/: PLATFORMS='macos-arm64 sdist'
	@rm -rf dist
	@$(RELEASE_PYTHON) .github/release/build_wheels.py --out dist $(if $(RECORD),--record $(RECORDS)/built.json) $(foreach abi,$(ABI),--abi $(abi)) $(PLATFORMS)
	@$(MAKE) check-wheels
	@$(if $(RECORD),$(RELEASE_PYTHON) .github/release/release_table.py)

check-wheels: $(RELEASE)/.stamp ## the checks of `make wheels` on what is in dist/
	@$(RELEASE_PYTHON) .github/release/check_wheels.py dist/*
	@$(RELEASE_PYTHON) .github/release/check_files.py $(if $(PLATFORMS),,--release) dist/*

# Unpacks Debian's Pythons of several versions and processors, and builds the Pythons that Debian lacks, in target/pythons:
# TRY='3.13-arm64 3.13-musl'.
TRY ?=
try-wheels: $(RELEASE)/.stamp ## the wheels in dist/ on every Python that this machine can run, arm64 under qemu
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(RELEASE_PYTHON) .github/release/try_wheels.py $(if $(RECORD),--record $(RECORDS)/tried.json) dist $(TRY)
	@$(if $(RECORD),$(RELEASE_PYTHON) .github/release/release_table.py)

# Slow: it compiles each wheel twice.
reproduce: $(RELEASE)/.stamp ## builds of one commit in two folders, compared byte by byte: PLATFORMS='musllinux-x86_64 sdist'
	@$(RELEASE_PYTHON) .github/release/reproduce.py $(if $(FIRST),--with $(FIRST)) $(if $(COMMIT),--commit $(COMMIT)) $(foreach abi,$(ABI),--abi $(abi)) $(or $(PLATFORMS),manylinux-x86_64 sdist)

# Nothing leaves this machine without UPLOAD=yes, and nothing without the tag of the version on HEAD.
publish: $(RELEASE)/.stamp ## what would be published of dist/, with its hashes, SBOM and provenance; UPLOAD=yes publishes it
	@$(RELEASE_PYTHON) .github/release/publish.py $(if $(filter yes,$(UPLOAD)),--upload) dist
	@$(if $(filter yes,$(UPLOAD)),$(MAKE) verify-published)

verify-published: $(VENV)/.stamp ## each file of dist/ against the index, which pip downloads by its hash
	@$(BIN)/python -B .github/release/verify_published.py --wait 600 dist

tag: $(VENV)/.stamp ## the tag of the version on HEAD, if changelog, crates and citation agree
	@$(BIN)/python -B .github/release/release_version.py --tag

release: ## what one machine can show of a release: its Linux wheels and the sdist, tried in an empty environment, and all tests
	@$(MAKE) wheels PLATFORMS='manylinux-x86_64 sdist'
	@$(BIN)/python -P .github/release/try_wheel.py dist
	@echo "=== release: the test suite on the manylinux wheel"
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --reinstall dist/*-abi3-*.whl
	@$(PYTEST) -n $(WORKERS) $(SPREAD) -m "not cluster and not long and not floors" $(PYTEST_ARGS)

figures: $(WORKS) ## the pictures of README, from the plans that they show
	@PYTHONPATH=examples $(BIN)/python -P -m rebalance_picture docs/figures/rebalance

public-names: $(VENV)/.stamp ## tests/public-names.txt from the sources, after a change of the public API that is meant
	@PYTHONPATH=tests $(BIN)/python -P -m support.public_names > tests/public-names.txt.new && mv tests/public-names.txt.new tests/public-names.txt

core-names: $(VENV)/.stamp ## tests/core-names.txt from the sources, after a change of the core's public API that is meant
	@PYTHONPATH=tests $(BIN)/python -P -m support.core_names > tests/core-names.txt.new && mv tests/core-names.txt.new tests/core-names.txt

docs: $(WORKS) ## the examples of README and docs/, executed; the Rust documentation, built
	@$(PYTEST) tests/test_docs.py
	@RUSTDOCFLAGS='-D warnings' $(CARGO) doc --quiet --no-deps --locked --package kafka-assignors-core
