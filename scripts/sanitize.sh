#!/usr/bin/env bash
# Unit and integration tests under AddressSanitizer + UndefinedBehaviorSanitizer, then unit tests and the data path
# under ThreadSanitizer (presets asan-ubsan and tsan). runtime/train is left out: LibTorch is not instrumented.
# Reports are gathered in a folder, so that one of a child process whose end a test expects is not lost.
set -euo pipefail
cd "$(dirname "$0")/.."
for preset in "${@:-asan-ubsan tsan}"; do
  for name in $preset; do
    cmake --preset "$name" -Wno-dev >/dev/null
    cmake --build --preset "$name" -j "$(nproc)"
    reports=$PWD/build/$name/reports
    rm -rf "$reports"
    mkdir "$reports"
    status=0
    # UBSan itself writes to stderr only: it aborts, and ASan reports that. Both set the one path they share.
    ASAN_OPTIONS="log_path=$reports/asan handle_abort=1" \
      UBSAN_OPTIONS="log_path=$reports/asan print_stacktrace=1 abort_on_error=1" \
      TSAN_OPTIONS="log_path=$reports/tsan ignore_noninstrumented_modules=1 suppressions=$PWD/tests/tsan.supp" \
      ctest --preset "$name" -j "$(nproc)" --repeat until-pass:2 --no-tests=error || status=$?
    for report in "$reports"/*; do
      [[ -e $report ]] || continue
      cat "$report"
      status=1
    done
    ((status == 0)) || exit "$status"
  done
done
