#include "groups.h"

namespace sinter::test::hostile {

std::vector<Group> groups() {
  return {{"inputs", input_programs()},
          {"aliases", alias_programs()},
          {"state", state_programs()},
          {"input_writes", input_write_programs()},
          {"state_writes", state_write_programs()},
          {"host_reads", host_read_programs()},
          {"host_state", host_state_programs()},
          {"random", random_programs()},
          {"modes", mode_programs()},
          {"control", control_programs()},
          {"arguments", argument_programs()},
          {"numbers", number_programs()},
          {"indices", index_programs()},
          {"offsets", offset_programs()},
          {"training", training_programs()},
          {"kinds", kind_programs()},
          {"conjugates", conjugate_programs()},
          {"modules", module_programs()},
          {"live_modules", live_module_programs()},
          {"steps", step_programs()},
          {"misuse", misuse_programs()},
          {"estimation", estimation_programs()},
          {"finance", finance_programs()},
          {"simulations", simulation_programs()},
          {"vision", vision_programs()},
          {"language", language_programs()},
          {"reinforcement", reinforcement_programs()},
          {"signals", signal_programs()},
          {"networks", network_programs()},
          {"inference", inference_programs()},
          {"recipes", recipe_programs()},
          {"everyday", everyday_programs()},
          {"workshop", workshop_programs()},
          {"workbench", workbench_programs()},
          {"layers", layer_programs()},
          {"classics", classic_programs()},
          {"fuzzed", fuzzed_programs()}};
}

std::vector<Case> cases() { return cases(groups()); }

std::vector<Case> cases(std::span<const Group> groups) {
  std::vector<Case> all;
  for (const Group& group : groups) {
    for (const Program& program : group.programs) all.push_back({group.name, &program});
  }
  return all;
}

std::string name_of(const Case& one) { return std::string(one.group) + "_" + one.program->name; }

}  // namespace sinter::test::hostile
