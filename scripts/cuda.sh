#!/usr/bin/env bash
# Builds and links the GPU programs, without a GPU: fetches CUDA's compiler and NCCL, adds what the preset cuda has to
# the release build, so that nothing is compiled twice, and runs the tests of the label gpu, which say so where they
# cannot run. Usage: scripts/cuda.sh
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh --cuda
mkdir -p build
cmake --preset cuda -B build/release -Wno-dev >build/cuda.configure.log 2>&1 || { cat build/cuda.configure.log >&2; exit 1; }
cmake --build build/release -j "$(nproc)" --target gpu_programs
ctest --test-dir build/release -L gpu --output-on-failure --no-tests=error
