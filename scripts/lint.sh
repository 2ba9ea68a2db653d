#!/usr/bin/env bash
# Gates: clang-format on every file, clang-tidy on every translation unit of the release build.
# `scripts/lint.sh format` runs the first only.
set -euo pipefail
cd "$(dirname "$0")/.."
mapfile -t files < <(git ls-files '*.h' '*.cpp' | grep -v '^third_party/')
echo "lint: clang-format on ${#files[@]} files"
clang-format-14 --dry-run -Werror "${files[@]}"
[[ "${1:-}" == format ]] && exit 0

# g++'s precompiled headers are not clang's; the tidy run has a compile database of its own without them.
cmake -S . -B build/tidy -G Ninja -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -DHETERO_PCH=OFF -Wno-dev >/dev/null
cmake --build build/tidy --target hetero_proto -j "$(nproc)" >/dev/null
mapfile -t units < <(git ls-files '*.cpp' | grep -v '^third_party/' | { [[ "${1:-}" == fast ]] && grep -v '/train/' || cat; })
echo "lint: clang-tidy on ${#units[@]} files"
printf '%s\n' "${units[@]}" | xargs -P "$(nproc)" -n 4 clang-tidy-14 -p build/tidy --quiet
