# Planted bugs: what of the fuzzer, the hostile suite, the emulator and the simulated device finds each.

planted_on_cpu=(sinter_fuzz sinter_hostile_tests emulator_op_tests emulator_layout_tests runtime_tests)
planted_on_gpu=(sinter_fuzz sinter_hostile_gpu_tests runtime_tests)

dev_planted() { # [PROGRAMS [BUG...]]
  dev_setup
  configure planted
  cmake --build --preset planted --target "${planted_on_cpu[@]}"
  local programs=${1:-600}
  shift $(($# > 0))
  tools/planted-run.sh build/planted/bin cpu "$programs" "$@"
}

# For a machine with a GPU: there, `./run planted cuda 600`.
dev_pack_planted() { # [FOLDER]
  local folder=${1:-.pack-planted}
  dev_setup
  configure planted
  cmake --build --preset planted --target "${planted_on_gpu[@]}"
  pack_into "$folder" build/planted "${planted_on_gpu[@]}"
  install -m 755 tools/planted-run.sh "$folder/planted-run"
  pack_size "$folder"
}
