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

# clang-tidy over the pure compiler. Takes minutes on two cores. GCC 12's own std::stable_sort uses what C++17 deprecated.
dev_tidy() {
  install_packages "${packages_tidy[@]}"
  configure_core core
  git ls-files 'compiler/*.cpp' |
    xargs -P 2 -n 8 clang-tidy-19 --quiet --extra-arg=-Wno-unknown-warning-option \
      --extra-arg=-Wno-deprecated-declarations -p build/core 2>&1 |
    { grep -v "warnings generated" || true; } # those it found in other people's headers
}
