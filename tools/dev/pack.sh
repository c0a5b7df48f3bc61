# Stripped programs and tests in one folder that runs on another machine with the same LibTorch version.

dev_pack() {
  local folder=${1:-.pack} file limit=$((60 << 20))
  dev_build
  rm -rf "$folder"
  mkdir -p "$folder/bin" "$folder/lib"
  cp build/release/lib/libsinter_internals.so.0 "$folder/lib/"
  cp build/release/bin/* "$folder/bin/"
  rm "$folder"/bin/emulator_*_tests # they need a C++ compiler
  [ -d build/release/tests-data ] && cp -r build/release/tests-data "$folder/data"
  for file in "$folder"/lib/* "$folder"/bin/*; do strip --strip-unneeded "$file"; done
  cat "$SINTER_LIBTORCH"/{torch/,}include/torch/headeronly/version.h 2>/dev/null |
    sed -n 's/^#define TORCH_VERSION_[MP][AI][JNT][A-Z]* \([0-9]*\)$/\1/p' | paste -sd. >"$folder/libtorch-version"
  cp tools/pack-run.sh "$folder/run"
  chmod +x "$folder/run"
  if [ "$(du -sb "$folder" | cut -f1)" -gt $limit ]; then
    echo "dev: $folder is larger than 60 MiB:" >&2
    du -ab "$folder" | sort -rn | head >&2
    exit 1
  fi
  du -sh "$folder"
}
