#include "eager.h"

#include <algorithm>

namespace sinter::test::hostile {

std::vector<Reason> never_replayed() {
  return {
      {"does something new on every call, so that no recording answers it",
       {"a_captured_vector_that_grows", "a_captured_vector_of_factors", "a_number_of_the_host_that_is_raised_to",
        "operators_chosen_at_random"}},
      {"all it does is done with a few integers on the CPU, which the host may read through a pointer next: at once",
       {"division_of_integers", "division_by_an_integer_zero", "sizes_from_data"}},
      {"all it does draws random numbers of the CPU, whose generator must have moved on when the operator returns: at "
       "once, and nothing is left to compute",
       {"two_draws_that_look_alike"}},
      {"all it does fills two elements on the CPU, as the host fills memory of its own: at once",
       {"an_expanded_input_that_is_filled"}},
      {"all it does takes or gives sparse tensors, whose sizes depend on data", {"sparse_inside"}},
  };
}

std::vector<Reason> replayed_late() {
  return {
      {"its first three calls are of different sizes, so that no recording answers the third",
       {"sizes_that_grow_by_one_up_to_a_cap", "a_key_value_cache_given_as_input", "a_cache_that_grows_up_to_a_cap",
        "packed_sequences_of_other_lengths", "a_split_at_indices_of_a_tensor", "attention_over_sixty_lengths"}},
      {"its first calls look at places that lie at another distance from the argument each time",
       {"an_absolute_view_of_inputs_at_other_offsets"}},
      {"its first calls look at parts of what it keeps that are written before they are looked at, each at a place of "
       "its own in each call",
       {"a_series_smoothed_in_three_ways"}},
      {"its first three calls throw before they call an operator", {"an_exception_of_the_callable"}},
      {"all that its first calls do draws random numbers of the CPU, as many as there are negative elements: at once",
       {"slopes_drawn_in_training"}},
      {"does something new in each of its first three calls: an optimizer makes its state, gradients come and go, "
       "anomalies are looked for",
       {"a_step_alone_while_some_gradients_are_missing", "a_gradient_that_is_asked_whether_it_is_there",
        "anomalies_looked_for_in_some_calls", "a_step_of_lbfgs"}},
      {"takes a branch that is new in each of its first three calls",
       {"a_branch_on_each_bit_of_a_counter", "a_branch_on_each_of_six_numbers"}},
  };
}

bool names(const std::vector<Reason>& list, std::string_view program) {
  return std::ranges::any_of(
      list, [&](const Reason& one) { return std::ranges::find(one.programs, program) != one.programs.end(); });
}

}  // namespace sinter::test::hostile
