#!/usr/bin/env bash
# Every test layer, from nothing: set-up, format gate, build, GPU programs, sanitizers, container images, the clusters'
# programs, tests. clang-tidy is one of the tests, at low priority, for those of the clusters mostly wait. Prints the
# time of each layer and ends with ctest's summary. HETERO_SKIP="lint cuda sanitize cluster e2e" leaves layers out and
# says so. What the clusters need is built beside the other layers, at low priority.
# A test that fails is run once more: where only the second run passes, the summary of ctest lists it as passed, and the
# lines before it say which ones and show what went wrong. Such a test is a fault to be found, not a pass.
set -euo pipefail
cd "$(dirname "$0")/.."
started=$SECONDS
times=()

HETERO_SKIP=" ${HETERO_SKIP:-} "
[[ $HETERO_SKIP == *" cluster "* ]] && HETERO_SKIP+="e2e "  # its programs are the cluster layer's
skipped() { [[ $HETERO_SKIP == *" $1 "* ]]; }

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
skipped e2e || options+=(--cluster)
skipped cuda || options+=(--cuda)  # one download of LibTorch, not two
layer setup scripts/setup.sh "${options[@]}"
if ! skipped cluster; then
  mkdir -p build
  (renice -n 10 "$BASHPID" >/dev/null && clusters) >build/cluster.log 2>&1 &
  cluster=$!
  trap 'kill "$cluster" 2>/dev/null || true' EXIT
fi
layer format scripts/lint.sh format
layer build make --no-print-directory build CMAKE_OPTIONS=-DHETERO_UNITY_TESTS=ON  # half the time for the tests
layer cuda scripts/cuda.sh
layer sanitize scripts/sanitize.sh
skipped e2e || layer images images/build
await_cluster() { wait "$cluster" || { tail -30 build/cluster.log >&2; return 1; }; }
layer cluster await_cluster
printf 'layers so far: %s; total %d s\n' "$(IFS=,; echo "${times[*]}" | sed 's/,/, /g')" $((SECONDS - started))
echo "=== tests"
left_out=()
for label in lint e2e cluster; do
  if skipped "$label"; then
    echo "=== $label: NOT RUN (HETERO_SKIP)"
    left_out+=("$label")
  fi
done
without=()
((${#left_out[@]})) && without=(-LE "^($(IFS='|'; echo "${left_out[*]}"))\$")
exec ctest --test-dir build/release -C gate -j 6 --repeat until-pass:2 --output-on-failure --no-tests=error "${without[@]}"
