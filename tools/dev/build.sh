# Configuring, building, testing, running.

# Checkouts in different folders share what the compiler cache holds, precompiled headers too: those need the sloppiness.
export CCACHE_BASEDIR="$PWD" CCACHE_NOHASHDIR=true CCACHE_SLOPPINESS=pch_defines,time_macros

configure() { # PRESET [OFF: without tests, where it is not configured with them]
  local tests=${2:-ON} made="build/$1/CMakeCache.txt"
  if [ -f "build/$1/build.ninja" ] && grep -qx "SINTER_LIBTORCH:PATH=$SINTER_LIBTORCH" "$made" &&
    ! grep -qx SINTER_LIBTORCH_PARTS:BOOL=OFF "$made"; then
    [ "$tests" = OFF ] && return
    grep -qx SINTER_TESTS:BOOL=ON "$made" && return
  fi
  cmake --preset "$1" -DSINTER_LIBTORCH="$SINTER_LIBTORCH" -DSINTER_LIBTORCH_PARTS=ON -DSINTER_TESTS="$tests" >/dev/null
}

# The pure compiler alone: no LibTorch.
configure_core() { # PRESET
  install_packages "${packages_build[@]}" "${packages_test[@]}"
  [ -f "build/$1/build.ninja" ] || cmake --preset "$1" >/dev/null
}

build_core() { # PRESET [TARGET]
  configure_core "$1"
  cmake --build --preset "$1" ${2:+--target "$2"}
}

dev_build() {
  dev_setup
  configure release
  cmake --build --preset release
}

# The tests for the CPU with another LibTorch.
test_with_libtorch() { # VERSION [ARGS]
  local version=$1 folder=build/libtorch-$1
  shift
  setup_other_libtorch "$version"
  cmake -S . -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=Release -DSINTER_LIBTORCH="$SINTER_LIBTORCH" \
    -DSINTER_BUILD_GPU_TESTS=OFF | grep LibTorch
  cmake --build "$folder"
  ctest --test-dir "$folder" --output-on-failure -LE gpu -j 2 "$@"
}

dev_test() {
  if [ "${1:-}" = --libtorch ]; then
    shift
    test_with_libtorch "$@"
    return
  fi
  install_browser
  dev_build
  ctest --preset release -j 2 "$@"
}

# Core tests once more under the address and undefined-behaviour sanitizers.
dev_sanitize() {
  build_core sanitize
  ctest --preset sanitize -j 2
}

# The library and what the hostile suite does with it, under the address sanitizer; LibTorch itself is not instrumented.
dev_sanitize_suite() {
  dev_setup
  configure sanitize-suite
  cmake --build --preset sanitize-suite --target sinter_hostile_tests
  local shard shards=()
  for shard in 0 1; do
    SINTER_CACHE=off GTEST_TOTAL_SHARDS=2 GTEST_SHARD_INDEX=$shard \
      build/sanitize-suite/bin/sinter_hostile_tests --gtest_filter='Cpu/*' --gtest_brief=1 &
    shards+=($!)
  done
  wait "${shards[0]}" && wait "${shards[1]}"
}

# What several threads share, under the thread sanitizer.
dev_threads() {
  build_core threads thread_tests
  ctest --preset threads -L threads
}

dev_bench() {
  install_packages "${packages_build[@]}"
  setup_libtorch
  configure release OFF
  cmake --build --preset release --target sinter_command
  build/release/bin/sinter bench "$@"
}

dev_compare() {
  dev_build
  python3 bench/peers/compare.py "$@"
}
