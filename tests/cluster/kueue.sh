# What both clusters' ./kueue scripts share. Sourced, behind settings.sh.

# Usage: kueue_configure FOLDER PORT VISIBILITY: its configuration, and where its certificates go. VISIBILITY, true or
# false: whether it serves the places in queues, for which it wants a pod's files.
kueue_configure() {
  mkdir -p "$1/certs"
  cat >"$1/config.yaml" <<CONFIG
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
namespace: kueue-system
health: {healthProbeBindAddress: "127.0.0.1:8081"}
metrics: {bindAddress: "127.0.0.1:8443"}
webhook: {port: $2, certDir: $1/certs}
leaderElection: {leaderElect: false}
clientConnection: {qps: 500, burst: 1000}
integrations:  # so that its webhook looks at the pods of our jobs, too, and leaves them alone (docs/queues.md)
  frameworks: [pod]
  externalFrameworks: [HeteroTrainingJob.v1alpha1.training.hetero.dev]
featureGates: {VisibilityOnDemand: $3}
${HETERO_CLUSTER_KUEUE_CONFIG:-}
CONFIG
}

# It makes its own certificates, and waits for them as files, which a kubelet would mount.
kueue_certificates() {
  local name data
  for name in tls.crt tls.key ca.crt ca.key; do
    data=$(kubectl -n kueue-system get secret kueue-webhook-server-cert -o "jsonpath={.data.${name/./\\.}}") || return
    [[ $data ]] || return
    base64 -d <<<"$data" >"$1/certs/$name"
  done
}

# What its webhooks must let through.
kueue_answers() {
  kubectl create --dry-run=server -f - <<FLAVOR
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: ready}
FLAVOR
}

# Waits until it works. Usage: kueue_await FOLDER PID LOG
kueue_await() {
  local begin limit=${HETERO_CLUSTER_START_SECONDS:-120}
  local deadline=$((SECONDS + limit))
  begin=$(cluster_uptime)
  until kueue_certificates "$1" && kueue_answers >/dev/null 2>&1; do
    kill -0 "$2" 2>/dev/null || { tail -20 "$3" >&2; cluster_fail "kueue ended while it started"; }
    ((SECONDS < deadline)) || { tail -20 "$3" >&2; cluster_fail "kueue did not answer within $limit s"; }
    sleep 0.5
  done
  printf 'cluster: kueue answers after %.1f s\n' "$(awk "BEGIN {print $(cluster_uptime) - $begin}")" >&2
}
