#!/usr/bin/env bash
# Fuzzed programs from a seed of this run, which SINTER_FUZZ_SEED sets to see the same programs again.
set -euo pipefail
program=$1 count=$2
seed=${SINTER_FUZZ_SEED:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
echo "SINTER_FUZZ_SEED=$seed: $count programs from this seed on"
"$program" --seed "$seed" --programs "$count" --jobs 2
exec "$program" --seed "$seed" --programs "$((count / 4))" --jobs 2 --trusted
