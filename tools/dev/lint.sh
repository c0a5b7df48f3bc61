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

tidy_key() { # FILE
  { clang-tidy-19 --version; cat .clang-tidy "$1"; git ls-files 'compiler/*.h' | xargs cat; } | sha256sum | cut -d' ' -f1
}

tidy_one() { # FILE
  local key
  key=$(tidy_key "$1")
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
  export -f tidy_one tidy_key
  export tidy_cache
  git ls-files 'compiler/*.cpp' | xargs -P 2 -I FILE bash -euo pipefail -c 'tidy_one FILE'
}
