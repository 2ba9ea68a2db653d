#!/usr/bin/env bash
# Unpacks LibTorch from its wheel: headers, libtorch_cpu, libc10, libgomp, and the two small CUDA libraries that
# libtorch_cpu.so names. With --cuda also libtorch_cuda, the CUDA compiler and NCCL.
# Versions and hashes: libtorch-cpu.txt, libtorch-cuda.txt. Usage: get_libtorch.sh DESTINATION [--cuda]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
destination=$(realpath -m "${1:?destination folder}")
cuda=0
[[ "${2:-}" == --cuda ]] && cuda=1

requirements=("$here/libtorch-cpu.txt")
((cuda)) && requirements+=("$here/libtorch-cuda.txt")
stamp="$destination/.unpacked-$(cat "${requirements[@]}" "$here/get_libtorch.sh" | sha256sum | cut -c1-16)"
[[ -e $stamp ]] && exit 0

mkdir -p "$destination"
# Two set-ups at once would unpack into each other.
exec 9>"$destination/.lock"
flock 9
[[ -e $stamp ]] && exit 0

echo "setup: fetching LibTorch into ${destination#"$PWD"/} (about $( ((cuda)) && echo 840 || echo 540) MB)"
download=$(mktemp -d "$destination/.download.XXXXXX")
trap 'rm -rf "$download"' EXIT
platforms=()
for tag in manylinux_2_28 manylinux_2_27 manylinux_2_25 manylinux_2_18 manylinux_2_17 manylinux2014 \
  manylinux2010 manylinux_2_12 manylinux_2_5 manylinux1; do
  platforms+=(--platform "${tag}_x86_64")
done
arguments=()
for file in "${requirements[@]}"; do arguments+=(-r "$file"); done
python3 -m pip download --quiet --disable-pip-version-check --no-deps --no-cache-dir --require-hashes \
  --only-binary=:all: --python-version 3.11 --implementation cp --abi cp311 --abi none \
  "${platforms[@]}" -d "$download" "${arguments[@]}"

python3 - "$download" "$destination" "$cuda" <<'PYTHON'
import glob, os, re, sys, zipfile

download, destination, cuda = sys.argv[1], sys.argv[2], sys.argv[3] == "1"
libraries = {"libc10.so", "libtorch_cpu.so", "libgomp.so.1"}
if cuda:
    libraries |= {"libtorch_cuda.so", "libc10_cuda.so", "libtorch_nvshmem.so"}
# Bundled headers of other projects shadow the system's own (protobuf) or are not needed.
unwanted = re.compile(r"^torch/include/(google|pybind11|tensorpipe|oneapi|fbgemm|kineto|fp16|THC|caffe2|dnnl|"
                      r"xnnpack|sleef|nnpack|qnnpack|psimd|fxdiv|libshm)")


def wanted(wheel, name):
    if wheel.startswith("torch-"):
        folder, _, file = name.rpartition("/")
        return ((name.startswith("torch/include/") and not unwanted.match(name))
                or (folder == "torch/lib" and file in libraries)
                or name.endswith(("/LICENSE", "/NOTICE")))
    if wheel.startswith("nvidia_cuda_cupti"):
        return name.endswith("libcupti.so.13") or (cuda and "/include/" in name)
    if wheel.startswith("nvidia_cuda_runtime"):
        return name.endswith("libcudart.so.13") or (cuda and name.startswith("nvidia/"))
    return name.startswith("nvidia/")


for wheel in sorted(glob.glob(download + "/*.whl")):
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            if entry.filename.endswith("/") or not wanted(os.path.basename(wheel), entry.filename):
                continue
            archive.extract(entry, destination)
            if (entry.external_attr >> 16) & 0o111:
                os.chmod(os.path.join(destination, entry.filename), 0o755)
PYTHON

if ((cuda)); then # make nvidia/cu13 look like an installed CUDA toolkit
  toolkit="$destination/nvidia/cu13"
  ln -sfn lib "$toolkit/lib64"
  ln -sf libcudart.so.13 "$toolkit/lib/libcudart.so"
  ln -sf libnccl.so.2 "$destination/nvidia/nccl/lib/libnccl.so"
  chmod +x "$toolkit"/bin/* "$toolkit"/nvvm/bin/* 2>/dev/null || true
fi
touch "$stamp"
