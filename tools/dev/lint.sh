# Format, layering, clang-tidy.

sources() { git ls-files --cached --others --exclude-standard '*.cpp' '*.h' '*.cuh'; }

dev_format() {
  dev_setup
  sources | xargs clang-format-19 -i
}

# tools/layers.txt: a folder, then the paths it may include besides its own.
may_include() { # INCLUDED ALLOWED...
  local included=$1 allowed
  shift
  for allowed in "$@"; do
    [[ $included == "$allowed" || $included == "$allowed"/* ]] && return 0
  done
  return 1
}

layering() {
  local bad=0 folder allowed file included
  while read -r folder allowed; do
    while read -r file included; do
      # shellcheck disable=SC2086
      may_include "$included" "$folder" $allowed && continue
      echo "layering: $file includes \"$included\"; $folder may include: $allowed" >&2
      bad=1
    done < <(git grep -oE '^#include "(compiler|runtime|frontend|bench|tests)/[^"]+"' -- "$folder/*.h" "$folder/*.cpp" |
      sed -E 's/^([^:]+):#include "([^"]+)"$/\1 \2/')
  done <tools/layers.txt
  if git grep -nE '#include [<"](ATen|torch|c10|cuda|nvrtc|llvm)' -- compiler >&2; then
    echo "layering: compiler/ must not see LibTorch, CUDA or LLVM headers" >&2
    bad=1
  fi
  return $bad
}

dev_lint() {
  dev_setup
  sources | xargs clang-format-19 --dry-run --Werror
  layering
  configure core
  git ls-files 'compiler/*.cpp' | xargs -P 2 -n 8 clang-tidy-19 --quiet --extra-arg=-Wno-unknown-warning-option -p build/core
}
