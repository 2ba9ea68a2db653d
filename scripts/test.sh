#!/usr/bin/env bash
# Every test layer, from nothing: set-up, format gate, build, sanitizers, clang-tidy, container images, the clusters'
# programs, tests. Prints the time of each layer and ends with ctest's summary. HETERO_SKIP="lint sanitize cluster e2e"
# leaves layers out and says so. What the clusters need is built beside the other layers, at low priority.
# A test that fails is run once more: where only the second run passes, the summary of ctest lists it as passed, and the
# lines before it say which ones and show what went wrong. Such a test is a fault to be found, not a pass.
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

clusters() { tests/cluster/build && { skipped e2e || tests/cluster/kind/build; }; }

options=()
skipped e2e || options=(--cluster)
layer setup scripts/setup.sh "${options[@]}"
if ! skipped cluster; then
  mkdir -p build
  (renice -n 10 "$BASHPID" >/dev/null && clusters) >build/cluster.log 2>&1 &
  cluster=$!
  trap 'kill "$cluster" 2>/dev/null || true' EXIT
fi
layer format scripts/lint.sh format
layer build make --no-print-directory build
layer sanitize scripts/sanitize.sh
layer lint scripts/lint.sh
skipped e2e || layer images images/build
await_cluster() { wait "$cluster" || { tail -30 build/cluster.log >&2; return 1; }; }
layer cluster await_cluster
printf 'layers so far: %s; total %d s\n' "$(IFS=,; echo "${times[*]}" | sed 's/,/, /g')" $((SECONDS - started))
echo "=== tests"
without=()
skipped e2e && without=(-LE e2e)
skipped cluster && without=(-LE "cluster|e2e")
exec ctest --test-dir build/release -j 4 --repeat until-pass:2 --output-on-failure --no-tests=error "${without[@]}"
