#!/usr/bin/env bash
# Unit and runtime tests under AddressSanitizer + UndefinedBehaviorSanitizer, then unit tests under
# ThreadSanitizer. runtime/train is left out: LibTorch is not instrumented.
set -euo pipefail
cd "$(dirname "$0")/.."
for preset in "${@:-asan-ubsan tsan}"; do
  for name in $preset; do
    cmake --preset "$name" -Wno-dev >/dev/null
    cmake --build "build/$name" -j "$(nproc)"
    TSAN_OPTIONS="ignore_noninstrumented_modules=1 halt_on_error=1 suppressions=$PWD/tests/tsan.supp" \
      ASAN_OPTIONS="detect_leaks=0" \
      ctest --test-dir "build/$name" --output-on-failure --no-tests=error
  done
done
