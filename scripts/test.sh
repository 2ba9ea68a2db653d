#!/usr/bin/env bash
# Every test layer, from nothing: set-up, format gate, build, sanitizers, clang-tidy, the test cluster's programs, tests.
# Prints the time of each layer and ends with ctest's summary. HETERO_SKIP="lint sanitize cluster" leaves layers out and
# says so. The cluster's programs are built beside the other layers, at low priority.
set -euo pipefail
cd "$(dirname "$0")/.."
started=$SECONDS
times=()

skipped() { [[ " ${HETERO_SKIP:-} " == *" $1 "* ]]; }

layer() {  # name, command...
  local name=$1 begin=$SECONDS
  shift
  if skipped "$name"; then
    echo "=== $name: NOT RUN (HETERO_SKIP)"
    times+=("$name not run")
    return
  fi
  echo "=== $name"
  "$@"
  times+=("$name $((SECONDS - begin)) s")
}

layer setup scripts/setup.sh
if ! skipped cluster; then
  mkdir -p build
  nice tests/cluster/build >build/cluster.log 2>&1 &
  cluster=$!
  trap 'kill "$cluster" 2>/dev/null || true' EXIT
fi
layer format scripts/lint.sh format
layer build make --no-print-directory build
layer sanitize scripts/sanitize.sh
layer lint scripts/lint.sh
await_cluster() { wait "$cluster" || { tail -30 build/cluster.log >&2; return 1; }; }
layer cluster await_cluster
printf 'layers so far: %s; total %d s\n' "$(IFS=,; echo "${times[*]}" | sed 's/,/, /g')" $((SECONDS - started))
echo "=== tests"
without=()
skipped cluster && without=(-LE cluster)
exec ctest --test-dir build/release -j 4 --output-on-failure --no-tests=error "${without[@]}"
