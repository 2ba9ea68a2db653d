#!/usr/bin/env bash
# Builds the fuzz targets of tests/fuzz (preset fuzz: clang-14, libFuzzer, ASan, UBSan) and runs each for a while. Prints
# a table; ends with 1 when one finds something, with the input's file and the command that repeats it.
#   scripts/fuzz.sh [--minutes N | --seconds N] [--stored N] [--only NAME] [--seed N] [--fresh] [--no-build]
#   --minutes, --seconds  of each target; 1 minute when neither is given
#   --stored N            seconds of each target that reads what stores hold: datasets, indexes, replies
#   --only NAME           this target only; may be given several times
#   --seed N              of libFuzzer's random numbers; another one each time when it is not given
#   --fresh               begin with the seeds alone, and keep nothing for later runs (else: build/fuzz/corpus)
#   --no-build            run what is there
# Each run begins with the seeds (tests/fuzz/corpus) and with the inputs that once were findings (tests/fuzz/regressions).
# JOBS targets run at a time, as many as there are cores when it is not set.
set -euo pipefail
cd "$(dirname "$0")/.."

build=$PWD/build/fuzz
seconds=60
stored=
seed=$((1 + $(od -An -N3 -tu4 /dev/urandom)))
fresh=0
build_first=1
targets=()
while (($#)); do
  case $1 in
    --minutes) seconds=$((60 * $2)); shift 2 ;;
    --seconds) seconds=$2; shift 2 ;;
    --stored) stored=$2; shift 2 ;;
    --only) targets+=("$2"); shift 2 ;;
    --seed) seed=$2; shift 2 ;;
    --fresh) fresh=1; shift ;;
    --no-build) build_first=0; shift ;;
    *) echo "fuzz: unknown option '$1': use --minutes, --seconds, --stored, --only, --seed, --fresh or --no-build" >&2; exit 2 ;;
  esac
done
mapfile -t all < <(sed -n 's/^hetero_fuzzer(\([a-z_]*\).*/\1/p' tests/fuzz/CMakeLists.txt)
((${#targets[@]})) || targets=("${all[@]}")
for target in "${targets[@]}"; do
  [[ " ${all[*]} " == *" $target "* ]] || { echo "fuzz: no target '$target': there are ${all[*]}" >&2; exit 2; }
done

if ((build_first)); then
  mkdir -p build
  cmake --preset fuzz -Wno-dev >build/fuzz.configure.log 2>&1 || { cat build/fuzz.configure.log >&2; exit 1; }
  cmake --build "$build" -j "${JOBS:-$(nproc)}" --target "${targets[@]/#/fuzz_}"
fi

# What a target may need: the longest input, and the largest piece of memory in MiB. Nothing of a few kilobytes needs
# more; a feed frame's tensor is taken whole, at most 2 GiB, and its pages only as its bytes come;
# a compressed shard of MDS has the size that its index says, at most 256 MiB.
limits() {
  case $1 in
    # A page of Parquet has the size that it says, at most 64 MiB.
    parquet) echo "-max_len=4096 -malloc_limit_mb=100" ;;
    feed) echo "-max_len=4096 -malloc_limit_mb=2100" ;;
    manifest | custom_resource | web_dataset) echo "-max_len=8192 -malloc_limit_mb=64" ;;
    mds) echo "-max_len=4096 -malloc_limit_mb=300" ;;
    data_connection | idx) echo "-max_len=1024 -malloc_limit_mb=64" ;;
    *) echo "-max_len=4096 -malloc_limit_mb=64" ;;
  esac
}

length() {  # target: seconds
  case $1 in
    store_replies | web_dataset | tf_record | record_io | mds | parquet | dataset_index | dataset_manifest)
      echo "${stored:-$seconds}" ;;
    *) echo "$seconds" ;;
  esac
}

run() {  # target; its report is in $build/logs
  local target=$1 corpus=$corpora/$1 options
  mkdir -p "$corpus" "$build/findings" "$build/logs" "$TMPDIR/$target"
  read -ra options <<<"$(limits "$target")"
  [[ -e tests/fuzz/dictionaries/$target ]] && options+=("-dict=tests/fuzz/dictionaries/$target")
  local folders=("$corpus" "tests/fuzz/corpus/$target")
  [[ -d tests/fuzz/regressions/$target ]] && folders+=("tests/fuzz/regressions/$target")
  find "$corpus" -type f | wc -l >"$build/logs/$target.before"
  local status=0
  TMPDIR=$TMPDIR/$target "$build/fuzz/$target" "${options[@]}" -max_total_time="$(length "$target")" -seed="$seed" -timeout=10 \
    -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix="$build/findings/$target-" \
    "${folders[@]}" >"$build/logs/$target.log" 2>&1 || status=$?
  echo "$status" >"$build/logs/$target.status"
}

number() {  # target, extended expression with one group: what it found last in the target's log
  sed -nE "s/.*$2.*/\1/p" "$build/logs/$1.log" | tail -1
}

symbolizer=$(command -v llvm-symbolizer-14 || true)
export ASAN_SYMBOLIZER_PATH=$symbolizer UBSAN_OPTIONS=print_stacktrace=1
TMPDIR=$(mktemp -d "$([[ -w /dev/shm ]] && echo /dev/shm || echo "${TMPDIR:-/tmp}")/fuzz.XXXXXX")  # targets write small files
export TMPDIR
corpora=$build/corpus
((fresh)) && corpora=$TMPDIR/corpus
trap 'rm -rf "$TMPDIR"' EXIT

echo "fuzz: ${#targets[@]} targets, $seconds s each${stored:+, $stored s for what stores hold}, seed $seed"
for target in "${targets[@]}"; do
  while (($(jobs -rp | wc -l) >= ${JOBS:-$(nproc)})); do wait -n || true; done
  run "$target" &
done
wait

printf '%-20s %12s %9s %9s %8s %s\n' target executions exec/s edges corpus findings
found=()
for target in "${targets[@]}"; do
  before=$(cat "$build/logs/$target.before")
  after=$(find "$corpora/$target" -type f | wc -l)
  finding=none
  if [[ $(cat "$build/logs/$target.status") != 0 ]]; then
    finding=$(sed -nE 's/.*(FINDING: .*|SUMMARY: .*)/\1/p' "$build/logs/$target.log" | head -1)
    finding=${finding:-it ended with $(cat "$build/logs/$target.status")}
    found+=("$target")
  fi
  printf '%-20s %12s %9s %9s %8s %s\n' "$target" "$(number "$target" 'number_of_executed_units: *([0-9]+)')" \
    "$(number "$target" 'average_exec_per_sec: *([0-9]+)')" "$(number "$target" ' cov: ([0-9]+) ')" \
    "+$((after - before))" "$finding"
done
((${#found[@]})) || exit 0
for target in "${found[@]}"; do
  input=$(number "$target" 'Test unit written to (.*)')
  echo "fuzz: $target: log build/fuzz/logs/$target.log, input ${input:-is named there}"
  echo "  again: build/fuzz/fuzz/$target ${input:-FILE}"
  echo "  once it is mended: git add tests/fuzz/regressions/$target/NAME (a copy of the input)"
done >&2
exit 1
