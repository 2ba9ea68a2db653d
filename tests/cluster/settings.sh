# What the scripts of this folder share. Sourced, by bash.
cluster_source=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cluster_deps=$(realpath -m "${HETERO_CLUSTER_DEPS:-$cluster_source/../../.deps/cluster}")
cluster_bin=$cluster_deps/bin
cluster_keys=$cluster_deps/keys
# Inside the cluster's own mount namespace a tmpfs lies here; outside it is an empty folder.
cluster_run=$cluster_deps/run
cluster_address=10.210.0.2     # of the API server and of no other machine
cluster_services=10.96.0.0/16  # every address of it leads to loopback
cluster_components=(etcd kube-apiserver kube-controller-manager kube-scheduler kwok)

cluster_fail() {
  echo "cluster: $*" >&2
  exit 1
}

# Seconds with a fraction since the machine started.
cluster_uptime() { cut -d' ' -f1 /proc/uptime; }

# The environment of whatever runs inside.
cluster_environment() {
  export HETERO_TEST_CLUSTER_DIR=$cluster_run KUBECONFIG=$cluster_run/admin.conf
  export PATH=$cluster_bin:$PATH KUBECACHEDIR=$cluster_run/cache
  export HELM_CACHE_HOME=$cluster_run/helm/cache HELM_CONFIG_HOME=$cluster_run/helm/config HELM_DATA_HOME=$cluster_run/helm/data
}

# Runs a command in namespaces of its own, as their process 1 with root's rights in them. When the caller is killed,
# everything in them dies.
cluster_isolated() {
  local user=()
  unshare --net --mount --pid --fork true 2>/dev/null || user=(--user --map-root-user)
  unshare "${user[@]}" true 2>/dev/null ||
    cluster_fail "this needs root, or user namespaces for everybody (sysctl kernel.unprivileged_userns_clone=1)"
  exec unshare "${user[@]}" --net --mount --pid --fork --kill-child --mount-proc "$@"
}

# The programs, keys and the folder for the tmpfs.
cluster_prepare() {
  command -v ip >/dev/null && command -v openssl >/dev/null ||
    cluster_fail "ip and openssl are needed (Debian packages iproute2 and openssl)"
  "$cluster_source/build" >&2 && "$cluster_source/definitions" >&2 && "$cluster_source/certificates" >&2 &&
    mkdir -p "$cluster_run"
}
