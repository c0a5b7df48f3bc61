#!/usr/bin/env bash
# Checks that every folder includes only what tools/layers.txt allows it, that the compiler sees neither LibTorch nor
# CUDA nor LLVM, and that no source is longer than 800 lines. Prints one line for each violation and exits with 1.
#   tools/check-layers.sh [FOLDER]    FOLDER: the checkout, this script's own unless named
set -euo pipefail
cd "${1:-$(dirname "${BASH_SOURCE[0]}")/..}"

parts=(compiler runtime frontend bench tests)
longest=800

# "FILE INCLUDED" for every include of one of our own headers below FOLDER.
own_includes() { # FOLDER
  grep -rEo --include='*.h' --include='*.cpp' '^ *# *include "(compiler|runtime|frontend|bench|tests)/[^"]+"' "$1" |
    sed -E 's/^([^:]+):.*"([^"]+)"$/\1 \2/'
}

may_include() { # INCLUDED ALLOWED...
  local included=$1 allowed
  shift
  for allowed in "$@"; do
    [[ $included == "$allowed" || $included == "$allowed"/* ]] && return 0
  done
  return 1
}

layering() {
  local folder allowed file included
  while read -r folder allowed; do
    while read -r file included; do
      # shellcheck disable=SC2086
      may_include "$included" "$folder" $allowed ||
        echo "layering: $file includes \"$included\"; $folder may include: $allowed"
    done < <(own_includes "$folder")
  done <tools/layers.txt
}

# A pass sees its own header and the folder's helpers, never another pass: what pipeline.cpp lists.
passes() {
  local names file name own
  names=$(sed -nE 's/^ *PipelineRow\{"([a-z_]+)".*/\1/p' compiler/passes/pipeline.cpp | sort -u)
  for file in $names; do
    for name in $names; do
      own="compiler/passes/$file"
      [ "$name" != "$file" ] && grep -sHn "#include \"compiler/passes/$name.h\"" "$own.h" "$own.cpp" |
        sed 's/^/layering: a pass includes another: /'
    done
  done
}

foreign_headers() {
  grep -rEn --include='*.h' --include='*.cpp' '^ *# *include [<"](ATen/|torch/|c10/|cuda|nvrtc|cublas|cudnn|llvm/)' compiler |
    sed 's/^/layering: compiler\/ must not see LibTorch, CUDA or LLVM: /'
}

sizes() {
  find "${parts[@]}" -type f \( -name '*.cpp' -o -name '*.h' -o -name '*.cuh' \) -exec wc -l {} + |
    awk -v most=$longest '$2 != "total" && $1 > most { print "size: " $2 " has " $1 " lines; at most " most }'
}

violations=$({
  layering
  passes
  foreign_headers
  sizes
} || true)
[ -z "$violations" ] && exit 0
echo "$violations" >&2
exit 1
