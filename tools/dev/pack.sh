# Stripped programs and tests in one folder that runs on another machine with the same LibTorch version.

# Of LibTorch's headers, which lie in one of two places.
libtorch_version() {
  local header="$SINTER_LIBTORCH/torch/include/torch/headeronly/version.h"
  [ -e "$header" ] || header="$SINTER_LIBTORCH/include/torch/headeronly/version.h"
  sed -n 's/^#define TORCH_VERSION_[MP][AI][JNT][A-Z]* \([0-9]*\)$/\1/p' "$header" | paste -sd.
}

pack_into() { # FOLDER BUILD PROGRAM...
  local folder=$1 build=$2 file
  shift 2
  rm -rf "$folder"
  mkdir -p "$folder/bin" "$folder/lib"
  cp "$build/lib/libsinter_internals.so.0" "$folder/lib/"
  for file in "$@"; do cp "$build/bin/$file" "$folder/bin/"; done
  find "$folder" -type f -exec strip --strip-unneeded {} +
  git describe --always --abbrev=40 --dirty '--exclude=*' >"$folder/commit"
  libtorch_version >"$folder/libtorch-version"
  install -m 755 tools/pack-run.sh "$folder/run"
}

# What `sinter profile` needs to name lines on another machine: the program with its debugging information, and the tests.
dev_pack_profile() {
  local folder=${1:-.pack-profile} file
  dev_build
  pack_into "$folder" build/release
  for file in sinter sinter_profiler_gpu_tests; do
    objcopy --compress-debug-sections=zstd "build/release/bin/$file" "$folder/bin/$file"
  done
  pack_size "$folder"
}

pack_size() { # FOLDER
  local limit=$((60 << 20))
  if [ "$(du -sb "$1" | cut -f1)" -gt $limit ]; then
    echo "dev: $1 is larger than 60 MiB:" >&2
    du -ab "$1" | sort -rn | head >&2
    exit 1
  fi
  du -sh "$1"
}

# What a machine with a GPU runs: the program, the measurements, and beside the tests for GPUs alone (*_gpu_tests) the
# programs that have some.
packed=(sinter sinter_fuzz sinter_host_time sinter_bandwidth sinter_{ops_torch,conformance,trusted}_tests runtime_tests)

dev_pack() {
  local folder=${1:-.pack}
  dev_build
  # shellcheck disable=SC2046
  pack_into "$folder" build/release "${packed[@]}" $(ls build/release/bin | grep '_gpu_tests$')
  [ -d build/release/tests-data ] && cp -r build/release/tests-data "$folder/data"
  mkdir "$folder/peers"
  cp bench/peers/*.py "$folder/peers/"
  pack_size "$folder"
}
