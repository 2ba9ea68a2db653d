#!/usr/bin/env bash
# The test layers, from nothing.
#   scripts/test.sh                  the gate: what every change passes (make test)
#   scripts/test.sh --full           everything (make test-full)
#   scripts/test.sh --full LAYER...  these layers of it alone
# Layers of the gate: setup format build cuda sanitize fuzz images python tests. In full, `sanitize` runs every test
# that can be sanitized, `fuzz` takes two minutes for each target instead of 4 or 8 seconds, `tests` has what shows again in
# minutes what the gate shows in seconds (NAME_full of ctest), and there are `tidy` (clang-tidy on every source; the gate
# reads what has changed since it last found nothing, as one of its tests), `build` has the benchmarks, `simulator` (20,000 seeds), `chaos` (local jobs),
# `cluster` (waits until clusters can be made) and `chaos-nodes` (jobs on a cluster's nodes) too.
# HETERO_SKIP="lint cuda sanitize fuzz cluster e2e python storage prometheus" leaves layers out and says so. What the clusters and
# the stores' tests need is built, and PyTorch is installed, beside the other layers, at low priority, but not so low that
# the longest tests would wait for it at the end; tests without a cluster do not wait for it. A test that fails is run
# once more; the last lines name those that passed only then, and are ctest's summary. Prints the time of each layer.
set -euo pipefail
cd "$(dirname "$0")/.."
started=$SECONDS
times=()
records=build/test-times.json

gate="setup format build cuda sanitize fuzz images python tests"
full="setup format build cuda sanitize tidy simulator fuzz chaos images cluster chaos-nodes python tests"
mode=gate chosen=$gate
if [[ ${1:-} == --full ]]; then
  mode=full chosen=$full
  shift
fi
for layer in "$@"; do
  [[ " ${!mode} " == *" $layer "* ]] || { echo "test: unknown layer '$layer': use ${!mode// /, }" >&2; exit 2; }
done
(($#)) && chosen=$*

HETERO_SKIP=" ${HETERO_SKIP:-} "
[[ $HETERO_SKIP == *" cluster "* ]] && HETERO_SKIP+="e2e "  # its programs are the cluster layer's
skipped() { [[ $HETERO_SKIP == *" $1 "* ]]; }
chosen() { [[ " $chosen " == *" $1 "* ]]; }

layer() {  # name, command...
  local name=$1 begin=$SECONDS
  shift
  chosen "$name" || return 0
  if skipped "$name"; then
    echo "=== $name: NOT RUN (HETERO_SKIP)"
    times+=("$name not run")
    return
  fi
  echo "=== $name"
  "$@"
  times+=("$name $((SECONDS - begin)) s")
}

clusters() {
  tests/cluster/build && { skipped e2e || tests/cluster/kind/build; } && { skipped storage || tests/integration/storage/server/build; } &&
    { skipped prometheus || tests/integration/prometheus/get; } && { [[ $mode == gate ]] || tests/cluster/build_kueue_newest; }
}
simulator() { HETERO_SIMULATOR_SEEDS=20000 build/release/tests/simulator_test --gtest_brief=1; }
# The gate fuzzes from the seeds alone, with the same random numbers each time.
sanitizers=--gate fuzzing=(--seconds 4 --stored 8 --seed 1 --fresh)
frameworks=()
if [[ $mode == full ]]; then sanitizers=--all fuzzing=(--minutes 2) frameworks=(--full); fi

rm -f "$records"
options=()
skipped e2e || options+=(--cluster)
skipped cuda || options+=(--cuda)  # one download of LibTorch, not two
layer setup scripts/setup.sh "${options[@]}"
mkdir -p build
if { chosen cluster || chosen tests; } && ! skipped cluster; then
  clusters >build/cluster.log 2>&1 &
  cluster=$!
fi
if chosen python && ! skipped python; then
  (renice -n 10 "$BASHPID" >/dev/null && scripts/setup_python.sh "${frameworks[@]}") >build/python.log 2>&1 &
  python=$!
fi
trap 'kill ${cluster:-} ${python:-} 2>/dev/null || true' EXIT
layer format scripts/lint.sh format
# What the gate runs under sanitizers it does not run without them, too.
once=OFF
if [[ $mode == gate ]] && chosen sanitize && ! skipped sanitize; then once=ON; fi
programs() {
  # What is compiled together takes half the time, but for a change of one file.
  make --no-print-directory build CMAKE_OPTIONS="-DHETERO_UNITY_TESTS=ON -DHETERO_GATE=$once"
  [[ $mode == gate ]] || cmake --build build/release --target benchmarks
}
layer build programs
layer cuda scripts/cuda.sh
layer sanitize env HETERO_TEST_RECORD="$PWD/$records" scripts/sanitize.sh $sanitizers
layer tidy scripts/lint.sh tidy
layer simulator simulator
layer fuzz scripts/fuzz.sh "${fuzzing[@]}"
layer chaos tests/chaos/chaos --minutes 5
images() { images/build && tests/cluster/kind/python_image; }
skipped e2e || layer images images
await_cluster() { wait "$cluster" || { tail -30 build/cluster.log >&2; return 1; }; }
layer cluster await_cluster
skipped e2e || layer chaos-nodes tests/chaos/nodes 5
await_python() { wait "$python" || { tail -30 build/python.log >&2; return 1; }; }
layer python await_python
printf 'layers so far: %s; total %d s\n' "$(IFS=,; echo "${times[*]}" | sed 's/,/, /g')" $((SECONDS - started))
chosen tests || exit 0

echo "=== tests"
left_out=()
for label in lint e2e cluster python storage prometheus; do
  if skipped "$label"; then
    echo "=== $label: NOT RUN (HETERO_SKIP)"
    left_out+=("$label")
  fi
done
without=()
((${#left_out[@]})) && without=(-LE "^($(IFS='|'; echo "${left_out[*]}"))\$")
scripts/ctest.py --record "$records" --layers "$(IFS=,; echo "${times[*]}" | sed 's/,/, /g')" \
  --test-dir build/release -C "$mode" -j 7 --repeat until-pass:2 --output-on-failure --no-tests=error "${without[@]}"
