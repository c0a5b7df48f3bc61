# ./dev demo: builds what it runs and no more.

# The compiler itself needs no LibTorch: it compiles in the folder of the build while LibTorch is on its way.
build_ahead() {
  cmake --preset release -DSINTER_LIBTORCH_PARTS=OFF -DSINTER_TESTS=OFF >/dev/null
  cmake --build --preset release
}

prepare_demo() {
  install_packages "${packages_build[@]}"
  if [ -n "${SINTER_LIBTORCH:-}" ] || libtorch_is_here tools/libtorch.lock "$libtorch_cache"; then
    setup_libtorch
    return
  fi
  step "LibTorch is downloaded and unpacked while the compiler's own part compiles; next: what uses LibTorch (about 4 minutes)"
  local download
  install_libtorch tools/libtorch.lock "$libtorch_cache" &
  download=$!
  build_ahead
  wait $download
  setup_libtorch
}

dev_demo() {
  steps 4
  step "packages: compiler, CMake, LLVM; next: LibTorch (2 GB to download)"
  prepare_demo
  step "compile the library, the models and the program; next: the demo"
  configure release OFF
  cmake --build --preset release --target sinter_command
  step "the demo: GELU MLP and ResNet50, eager and compiled"
  build/release/bin/sinter demo "$@"
  step_end
}
