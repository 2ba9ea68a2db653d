#!/usr/bin/env bash
# Builds two wheels of the Python package:
#   hetero-VERSION-py3-none-any.whl           the package
#   hetero-VERSION-py3-none-linux_x86_64.whl  the package with hetero-runtime, its loader and its libraries: what
#                                             hetero.Stream("job.yaml") and hetero.run_local start, on any Linux x86-64
# Usage: wheel.sh [PROGRAM [FOLDER]]   default: build/release/bin/hetero-runtime build/wheels
set -euo pipefail
cd "$(dirname "$0")/.."
program=${1:-build/release/bin/hetero-runtime}
[[ -x $program ]] || { echo "wheel: $program is not built: make build" >&2; exit 1; }
python=$PWD/.deps/python/bin/python
[[ -x $python ]] || python=python3
"$python" -c 'import setuptools.command.bdist_wheel' 2>/dev/null ||
  { echo "wheel: $python has no setuptools of 70.1 or later: scripts/setup_python.sh" >&2; exit 1; }
mkdir -p "${2:-build/wheels}"
out=$(realpath "${2:-build/wheels}")
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT

version=$(sed -n 's/.*kVersion\[\] = "\(.*\)";/\1/p' base/version.h)
rm -f "$out"/hetero-*.whl

wheel() {  # folder with the package, tag of the platform
  (cd "$1" && "$python" -c '
import sys, setuptools.build_meta as backend
settings = {"--build-option": ["--plat-name", sys.argv[2]]} if sys.argv[2] != "any" else {}
print(backend.build_wheel(sys.argv[1], settings))' "$out" "$2" >build.log 2>&1) || { cat "$1/build.log" >&2; exit 1; }
}

package() {  # folder
  mkdir -p "$1/hetero"
  cp python/pyproject.toml python/README.md "$1"
  cp python/hetero/*.py python/hetero/py.typed "$1/hetero"
}

package "$stage/pure"
wheel "$stage/pure" any

package "$stage/platform"
"$program" install "$stage/installed" --package python >/dev/null
mkdir "$stage/platform/hetero/runtime"
mv "$stage/installed"/{bin,libexec,lib} "$stage/platform/hetero/runtime"
mkdir "$stage/platform/hetero/runtime/licenses"
cp LICENSE "$stage/platform/hetero/runtime/licenses/hetero"
(cd "$stage/platform/hetero/runtime/lib" && printf '*/%s\n' *) >"$stage/libraries"
# What the packages of the libraries ask for. Of a library in several folders, all packages that have one.
xargs dpkg-query --search <"$stage/libraries" | sed 's/:.*//' | sort -u | while read -r package; do
  cp "/usr/share/doc/$package/copyright" "$stage/platform/hetero/runtime/licenses/$package"
done
sed -i 's|^hetero = \["py.typed"\]|hetero = ["py.typed", "runtime/**"]|' "$stage/platform/pyproject.toml"
wheel "$stage/platform" linux_x86_64

for file in "$out/hetero-$version-py3-none-"{any,linux_x86_64}.whl; do
  [[ -e $file ]] || { echo "wheel: $file was not made; python/hetero/version.py and base/version.h differ?" >&2; exit 1; }
  echo "$(du -h "$file" | cut -f1)  ${file#"$PWD"/}"
done
