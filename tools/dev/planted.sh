# Planted bugs: which of the hostile suite and the fuzzer finds each.

dev_planted() {
  dev_setup
  configure planted
  cmake --build --preset planted --target sinter_hostile_tests sinter_fuzz
  local bug suite fuzz missed=0 bin=build/planted/bin programs=${1:-600}
  export SINTER_CACHE=off
  printf '%-28s %-8s %s\n' bug suite fuzzer
  for bug in none $(sed -n '/^enum class Bug/,/^};/s/^  \([a-z_]*\),.*/\1/p' compiler/support/planted.h); do
    suite=found fuzz=found
    SINTER_PLANTED=$bug timeout 600 "$bin/sinter_hostile_tests" --gtest_filter='Cpu/*' --gtest_fail_fast >/dev/null 2>&1 && suite=-
    SINTER_PLANTED=$bug timeout 600 "$bin/sinter_fuzz" --programs "$programs" --jobs 2 --no-shrink >/dev/null 2>&1 && fuzz=-
    printf '%-28s %-8s %s\n' "$bug" "$suite" "$fuzz"
    if [ "$bug" = none ]; then
      [ "$suite$fuzz" = -- ] || missed=1
    else
      [ "$suite$fuzz" = -- ] && missed=1
    fi
  done
  [ $missed = 0 ] || { echo "dev: a planted bug was missed, or a test fails without one" >&2; return 1; }
}
