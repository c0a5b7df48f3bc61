#!/usr/bin/env bash
# PYTHON SCRIPT: the table of a CSV written by hand, equal names summed up and percentages weighted by time; and what is
# said of a file without kernels.
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
"$1" "$2" --read "$here/ncu.csv" | diff -u "$here/expected.txt" -
empty=$(mktemp)
trap 'rm -f "$empty"' EXIT
if said=$("$1" "$2" --read "$empty" 2>&1); then
  echo "a file without kernels was no error" >&2
  exit 1
fi
[[ $said == *"no kernels were profiled"* ]]
