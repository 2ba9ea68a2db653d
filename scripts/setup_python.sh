#!/usr/bin/env bash
# Installs what the tests of Python need into a virtual environment of this machine's python3: PyTorch of our LibTorch's
# version, torchvision, pytest and more. Idempotent; a second run does nothing.
# Versions and hashes: pytorch.txt, pytorch-full.txt. Usage: setup_python.sh [FOLDER] [--full]
#   --full  Lightning, Transformers, torchdata and pandas too
#
# PyTorch's own wheel is the one with CUDA, and names 2.5 GB of libraries which no program without a GPU calls. Empty
# libraries of their names stand in for them, and the environment's Python has the loader bind functions when they are first
# called.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=.deps/python
requirements=("$here/pytorch.txt")
size="650 MB"
for option in "$@"; do
  case $option in
    --full) requirements+=("$here/pytorch-full.txt") size="700 MB" ;;
    -*) echo "setup: unknown option '$option': use --full" >&2; exit 2 ;;
    *) folder=$option ;;
  esac
done
folder=$(realpath -m "$folder")
python=$(python3 -c 'import sys; print(sys._base_executable)')  # not that of an environment, which may be this very one
version=$("$python" -c 'import platform, sys; print("%d.%d" % sys.version_info[:2], platform.machine())')
if [[ $version != "3.11 x86_64" ]]; then
  echo "setup: PyTorch's wheel is for Python 3.11 on x86_64, and python3 is $version: the tests of Python cannot run here" >&2
  exit 1
fi
stamp_of() { echo "$folder/.installed-$( (cat "$@" "$here/setup_python.sh"; "$python" -c 'import sys; print(sys.version)') |
  sha256sum | cut -c1-16)"; }
stamp=$(stamp_of "${requirements[@]}")
[[ -e $stamp ]] && exit 0

mkdir -p "$(dirname "$folder")"
# Two set-ups at once would install into each other.
exec 9>"$folder.lock"
flock 9
[[ -e $stamp ]] && exit 0

echo "setup: installing PyTorch for the tests into ${folder#"$PWD"/} (about $size to fetch)"
if [[ ! -e $(stamp_of "${requirements[0]}") ]]; then  # else only what --full adds is missing
  rm -rf "$folder"
  "$python" -m venv --without-pip "$folder"
fi
arguments=()
for file in "${requirements[@]}"; do arguments+=(-r "$file"); done
"$python" -m pip --python "$folder/bin/python" install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps \
  --no-cache-dir --no-compile --require-hashes --only-binary=:all: "${arguments[@]}"

packages="$folder/lib/python3.11/site-packages"
libraries="$packages/nvidia/cu13/lib"
for name in libcublas.so.13 libcublasLt.so.13 libcudnn.so.9 libcufft.so.12 libcufile.so.0 libcurand.so.10 libcusparse.so.12 \
  libcusparseLt.so.0 libnccl.so.2 libnvshmem_host.so.3; do
  [[ -e $libraries/$name ]] || "${CC:-cc}" -shared -nostdlib -Wl,-soname,"$name" -o "$libraries/$name" -x c /dev/null
done
echo 'import os, sys; sys.setdlopenflags(os.RTLD_LAZY)' >"$packages/lazy_binding.pth"
# It writes the byte code of what it imports, or each process would compile that again.
PYTHONDONTWRITEBYTECODE= "$folder/bin/python" - <<'PYTHON'
import torch, torch.distributed, torchvision
assert torch.distributed.is_gloo_available()
loss = torchvision.models.resnet18()(torch.zeros(2, 3, 32, 32)).sum()
loss.backward()
assert torch.isfinite(loss)
PYTHON
for ((count = 1; count <= ${#requirements[@]}; count++)); do  # what is less is there too
  touch "$(stamp_of "${requirements[@]:0:count}")"
done
