#!/usr/bin/env bash
# Fuzzed programs: those of this commit, so that a run can be repeated elsewhere; of a tree that is no commit, any.
# SINTER_FUZZ_SEED draws others.
set -euo pipefail
program=$1 count=$2
sources=$(dirname "$0")

seed_of_tree() {
  local tree
  if tree=$(git -C "$sources" rev-parse --verify --quiet 'HEAD^{tree}') &&
    [ -z "$(git -C "$sources" status --porcelain)" ]; then
    printf '%d\n' "0x${tree:0:8}"
  else
    od -An -N4 -tu4 /dev/urandom | tr -d ' '
  fi
}

seed=${SINTER_FUZZ_SEED:-$(seed_of_tree)}
echo "SINTER_FUZZ_SEED=$seed: $count programs from this seed on"
"$program" --seed "$seed" --programs "$count" --jobs 2
exec "$program" --seed "$seed" --programs "$((count / 4))" --jobs 2 --trusted
