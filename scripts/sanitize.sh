#!/usr/bin/env bash
# Tests under AddressSanitizer + UndefinedBehaviorSanitizer, and under ThreadSanitizer. runtime/train is left out: LibTorch
# is not instrumented. Reports are gathered in a folder, so that one of a child process whose end a test expects is not
# lost.
#   scripts/sanitize.sh                  all tests that can be sanitized (presets asan-ubsan and tsan)
#   scripts/sanitize.sh --gate           where it pays (cmake/Hetero.cmake lists them): ASan and UBSan in the build that
#                                        the fuzz targets need anyway, where clang checks the locks too (preset fuzz)
#   scripts/sanitize.sh PRESET...        all tests of these presets
set -euo pipefail
cd "$(dirname "$0")/.."
presets=("$@") build=() test=()
if [[ ${1:-} == --gate ]]; then
  presets=(fuzz tsan) build=(--target sanitized_tests) test=(-L '^sanitized$')
elif [[ ${1:-} == --all ]] || (($# == 0)); then
  presets=(asan-ubsan tsan) test=(-C full)
fi
for preset in "${presets[@]}"; do
  cmake --preset "$preset" -Wno-dev >/dev/null
  targets=("${build[@]}")
  [[ $preset == fuzz ]] && targets=()  # the preset's own: the fuzz targets and the check of the locks too
  cmake --build --preset "$preset" "${targets[@]}" -j "$(nproc)"
  reports=$PWD/build/$preset/reports
  rm -rf "$reports"
  mkdir "$reports"
  status=0
  # UBSan itself writes to stderr only: it aborts, and ASan reports that. Both set the one path they share.
  ASAN_OPTIONS="log_path=$reports/asan handle_abort=1" \
    UBSAN_OPTIONS="log_path=$reports/asan print_stacktrace=1 abort_on_error=1" \
    TSAN_OPTIONS="log_path=$reports/tsan ignore_noninstrumented_modules=1 suppressions=$PWD/tests/tsan.supp" \
    scripts/ctest.py ${HETERO_TEST_RECORD:+--record "$HETERO_TEST_RECORD"} --layer "$preset" \
    --preset "$preset" "${test[@]}" -j "$(nproc)" --repeat until-pass:2 --no-tests=error || status=$?
  for report in "$reports"/*; do
    [[ -e $report ]] || continue
    cat "$report"
    status=1
  done
  ((status == 0)) || exit "$status"
done
