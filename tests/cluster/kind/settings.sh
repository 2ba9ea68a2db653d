# What the scripts of this folder share. Sourced, by bash.
kind_source=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$kind_source/../settings.sh"
kind_deps=$cluster_deps/kind
kind_runs=$kind_deps/runs          # a folder for each cluster that is up, named after its run's process id
kind_docker_built=$kind_deps/docker  # dockerd's storage with the node image in it
kind_kubernetes=v1.34.8
kind_image=kindest/node:$kind_kubernetes
kind_shared=/hetero/shared         # in every node: the same folder of this machine

kind_fail() {
  echo "kind: $*" >&2
  exit 1
}

kind_check() {
  local missing=() program
  for program in dockerd containerd ctr runc debootstrap ip nft iptables openssl busybox gcc tar; do
    command -v "$program" >/dev/null || missing+=("$program")
  done
  ((${#missing[@]} == 0)) || kind_fail "needed and not found: ${missing[*]}; on Debian 12:
  apt-get install docker.io containerd runc debootstrap iproute2 nftables iptables openssl busybox-static gcc"
  ((EUID == 0)) || kind_fail "a node image of one's own needs root (debootstrap, dockerd)"
}

# What would change the programs or the node image.
kind_stamp() {
  (cd "$kind_source/.." && find build get_go go_settings.sh go_toolchain.txt go kind/go kind/node kind/build kind/build_inside \
    kind/docker -type f | LC_ALL=C sort | xargs sha256sum | sha256sum | cut -c1-16)
}

# Removes what a cluster that is gone has left: its folder and its (empty) groups of processes. Usage: PROCESS_ID
kind_forget() {
  local group
  if [[ -n ${HETERO_KIND_STOCK:-} ]]; then "$cluster_bin/kind" delete cluster --name "hetero-$1" >/dev/null 2>&1 || true; fi
  for group in /sys/fs/cgroup/{,*/}hetero-kind-"$1"; do
    [[ -d $group ]] && find "$group" -depth -type d -exec rmdir {} + 2>/dev/null
  done
  rm -rf "${kind_runs:?}/$1"
}

kind_forget_dead() {
  local run
  for run in "$kind_runs"/*/; do
    run=$(basename "$run")
    [[ $run =~ ^[0-9]+$ ]] && ! kill -0 "$run" 2>/dev/null && kind_forget "$run"
  done
  return 0
}

# The environment of whatever runs inside the cluster of run RUN (a folder).
kind_environment() {
  export KUBECONFIG=$1/kubeconfig KUBECACHEDIR=$1/cache HETERO_TEST_CLUSTER_DIR=$1
  export HETERO_KIND_SHARED=$1/shared HETERO_KIND_SHARED_IN_NODES=$kind_shared
  export KIND_CLUSTER_NAME=hetero-$(basename "$1")  # also part of the nodes' names
  export PATH=$cluster_bin:$PATH
  export HELM_CACHE_HOME=$1/helm/cache HELM_CONFIG_HOME=$1/helm/config HELM_DATA_HOME=$1/helm/data
}
