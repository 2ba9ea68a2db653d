#!/usr/bin/env bash
# Gates: who may include whom (scripts/check_structure.py), clang-format on every file, clang-tidy on the sources of base,
# api, operator, runtime and cli with the headers they read.
#   scripts/lint.sh            all gates; tests/ is left out of clang-tidy
#   scripts/lint.sh all        clang-tidy on tests/ too
#   scripts/lint.sh fast       without the files under train/, which read LibTorch's headers
#   scripts/lint.sh structure  the structure only, in less than a second
#   scripts/lint.sh format     the structure and clang-format
#   scripts/lint.sh tidy       clang-tidy only
#   scripts/lint.sh changed    clang-tidy on what has changed since the commit that scripts/tidied names
#   scripts/lint.sh FILE...    clang-tidy on these files only
set -euo pipefail
cd "$(dirname "$0")/.."
mode=${1:-}
folders='base|api|operator|runtime|cli'
case $mode in
  all) folders+='|tests' ;;
  "" | fast | structure | format | tidy | changed | *.cpp) ;;
  *) echo "lint: unknown mode '$mode': use none, all, fast, structure, format, tidy, changed or .cpp files" >&2; exit 2 ;;
esac

# Sources that changed since clang-tidy last found nothing in any source (scripts/tidied, which whoever sees that writes),
# and for each header that did the source of its name or, where there is none, one that includes it.
changed_sources() {
  local clean file
  clean=$(cat scripts/tidied)
  git cat-file -e "$clean^{commit}" 2>/dev/null || return 1
  git diff --name-only --diff-filter=d "$clean" -- '*.h' '*.cpp' | while read -r file; do
    if [[ $file == *.h && -f ${file%.h}.cpp ]]; then
      echo "${file%.h}.cpp"
    elif [[ $file == *.h ]]; then
      { git grep -lF "#include \"$file\"" -- '*.cpp' | grep -v '^tests/' || true; } | sed -n 1p  # to the end: no SIGPIPE
    else
      echo "$file"
    fi
  done | sort -u
}

if [[ $mode != *.cpp && $mode != tidy && $mode != changed ]]; then
  scripts/check_structure.py
  [[ $mode == structure ]] && exit 0
  mapfile -t files < <(git ls-files '*.h' '*.cpp' | grep -v '^third_party/')
  echo "lint: clang-format on ${#files[@]} files"
  clang-format-14 --dry-run -Werror "${files[@]}"
fi
[[ $mode == format ]] && exit 0

# g++'s precompiled headers are not clang's; the tidy run has a compile database of its own without them. Each target's
# files are read as one translation unit: their headers, most of the cost, are read once.
unity=ON
[[ $mode == *.cpp ]] && unity=OFF
cmake -S . -B build/tidy -G Ninja -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -DHETERO_PCH=OFF -DCMAKE_UNITY_BUILD=$unity \
  -DCMAKE_UNITY_BUILD_BATCH_SIZE=24 -Wno-dev >/dev/null
generated=()
for proto in proto/hetero/v1/*.proto; do
  name=gen/hetero/v1/$(basename "$proto" .proto)
  generated+=("$name.pb.h")
  ! grep -q '^service ' "$proto" || generated+=("$name.grpc.pb.h")
done
ninja -C build/tidy hetero_commit "${generated[@]}" >/dev/null

if [[ $mode == *.cpp ]]; then
  units=("$@")
else  # LibTorch's first: the slowest files must not be the last ones
  mapfile -t sources < <(sed -n "s|^ *\"file\": \"$PWD/\(.*\)\".*|\1|p" build/tidy/compile_commands.json |
    grep -E "^(build/tidy/)?($folders)/")
  mapfile -t torch < <(printf '%s\n' "${sources[@]}" | grep '/train/')
  mapfile -t units < <(printf '%s\n' "${sources[@]}" | grep -v '/train/')
  [[ $mode == fast ]] || units=("${torch[@]}" "${units[@]}")
fi
if [[ $mode == changed ]]; then
  if changed_sources >build/tidy/changed; then
    all=("${units[@]}") units=()
    for unit in "${all[@]}"; do
      [[ $unit == build/tidy/* ]] && names=$(sed -n "s|#include \"$PWD/\(.*\)\"|\1|p" "$unit") || names=$unit
      grep -qxFf <(printf '%s\n' "$names") build/tidy/changed && units+=("$unit")
    done
    ((${#units[@]})) || { echo "lint: no source has changed since $(cat scripts/tidied)"; exit 0; }
  else
    echo "lint: the commit that scripts/tidied names is not in this clone: every source is read"
  fi
fi
echo "lint: clang-tidy on ${#units[@]} translation units"
printf '%s\n' "${units[@]}" | xargs -P "${JOBS:-$(nproc)}" -n 1 clang-tidy-14 -p build/tidy --quiet 2>&1 |
  sed -E '/^[0-9]+ warnings? generated\.$/d'
echo "lint: no findings"
