#!/usr/bin/env bash
# Unpacks LibTorch from its wheel: headers, libtorch_cpu, libc10, libgomp, and the two small CUDA libraries that
# libtorch_cpu.so names. With --cuda also libtorch_cuda, the CUDA compiler and NCCL: enough to build and link. With
# --cuda-run also the libraries that libtorch_cuda loads: enough to run on a GPU.
# Versions and hashes: libtorch-cpu.txt, libtorch-cuda.txt, libtorch-cuda-run.txt.
# Usage: get_libtorch.sh DESTINATION [--cuda | --cuda-run]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
destination=$(realpath -m "${1:?destination folder}")
cuda=0
size="540 MB"
requirements=("$here/libtorch-cpu.txt")
case "${2:-}" in
  --cuda) size="840 MB" ;;&
  --cuda-run) size="2.7 GB" ;;&
  --cuda*) cuda=1 requirements+=("$here/libtorch-cuda.txt") ;;&
  --cuda-run) requirements+=("$here/libtorch-cuda-run.txt") ;;
esac
stamp_of() { echo "$destination/.unpacked-$(cat "$@" "$here/get_libtorch.sh" | sha256sum | cut -c1-16)"; }
stamp=$(stamp_of "${requirements[@]}")
[[ -e $stamp ]] && exit 0

mkdir -p "$destination"
# Two set-ups at once would unpack into each other.
exec 9>"$destination/.lock"
flock 9
[[ -e $stamp ]] && exit 0

echo "setup: fetching LibTorch into ${destination#"$PWD"/} (about $size)"
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
import glob, os, re, sys, zipfile, zlib

download, destination, cuda = sys.argv[1], sys.argv[2], sys.argv[3] == "1"
libraries = {"libc10.so", "libtorch_cpu.so", "libgomp.so.1"}
if cuda:
    libraries |= {"libtorch_cuda.so", "libc10_cuda.so", "libtorch_nvshmem.so"}
# Bundled headers of other projects shadow the system's own (protobuf) or are not needed.
unwanted = re.compile(r"^torch/include/(google|pybind11|tensorpipe|oneapi|fbgemm|kineto|fp16|THC|caffe2|dnnl|"
                      r"xnnpack|sleef|nnpack|qnnpack|psimd|fxdiv|libshm)")
RUN_ONLY = tuple(f"nvidia_{name}" for name in (
    "cudnn", "cusparselt", "nvshmem", "cublas", "cuda_nvrtc", "cufft", "cufile", "curand", "cusolver", "cusparse",
    "nvjitlink"))


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
    if wheel.startswith(RUN_ONLY):
        return ".so" in name
    return name.startswith("nvidia/")


def unchanged(path, entry):
    """What is there already keeps its time, so that nothing is compiled again."""
    if not os.path.isfile(path) or os.path.getsize(path) != entry.file_size:
        return False
    crc = 0
    with open(path, "rb") as file:
        while chunk := file.read(1 << 20):
            crc = zlib.crc32(chunk, crc)
    return crc == entry.CRC


for wheel in sorted(glob.glob(download + "/*.whl")):
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            if entry.filename.endswith("/") or not wanted(os.path.basename(wheel), entry.filename):
                continue
            path = os.path.join(destination, entry.filename)
            if unchanged(path, entry):
                continue
            if os.path.lexists(path):  # may be in use
                os.remove(path)
            archive.extract(entry, destination)
            if (entry.external_attr >> 16) & 0o111:
                os.chmod(path, 0o755)
PYTHON

if ((cuda)); then # make nvidia/cu13 look like an installed CUDA toolkit
  toolkit="$destination/nvidia/cu13"
  ln -sfn lib "$toolkit/lib64"
  ln -sf libcudart.so.13 "$toolkit/lib/libcudart.so"
  ln -sf libnccl.so.2 "$destination/nvidia/nccl/lib/libnccl.so"
  chmod +x "$toolkit"/bin/* "$toolkit"/nvvm/bin/* 2>/dev/null || true
fi
for ((count = 1; count <= ${#requirements[@]}; count++)); do  # what is less is there too
  touch "$(stamp_of "${requirements[@]:0:count}")"
done
