#!/usr/bin/env bash
# The operator at scale, each scenario on a real control plane of its own with 100 KWOK nodes. Ends with 1 when a target of
# one is missed.
#   many [JOBS]    JOBS (1000) jobs of four pods, then the same writes by a plain 16-way client, and the ratio of the two;
#                  about ten minutes for 1,000 jobs on two cores
#   big GPU CPU    one job of so many pods under the chart's defaults, small jobs beside it, members lost
#   slow-api       jobs of other namespaces while calls about one take 100 ms longer and a third gets 429
#   slow-webhook   likewise while the admission webhook of one namespace takes 3 s for each pod
#   all            many 1000, big 512 1024, big 1 9998 (10,000 pods with the head), both slow ones
# Usage: scripts/operator_scale.sh [SCENARIO ...]   (after make build && ninja -C build/release benchmarks)
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-build/release}
scale=$build/tests/operator_scale
export HETERO_CLUSTER_NODES=100

cluster() {  # SECONDS COMMAND...
  timeout --kill-after=10 "$1" tests/cluster/run "${@:2}"
}

many() {
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  cat >"$folder/audit.yaml" <<YAML
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Request
  users: ["system:serviceaccount:hetero-system:hetero-hetero-operator"]
- level: None
YAML
  # Auditing costs the API server something, so both runs have it on.
  local -x HETERO_CLUSTER_APISERVER_FLAGS="--audit-policy-file=$folder/audit.yaml --audit-log-path=$folder/audit.log
    --audit-log-maxsize=4000 --max-requests-inflight=2000 --max-mutating-requests-inflight=1000"
  local status=0
  cluster 2400 "$scale" run --jobs "$1" --idle-seconds "${IDLE_SECONDS:-60}" --audit-log "$folder/audit.log" \
    --recording "$folder/recording.json" || status=1
  rm -f "$folder/audit.log"
  cluster 2400 "$scale" replay --recording "$folder/recording.json" || status=1
  return $status
}

big() {
  # The scheduler's own limit of 50 calls a second would be what is measured.
  local -x HETERO_CLUSTER_SCHEDULER_FLAGS="--kube-api-qps=1000 --kube-api-burst=2000"
  cluster 3600 "$scale" big --gpu "$1" --cpu "$2"
}

scenario=${1:-many}
case $scenario in
  many) many "${2:-1000}" ;;
  big) big "${2:-512}" "${3:-1024}" ;;
  slow-api | slow-webhook) cluster 1800 "$scale" "$@" ;;
  all)
    status=0
    for one in "many 1000" "big 512 1024" "big 1 9998" slow-api slow-webhook; do
      echo "== $one"
      # shellcheck disable=SC2086
      "$0" $one || status=1
    done
    exit $status
    ;;
  [0-9]*) many "$scenario" ;;
  *)
    echo "operator_scale.sh: '$scenario' is no scenario; see the head of this file" >&2
    exit 2
    ;;
esac
