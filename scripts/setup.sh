#!/usr/bin/env bash
# Installs what the build needs on Debian 12: system packages, and LibTorch out of its wheel. Idempotent; a
# second run takes about a second. Usage: scripts/setup.sh [--cuda | --cuda-run] [--cluster]
#   --cuda      CUDA's compiler and NCCL too: what building needs, without a GPU
#   --cuda-run  what running on a GPU needs as well
#   --cluster   what images/build and the clusters of the tests need
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(
  build-essential cmake ninja-build ccache mold git ca-certificates
  clang-14 clang-format-14 clang-tidy-14 libclang-rt-14-dev llvm-14
  libabsl-dev libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc
  libopencv-core-dev libopencv-imgproc-dev libjpeg62-turbo-dev libpng-dev zlib1g-dev
  libsnappy-dev libzstd-dev
  libcurl4-openssl-dev libexpat1-dev
  libhwy-dev
  libyaml-cpp-dev nlohmann-json3-dev libssl-dev libspdlog-dev libcli11-dev libcpp-httplib-dev
  prometheus-cpp-dev libcpprest-dev libgtest-dev libgmock-dev libbenchmark-dev
  iproute2 openssl python3 python3-pip
)
[[ $(uname -m) != x86_64 ]] || packages+=(libipsec-mb-dev)

libtorch_options=()
for option in "$@"; do
  case $option in
    --cuda | --cuda-run) libtorch_options=("$option") ;;
    --cluster)
      packages+=(debootstrap docker.io containerd runc containernetworking-plugins nftables iptables busybox-static) ;;
    *) echo "setup: unknown option '$option': use --cuda, --cuda-run or --cluster" >&2; exit 2 ;;
  esac
done

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
if ((${#missing[@]})); then
  echo "setup: installing ${#missing[@]} Debian packages: ${missing[*]}"
  as_root=()
  if ((EUID)); then
    command -v sudo >/dev/null || { echo "setup: run as root or install sudo, to install: ${missing[*]}" >&2; exit 1; }
    as_root=(sudo)
  fi
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    "${missing[@]}" >/dev/null
fi

scripts/get_libtorch.sh "${LIBTORCH_ROOT:-.deps/libtorch}" "${libtorch_options[@]}"
echo "setup: ready"
