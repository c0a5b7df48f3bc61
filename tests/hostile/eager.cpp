#include "eager.h"

#include <algorithm>

namespace sinter::test::hostile {

std::vector<Reason> never_replayed() {
  return {
      {"does something new on every call",
       {"a_captured_vector_that_grows", "a_captured_vector_of_factors", "a_number_of_the_host_that_is_raised_to",
        "operators_chosen_at_random"}},
      {"all it does may refuse its data on the CPU, and runs at once",
       {"deterministic_algorithms", "division_of_integers", "division_by_an_integer_zero", "embedding",
        "embedding_with_a_norm_limit", "embedding_bag", "state_replaced_behind_calls_that_threw"}},
      {"all it does brings data to the host", {"sizes_from_data"}},
      {"all it does draws random numbers", {"two_draws_that_look_alike"}},
      {"puts other memory under a tensor", {"a_temporary_that_is_set"}},
      {"writes a tensor whose elements share memory", {"an_expanded_input_that_is_filled"}},
      {"tensors and operators that segments do not know", {"sparse_inside", "a_custom_op_without_a_kernel"}},
  };
}

std::vector<Reason> replayed_late() {
  return {
      {"its first calls are of different sizes",
       {"sizes_that_grow_by_one_up_to_a_cap", "a_key_value_cache_given_as_input", "a_cache_that_grows_up_to_a_cap",
        "packed_sequences_of_other_lengths", "a_split_at_indices_of_a_tensor", "attention_over_sixty_lengths"}},
      {"its first arguments lie at different offsets in their storage",
       {"an_absolute_view_of_inputs_at_other_offsets", "an_offset_in_the_arithmetic", "slices_at_other_offsets_written",
        "write_to_an_input_that_is_a_view"}},
      {"its first calls throw",
       {"an_exception_of_the_callable", "an_error_of_an_operator", "an_exception_after_a_write_to_state"}},
      {"its first arguments are tensors that segments do not know", {"meta_inputs", "zeros_without_memory_as_inputs"}},
      {"all that its first calls do draws random numbers", {"slopes_drawn_in_training"}},
      {"does something new in its first three calls: gradients come and go, anomalies are looked for",
       {"a_step_alone_while_some_gradients_are_missing", "a_gradient_that_is_asked_whether_it_is_there",
        "anomalies_looked_for_in_some_calls"}},
      {"takes branches that are new, call after call",
       {"a_branch_on_each_bit_of_a_counter", "a_branch_on_each_of_six_numbers"}},
  };
}

bool names(const std::vector<Reason>& list, std::string_view program) {
  return std::ranges::any_of(
      list, [&](const Reason& one) { return std::ranges::find(one.programs, program) != one.programs.end(); });
}

}  // namespace sinter::test::hostile
