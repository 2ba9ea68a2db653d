#!/usr/bin/env bash
# The chart: helm lint, every set of values, and what comes out of them shown to the real API server. Runs inside
# tests/cluster/run, which has helm and kubectl on the PATH.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
chart=$root/charts/hetero-operator
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "chart_test: $*" >&2; exit 1; }

cmp "$root"/crds/*.yaml "$chart"/crds/*.yaml || fail "charts/hetero-operator/crds differs from crds; copy it"
helm lint --strict "$chart" >/dev/null || fail "helm lint"
kubectl apply -f "$root/crds/" >/dev/null
# At first there is no list of conditions to wait on, which kubectl takes for an error.
for _ in {1..50}; do
  kubectl wait --for=condition=Established crd/heterotrainingjobs.training.hetero.dev >/dev/null 2>&1 && break
  sleep 0.2
done
for name in hetero-system team-a team-b; do kubectl create namespace "$name" >/dev/null; done
# A pod is refused, even in a dry run, when its ServiceAccount does not exist.
for name in hetero-system team-a; do
  kubectl create --save-config serviceaccount hetero-hetero-operator-test -n "$name" >/dev/null
done
kubectl label namespace hetero-system pod-security.kubernetes.io/enforce=restricted >/dev/null

render() {  # name, helm's arguments...
  local name=$1
  shift
  helm template hetero "$chart" --namespace hetero-system "$@" >"$work/$name.yaml" || fail "$name: helm template"
}
everything=(--set replicas=2,metrics.serviceMonitor.enabled=true,metrics.prometheusRule.enabled=true
  --set metrics.grafanaDashboard.enabled=true,metrics.fromNamespace=monitoring,jobs.imagePullPolicy=Always
  --set jobMetrics.podMonitor.enabled=true,jobMetrics.prometheusRule.enabled=true,jobMetrics.grafanaDashboard.enabled=true
  --set 'jobs.imagePullSecrets={one,two},image.pullSecrets={one},commonLabels.team=a,podLabels.x=y'
  --set 'podAnnotations.a=b,nodeSelector.pool=system,priorityClassName=system-cluster-critical,extraArgs={--parallelism=10}'
  --set-json "jobs.storage=[{\"prefix\": \"s3://datasets\", \"endpoint\": \"https://minio.example:9000\"}]"
  --set 'scheduling.gangs={Volcano,Coscheduling,Native}'
  --set 'env[0].name=A,env[0].value=b,volumes[0].name=v,volumeMounts[0].name=v,volumeMounts[0].mountPath=/v')
render default
render namespaced --set 'watchNamespaces={team-a,team-b}'
render available --set replicas=2
render single --set leaderElection.enabled=false
render everything "${everything[@]}"

# The Prometheus operator's definitions are not there; its three kinds are left out by name.
without_prometheus() { awk 'BEGIN { RS = "---\n"; ORS = "---\n" } !/kind: (ServiceMonitor|PodMonitor|PrometheusRule)\n/' "$1"; }
for file in "$work"/*.yaml; do
  without_prometheus "$file" >"$work/checked"
  kubectl apply --dry-run=server -f "$work/checked" >"$work/out" 2>&1 || fail "$(basename "$file"): $(<"$work/out")"
  ! grep -i "warning" "$work/out" || fail "$(basename "$file"): a warning"
done
grep -q 'kind: ServiceMonitor' "$work/everything.yaml" && grep -q 'kind: PrometheusRule' "$work/everything.yaml" ||
  fail "everything: a kind is missing"

# What jobs tell Prometheus: files of the chart come out as they are, and the PodMonitor does what docs/metrics.md shows.
python3 - "$work/everything.yaml" "$chart" "$root/docs/metrics.md" <<'PYTHON' || fail "everything: metrics of jobs"
import json, re, sys
everything, chart, page = open(sys.argv[1]).read(), sys.argv[2], open(sys.argv[3]).read()
documents = everything.split("---\n")
for name in ("hetero-operator.json", "hetero-jobs.json"):
    [text] = re.findall(rf"^  {name}: \|-\n((?:    .*\n)+)", everything, re.M)
    assert json.loads(text) == json.load(open(f"{chart}/dashboards/{name}")), name
rules = [text for text in documents if "kind: PrometheusRule\n" in text and "name: hetero-hetero-operator-jobs\n" in text]
assert len(rules) == 1, "no rules of jobs"
alerts = open(f"{chart}/alerts/hetero-jobs.yaml").read()
assert re.sub("(?m)^  ", "", rules[0].split("\nspec:\n")[1]).strip() == alerts.strip()
[monitor] = [text for text in documents if "kind: PodMonitor\n" in text]
for part in ("any: true", "port: metrics", "{app.kubernetes.io/managed-by: hetero-operator}"):
    assert part in monitor, part
shown = re.findall(r"source_labels: \[(\w+)\], target_label: (hetero_\w+)", page)
assert shown and re.findall(r"sourceLabels: \[(\w+)\], targetLabel: (\w+)", monitor) == shown, shown
PYTHON
render two-namespaces --set 'watchNamespaces={team-a,team-b},jobMetrics.podMonitor.enabled=true,metrics.fromNamespace=monitoring'
grep -A 2 'matchNames:' "$work/two-namespaces.yaml" | tr -d ' \n' | grep -q 'matchNames:-team-a-team-b' ||
  fail "two-namespaces: the PodMonitor does not select watchNamespaces"
! grep -q 'any: true' "$work/two-namespaces.yaml" || fail "two-namespaces: the PodMonitor selects every namespace"
! grep -qE 'PodMonitor|hetero-operator-jobs' "$work/default.yaml" || fail "default: metrics of jobs that nobody asked for"
grep -q 'kind: ClusterRoleBinding' "$work/namespaced.yaml" && fail "namespaced: a ClusterRoleBinding"
grep -q 'kind: PodDisruptionBudget' "$work/default.yaml" && fail "default: a PodDisruptionBudget for one replica"
grep -q 'kind: PodDisruptionBudget' "$work/available.yaml" || fail "available: no PodDisruptionBudget"
for probe in healthz readyz; do
  grep -q "httpGet: {path: /$probe, port: probes}" "$work/default.yaml" || fail "default: $probe shares the port of the metrics"
done
! grep -A 20 'kind: NetworkPolicy' "$work/default.yaml" | grep -q 'port: probes' || fail "default: probes are open to all"
! grep -q -- '--page-listen' "$work/default.yaml" || fail "default: the page of all jobs is not where the operator has it by itself, on loopback"
render other-page --set page.port=8090
grep -q -- '--page-listen=127.0.0.1:8090$' "$work/other-page.yaml" || fail "other-page: the page of all jobs is not on loopback alone"
render no-page --set page.enabled=false
grep -q -- '--page-listen=none$' "$work/no-page.yaml" || fail "no-page: page.enabled=false has no effect"
render old-values --set-json 'page=null'
! grep -q -- '--page-listen' "$work/old-values.yaml" || fail "old-values: a release that lacks page"
version=$(sed -n 's/^appVersion: *//p' "$chart/Chart.yaml")
for part in runtime trainer; do
  grep -q -- "--$part-image=hetero-$part:$version\$" "$work/default.yaml" || fail "default: another image than images/build makes"
done
render registry --set image.registry=registry.example.com/team
grep -q -- "--trainer-image=registry.example.com/team/hetero-trainer:$version\$" "$work/registry.yaml" ||
  fail "registry: not in the jobs' images"
grep -q -- '--no-leader-elect' "$work/single.yaml" || fail "single: leader election is on"

grep -q -- '--trainer-image-without-cuda' "$work/default.yaml" || fail "default: the trainer is for the CPU, and nobody says so"
render own-trainer --set jobs.trainerImage=registry.example.com/trainer:1
grep -q -- '--trainer-image-without-cuda' "$work/own-trainer.yaml" && fail "own-trainer: it may have CUDA"
render cpu-trainer --set jobs.trainerImage=registry.example.com/trainer:1,jobs.trainerCuda=false
grep -q -- '--trainer-image-without-cuda' "$work/cpu-trainer.yaml" || fail "cpu-trainer: trainerCuda=false has no effect"
render gpu-trainer --set jobs.trainerCuda=true
grep -q -- '--trainer-image-without-cuda' "$work/gpu-trainer.yaml" && fail "gpu-trainer: trainerCuda=true has no effect"
render spot --set 'disruption.taints={corp.example/going,other.example/}' --set-json 'disruption.spotLabels={"corp.example/cheap": "yes"}'
for flag in --disruption-taints=corp.example/going,other.example/ --spot-labels=corp.example/cheap=yes; do
  grep -q -- "$flag\$" "$work/spot.yaml" || fail "spot: no $flag"
done
! grep -qE -- '--(disruption-taints|spot-labels)' "$work/default.yaml" || fail "default: taints and labels that nobody named"
render prices --set-json 'prices={"region": "x", "instanceTypes": {"m6i.large": {"onDemand": "0.1", "spot": 0.03}}}'
grep -q -- '--price-sheet=/etc/hetero/prices/prices.yaml$' "$work/prices.yaml" || fail "prices: no --price-sheet"
grep -q 'mountPath: /etc/hetero/prices,' "$work/prices.yaml" || fail "prices: the sheet is not mounted"
grep -A 20 'name: .*-prices$' "$work/prices.yaml" | grep -q 'onDemand: "0.1"' || fail "prices: not in the ConfigMap"
! grep -q prices "$work/default.yaml" || fail "default: prices that nobody named"
render override --set 'extraArgs={--workers=3}'
[[ $(grep -- '--workers=' "$work/override.yaml" | tail -1) == *'"--workers=3"'* ]] ||
  fail "override: a flag of the chart stands behind extraArgs"

render gangs --set 'scheduling.gangs={Volcano,Native}'
grep -q -- '--gangs=Volcano,Native$' "$work/gangs.yaml" || fail "gangs: scheduling.gangs has no effect"
for group in scheduling.volcano.sh scheduling.k8s.io; do
  grep -q "apiGroups: \\[$group\\]" "$work/gangs.yaml" || fail "gangs: no rights on $group"
done
grep -q 'scheduling.x-k8s.io' "$work/gangs.yaml" && fail "gangs: rights on what nobody named"
grep -qE -- 'scheduling|--gangs' "$work/default.yaml" && fail "default: gang schedulers that nobody named"

stores='[{"prefix": "s3://datasets", "endpoint": "https://minio.example:9000", "region": "eu", "pathStyle": true,
  "caBundle": "/etc/minio/ca.pem", "prices": {"perThousandGets": "0.0004", "perGBEgress": "0.09"}},
  {"prefix": "s3://open/$(POD_NAME)", "anonymous": true}, {"prefix": "https://mirror.example/sets"}]'
render stores --set-json "jobs.storage=$stores"
grep -- '--storage-defaults=' "$work/stores.yaml" >"$work/out" || fail "stores: jobs.storage has no effect"
python3 - "$stores" "$work/out" <<'PYTHON' || fail "stores: the operator is told something else: $(<"$work/out")"
import json, sys
line = open(sys.argv[2]).read().strip().removeprefix("- ")
name, _, value = json.loads(line).partition("=")  # quoted as JSON quotes
assert "$$(POD_NAME)" in value, "the kubelet would put a variable there"
assert json.loads(value.replace("$$", "$")) == json.loads(sys.argv[1])
PYTHON
! grep -q -- '--storage-defaults' "$work/default.yaml" || fail "default: stores that nobody named"

# A namespace that denies egress: the operator and the pod of helm test get what they need, and nothing more.
render egress --set networkPolicy.egress.enabled=true,'watchNamespaces={team-a}' \
  --set 'networkPolicy.egress.apiServer[0].ipBlock.cidr=10.1.0.0/16,networkPolicy.egress.apiServerPorts={6443}'
kubectl apply --dry-run=server -f "$work/egress.yaml" >"$work/out" 2>&1 || fail "egress: $(<"$work/out")"
[[ $(grep -c 'cidr: 10.1.0.0/16' "$work/egress.yaml") == 2 ]] || fail "egress: not both policies name the API server"
[[ $(grep -c '{port: 6443, protocol: TCP}' "$work/egress.yaml") == 2 && $(grep -c 'port: 443,' "$work/egress.yaml") == 0 ]] ||
  fail "egress: not the ports of apiServerPorts"
grep -q '{port: 7071, protocol: TCP}' "$work/egress.yaml" || fail "egress: no heads"
! grep -q Egress "$work/default.yaml" || fail "default: a policy for egress"
render small-test --set test.resources.limits.cpu=500m,test.resources.limits.memory=300Mi
[[ $(grep -c '"memory":"300Mi"' "$work/small-test.yaml") == 3 && $(grep -c 'memory: 300Mi' "$work/small-test.yaml") == 1 ]] ||
  fail "small-test: test.resources are not those of all containers"
helm lint --strict "$chart" -f "$root/examples/clusters/locked-down/values.yaml" >/dev/null || fail "locked-down: helm lint"

# helm upgrade --reuse-values: the values alone of the oldest release that can be upgraded from so (docs/releases.md),
# nothing of what this chart has added since. Another default: concurrency (docs/decisions/0088-namespaces-share-the-workers.md).
cp -r "$chart" "$work/reused"
cp "$root/tests/charts/released_values.yaml" "$work/reused/values.yaml"
helm template hetero "$work/reused" --namespace hetero-system >"$work/reused.yaml" || fail "reused: helm template"
diff <(sed '/--max-pods-per-job=/d; s/--workers=16$/--workers=8/' "$work/default.yaml") "$work/reused.yaml" >"$work/out" ||
  fail "reused: more differs than what has no value: $(<"$work/out")"
grep -q -- '--max-pods-per-job=2000$' "$work/default.yaml" || fail "default: jobs.maxPods has no effect"

refused() {  # part of the message, helm's arguments...
  local says=$1
  shift
  if helm template hetero "$chart" "$@" >"$work/out" 2>&1; then fail "accepted: $*"; fi
  grep -q -- "$says" "$work/out" || fail "$*: says $(<"$work/out")"
}
refused 'replica' --set replica=2
refused 'replicas' --set replicas=two
refused 'replicas' --set replicas=-1
refused 'leaderElection.enabled=true' --set replicas=2,leaderElection.enabled=false
refused 'pullPolicy' --set image.pullPolicy=Sometimes
refused 'watchNamespaces' --set 'watchNamespaces={Team_A}'
refused 'level' --set logging.level=verbose
refused 'enable' --set networkPolicy.enable=true
refused 'apiServer' --set networkPolicy.egress.apiServer=10.0.0.1
refused 'apiServerPorts' --set 'networkPolicy.egress.apiServerPorts={}'
refused 'maxPods' --set jobs.maxPods=0
refused 'gangs' --set 'scheduling.gangs={Kueue}'
refused 'trainerCuda' --set jobs.trainerCuda=maybe
store() { echo "jobs.storage=[{\"prefix\": \"$1\"${2:-}}]"; }
refused 'secretRef' --set-json "$(store s3://datasets ', "secretRef": {"name": "keys"}')"
refused 'endpoint' --set-json "$(store s3://datasets ', "endpoint": "minio.example:9000"')"
refused 'prefix' --set-json "$(store s3://datasets/)"
refused 'prefix' --set-json 'jobs.storage=[{"region": "eu"}]'
refused 'caBundle' --set-json "$(store s3://datasets ', "caBundle": "ca.pem"')"
refused 'perGBEgress' --set-json "$(store s3://datasets ', "prices": {"perGBEgress": 0.09}')"
refused 'storage' --set jobs.storage=s3://datasets
refused 'concurrency' --set concurrency=0
refused 'metrics.fromNamespace' --set jobMetrics.podMonitor.enabled=true
refused 'podMonitors' --set jobMetrics.podMonitors.enabled=true
refused 'interval' --set jobMetrics.podMonitor.interval=often
refused 'metrics.service.enabled' --set metrics.serviceMonitor.enabled=true,metrics.service.enabled=false
echo "chart_test: ok"
