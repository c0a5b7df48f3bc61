# Configuring, building, testing, running.

# Checkouts in different folders share what the compiler cache holds.
export CCACHE_BASEDIR="$PWD" CCACHE_NOHASHDIR=true

configure() { # PRESET
  [ -f "build/$1/build.ninja" ] && grep -q "SINTER_LIBTORCH:PATH=$SINTER_LIBTORCH\$" "build/$1/CMakeCache.txt" && return
  cmake --preset "$1" -DSINTER_LIBTORCH="$SINTER_LIBTORCH" >/dev/null
}

dev_build() {
  dev_setup
  configure release
  cmake --build --preset release
}

dev_test() {
  dev_build
  ctest --preset release -j 2 "$@"
}

# Core tests once more under the address and undefined-behaviour sanitizers.
dev_sanitize() {
  dev_setup
  configure sanitize
  cmake --build --preset sanitize
  ctest --preset sanitize -j 2
}

# The library and what the hostile suite does with it, under the address sanitizer; LibTorch itself is not instrumented.
dev_sanitize_suite() {
  dev_setup
  configure sanitize-suite
  cmake --build --preset sanitize-suite --target sinter_hostile_tests
  SINTER_CACHE=off build/sanitize-suite/bin/sinter_hostile_tests --gtest_filter='Cpu/*' --gtest_brief=1
}

# What several threads share, under the thread sanitizer.
dev_threads() {
  dev_setup
  configure threads
  cmake --build --preset threads --target thread_tests
  ctest --preset threads -L threads
}

dev_demo() {
  dev_build
  build/release/bin/sinter demo "$@"
}

dev_bench() {
  dev_build
  build/release/bin/sinter bench "$@"
}
