#!/usr/bin/env bash
# Every test layer, from nothing: set-up, format gate, build, tests, clang-tidy, sanitizers. Prints the time of
# each layer and ends with ctest's summary. HETERO_SKIP="lint sanitize" leaves layers out and says so.
set -euo pipefail
cd "$(dirname "$0")/.."
started=$SECONDS
times=()

layer() {  # name, command...
  local name=$1 begin=$SECONDS
  shift
  if [[ " ${HETERO_SKIP:-} " == *" $name "* ]]; then
    echo "=== $name: NOT RUN (HETERO_SKIP)"
    times+=("$name not run")
    return
  fi
  echo "=== $name"
  "$@"
  times+=("$name $((SECONDS - begin)) s")
}

layer setup scripts/setup.sh
layer format scripts/lint.sh format
layer build make --no-print-directory build
layer sanitize scripts/sanitize.sh
layer lint scripts/lint.sh
printf 'layers so far: %s; total %d s\n' "$(IFS=,; echo "${times[*]}" | sed 's/,/, /g')" $((SECONDS - started))
echo "=== tests"
exec ctest --test-dir build/release --output-on-failure --no-tests=error
