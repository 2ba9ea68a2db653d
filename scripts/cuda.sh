#!/usr/bin/env bash
# Builds and links the GPU programs, without a GPU: fetches CUDA's compiler and NCCL, adds what the preset cuda has to
# the release build, so that nothing is compiled twice, and runs the tests of the label gpu, which say so where they
# cannot run. Usage: scripts/cuda.sh [--build [FOLDER]]
#   --build  what a day on a machine with a GPU needs (scripts/gpu_day.sh): what running there takes and the training step
#            of tests/bench too, in FOLDER (build/release); runs no tests
set -euo pipefail
cd "$(dirname "$0")/.."
folder=build/release only_build=
case ${1:-} in
  "") ;;
  --build) only_build=yes folder=${2:-$folder} ;;
  *) echo "cuda: unknown option '$1': use --build [FOLDER], or nothing" >&2; exit 2 ;;
esac
targets=(gpu_programs)
if [[ $only_build ]]; then
  targets+=(hetero-runtime train_step_cuda)
  scripts/setup.sh --cuda-run
else
  scripts/setup.sh --cuda
fi
mkdir -p build
cmake --preset cuda -B "$folder" -Wno-dev >build/cuda.configure.log 2>&1 || { cat build/cuda.configure.log >&2; exit 1; }
cmake --build "$folder" -j "$(nproc)" --target "${targets[@]}"
[[ $only_build ]] && exit 0
ctest --test-dir "$folder" -L gpu --output-on-failure --no-tests=error
