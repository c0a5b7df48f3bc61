#!/usr/bin/env bash
# Switches on one planted bug at a time and tells what finds it: the fuzzer, and where that does not, the hostile suite
# or, for bugs in CUDA text, the emulator's tests, and for bugs of recorded graphs those on a simulated device. Fails
# where a bug is missed, or where something fails without one. Two bugs are looked for at a time, on a GPU four.
#   planted-run.sh BIN DEVICE PROGRAMS [BUG...]
# BIN holds the programs of a build with SINTER_PLANTED_BUGS; DEVICE is cpu or cuda; all bugs where none is named.
set -u
bin=$1 device=$2 programs=$3
shift 3
bugs=${*:-none $("$bin/sinter_fuzz" --list-bugs | cut -d' ' -f1)}
at_once=2 jobs=1
[ "$device" = cuda ] && at_once=4 jobs=4
export SINTER_CACHE=off
found=$(mktemp -d)
trap 'rm -rf "$found"' EXIT
missed=0

seen() { "$bin/sinter_fuzz" --list-bugs | sed -n "s/^$1 //p"; }

fuzzer_finds() { # BUG MODE [OPTION...]
  local bug=$1 mode=$2
  shift 2
  ! SINTER_PLANTED=$bug timeout 540 "$bin/sinter_fuzz" --programs "$programs" --jobs $jobs --device "$device" \
    --mode "$mode" "$@" --no-shrink --until-first --least-replayed 0 >/dev/null 2>&1
}

tests_find() { # BUG PROGRAM FILTER
  [ -x "$bin/$2" ] && ! SINTER_PLANTED=$1 timeout 540 "$bin/$2" --gtest_filter="$3" --gtest_fail_fast >/dev/null 2>&1
}

finds() { # BUG: prints what finds it
  if [ "$device" = cuda ]; then
    [ "$(seen "$1")" = cpu ] && echo "(on the CPU only)" && return
    fuzzer_finds "$1" default && echo fuzzer && return
    fuzzer_finds "$1" reduce-overhead && echo "fuzzer, recorded graphs" && return
    fuzzer_finds "$1" reduce-overhead --trusted && echo "fuzzer, trusted replay" && return
    tests_find "$1" sinter_hostile_gpu_tests '*' && echo suite && return
  elif [ "$1" = none ] || [[ "$(seen "$1")" =~ ^(anywhere|cpu)$ ]]; then
    fuzzer_finds "$1" default && echo fuzzer && return
    fuzzer_finds "$1" default --trusted && echo "fuzzer, trusted replay" && return
    tests_find "$1" sinter_hostile_tests 'Cpu/*' && echo suite && return
  fi
  if [ "$device" = cpu ] && { [ "$1" = none ] || [ "$(seen "$1")" = cuda-text ]; }; then
    tests_find "$1" emulator_op_tests '*' && echo emulator && return
    tests_find "$1" emulator_layout_tests '*' && echo emulator && return
  fi
  if [ "$1" = none ] || [ "$(seen "$1")" = graphs ]; then
    tests_find "$1" runtime_tests 'Simulated*' && echo "simulated device" && return
  fi
  echo -
}

look_for() { # BUG
  local by
  by=$(finds "$1")
  [ "$device" = cpu ] && [ "$1" != none ] && [ "$(seen "$1")" = gpu ] && by="(on a GPU only)"
  echo "$by" >"$found/$1"
  printf '%-28s %s\n' "$1" "$by"
}

printf '%-28s %s\n' bug "found by"
for bug in $bugs; do
  while [ "$(jobs -rp | wc -l)" -ge $at_once ]; do wait -n; done
  look_for "$bug" &
done
wait

for bug in $bugs; do
  by=$(cat "$found/$bug")
  if [ "$bug" = none ]; then
    [ "$by" = - ] || missed=1
  else
    [ "$by" = - ] && missed=1
  fi
done
[ $missed = 0 ] || { echo "a planted bug was missed, or a test fails without one" >&2; exit 1; }
