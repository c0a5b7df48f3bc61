#!/usr/bin/env bash
# Configures against LibTorch folders that do not fit; each must be refused in words that say why.
#   refused.sh SOURCE PREFIX WORK
set -euo pipefail
source=$1 prefix=$2 work=$3

# A folder that looks like LibTorch of the given version.
fake() { # MAJOR MINOR
  local folder="$work/libtorch-$1.$2"
  mkdir -p "$folder/lib" "$folder/include/torch/headeronly"
  touch "$folder/lib/libtorch.so"
  printf '#define TORCH_VERSION_%s\n' "MAJOR $1" "MINOR $2" "PATCH 0" >"$folder/include/torch/headeronly/version.h"
  echo "$folder"
}

refuses() { # LIBTORCH WORDS
  local said
  rm -rf "$work/build"
  if said=$(cmake -S "$source/program" -B "$work/build" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" -DSINTER_LIBTORCH="$1" \
    -DREADME="$source/../../README.md" 2>&1); then
    echo "accepted: $1" >&2
    return 1
  fi
  tr -s ' \n' ' ' <<<"$said" | grep -q "$2" || { printf 'refused without the words "%s":\n%s\n' "$2" "$said" >&2; return 1; }
}

rm -rf "$work"
refuses "$(fake 2 10)" "Sinter needs 2.11 or later"
refuses "$(fake 2 99)" "sinter was built with LibTorch"
refuses "$work/nowhere" "no libtorch.so under"
