# Format, layering, clang-tidy.

sources() { git ls-files --cached --others --exclude-standard '*.cpp' '*.h' '*.cuh'; }

dev_format() {
  install_packages "${packages_lint[@]}"
  sources | xargs clang-format-19 -i
}

dev_lint() {
  install_packages "${packages_lint[@]}"
  sources | xargs clang-format-19 --dry-run --Werror
  tools/check-layers.sh
}

# The .cpp files that clang-tidy has to look at: those it found nothing in stay in the cache, by everything they depend on.
tidy_cache="$HOME/.cache/sinter/tidy"

tidy_one() { # FILE
  local key
  key=$({ echo "$tidy_common"; cat "$1"; } | sha256sum | cut -d' ' -f1)
  [ -e "$tidy_cache/$key" ] && return
  clang-tidy-19 --quiet --extra-arg=-Wno-unknown-warning-option --extra-arg=-Wno-deprecated-declarations \
    -p build/core "$1" 2>&1 | { grep -v "warnings generated" || true; } # those it found in other people's headers
  mkdir -p "$tidy_cache"
  touch "$tidy_cache/$key"
}

# clang-tidy over the pure compiler. Takes minutes on two cores where nothing is cached. GCC 12's own std::stable_sort
# uses what C++17 deprecated.
dev_tidy() {
  install_packages "${packages_tidy[@]}"
  configure_core core
  local tidy_common # what every file depends on
  tidy_common=$({ clang-tidy-19 --version; cat .clang-tidy; git ls-files 'compiler/*.h' | xargs cat; } | sha256sum)
  export -f tidy_one
  export tidy_cache tidy_common
  git ls-files 'compiler/*.cpp' | xargs -P 2 -I FILE bash -euo pipefail -c 'tidy_one FILE'
}
