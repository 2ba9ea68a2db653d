# Front door of the repository; CMake does the work. `make help` lists the targets.
PRESET ?= release
BUILD  := build/$(PRESET)
BIN    := build/release/bin
JOBS   ?= $(shell nproc)
DEMO   ?= out/demo
CHAOS_MINUTES := $(or $(MINUTES),5)
MINUTES ?= 1

.DEFAULT_GOAL := help
.PHONY: help setup configure build wheel demo test test-full unit sanitize fuzz soak chaos bench format lint clean

help:  ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup:  ## install packages and LibTorch (Debian 12; asks sudo where needed)
	@scripts/setup.sh

configure: setup
	@mkdir -p build && cmake --preset $(PRESET) -DHETERO_GATE=OFF $(CMAKE_OPTIONS) -Wno-dev >build/$(PRESET).configure.log 2>&1 || { cat build/$(PRESET).configure.log; exit 1; }

build: configure  ## build all programs and tests into build/release
	@cmake --build $(BUILD) -j $(JOBS)

wheel: configure  ## build the Python package's wheels into build/wheels, one of them with hetero-runtime inside
	@cmake --build $(BUILD) -j $(JOBS) --target hetero-runtime
	@scripts/wheel.sh $(BUILD)/bin/hetero-runtime

demo: configure  ## build two programs, make a small dataset and train on it: 1 head, 2 CPU workers, 2 trainers
	@cmake --build $(BUILD) -j $(JOBS) --target hetero-runtime hetero-trainer
	@scripts/demo.sh $(BUILD)/bin $(DEMO)

test:  ## set up, build and run every test layer of the gate
	@scripts/test.sh

test-full:  ## everything that can be tested, or LAYERS="fuzz chaos" of it
	@scripts/test.sh --full $(LAYERS)

unit: build  ## build and run the unit tests only
	@ctest --test-dir $(BUILD) -L unit --output-on-failure -j $(JOBS)

sanitize: setup  ## unit and runtime tests under ASan+UBSan, then TSan
	@scripts/sanitize.sh

fuzz: setup  ## fuzz each target for MINUTES=1, or SECONDS_EACH=10 with the same random numbers each time
	@scripts/fuzz.sh $(if $(SECONDS_EACH),--seconds $(SECONDS_EACH) --seed 1 --fresh,--minutes $(MINUTES))

soak: build  ## the simulated data plane from 100,000 seeds (minutes)
	@HETERO_SIMULATOR_SEEDS=100000 $(BUILD)/tests/simulator_test

chaos: build  ## strike local jobs at random for MINUTES=5, and with NODES=1 jobs on a cluster's nodes, and compare
	@tests/chaos/chaos --minutes $(CHAOS_MINUTES)
	@$(if $(NODES),images/build && tests/cluster/kind/build && tests/chaos/nodes $(CHAOS_MINUTES))

bench: build  ## print the benchmark table (ratios of one run)
	@cmake --build $(BUILD) -j $(JOBS) --target benchmarks
	@scripts/bench.sh $(BUILD)

format:  ## format every C++ file
	@git ls-files '*.h' '*.cpp' | grep -v '^third_party/' | xargs clang-format-14 -i

lint: setup  ## fail on forbidden includes, unformatted files and clang-tidy findings
	@scripts/lint.sh

clean:  ## remove build/ and out/
	@rm -rf build out
