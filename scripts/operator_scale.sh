#!/usr/bin/env bash
# The operator at scale: JOBS jobs of four pods on a real control plane with 100 KWOK nodes, then the same writes by a plain
# 16-way client on a fresh one, and the ratio of the two. About ten minutes for 1,000 jobs on two cores.
# Usage: scripts/operator_scale.sh [JOBS]   (after make build && ninja -C build/release benchmarks)
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=${1:-1000}
build=${BUILD:-build/release}
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
export HETERO_CLUSTER_NODES=100
# Auditing costs the API server something, so both runs have it on.
export HETERO_CLUSTER_APISERVER_FLAGS="--audit-policy-file=$folder/audit.yaml --audit-log-path=$folder/audit.log
  --audit-log-maxsize=4000 --max-requests-inflight=2000 --max-mutating-requests-inflight=1000"
tests/cluster/run "$build/tests/operator_scale" run --jobs "$jobs" --idle-seconds "${IDLE_SECONDS:-60}" --audit-log "$folder/audit.log" \
  --recording "$folder/recording.json"
rm -f "$folder/audit.log"
tests/cluster/run "$build/tests/operator_scale" replay --recording "$folder/recording.json"
