#include "eager.h"

namespace sinter::test::hostile {

std::vector<EagerReason> eager_reasons() {
  return {
      {"writes memory that two arguments share", {"write_to_one_of_two_inputs_that_overlap"}},
      {"puts a tensor that it made in a captured variable or a reference argument",
       {"a_captured_tensor_replaced_inside", "a_result_left_in_a_captured_variable", "a_captured_vector_that_grows",
        "another_tensor_put_in_a_reference_argument"}},
      {"leaves an argument or a view of one in a captured variable",
       {"the_last_input_left_in_a_captured_variable", "a_row_of_an_input_left_in_a_captured_variable"}},
      {"a closed-over tensor is another one on every call: every call is recorded anew",
       {"a_closed_over_tensor_replaced_on_every_call"}},
      {"host state that changes on its own, found by a verification",
       {"a_counter_in_the_arithmetic", "a_branch_on_a_counter", "a_counter_in_the_result", "random_numbers_of_the_host",
        "an_environment_variable", "the_time", "a_flag_flipped_before_a_verification", "a_captured_vector_of_factors",
        "a_list_of_modules_that_grows", "a_blob_that_changes", "an_accessor_that_reads_an_input",
        "a_generator_replaced", "a_number_of_results_that_grows_on_its_own", "two_weights_swapped",
        "a_bias_that_comes_and_goes", "a_thread_started_inside"}},
      {"decides by numbers that are others on every call: every call is recorded, up to the limit",
       {"a_loop_until_small", "a_number_of_the_host_that_is_raised_to"}},
      {"fills a cache in its first call; later calls are compiled",
       {"a_host_cache_filled_on_first_use", "a_buffer_that_grows_with_the_longest_input"}},
      {"an optimizer makes its state in its first step; later steps are compiled",
       {"a_training_step_with_sgd", "a_training_step_with_adam", "a_training_step_with_adamw"}},
      {"a step of an optimizer that the options do not name", {"a_step_of_an_optimizer_without_a_name"}},
      {"sees memory of an input or state in a way no operator made, or through another dtype",
       {"an_input_that_is_a_view_of_state", "an_input_through_another_dtype", "the_real_part_of_an_input",
        "a_write_through_data", "a_write_to_the_imaginary_part_of_what_was_real",
        "a_write_between_the_elements_of_an_input", "the_parts_of_scaled_complex_state",
        "the_parts_of_scaled_complex_state_returned", "a_write_to_an_undeclared_view"}},
      {"is given an argument with a hook on its gradient; other calls are compiled", {"a_hook_on_an_argument"}},
      {"writes a tensor whose elements share memory",
       {"an_expanded_input_that_is_filled", "an_element_of_an_expanded_input_written",
        "windows_that_overlap_written_in_place"}},
      {"writes a tensor while it reads a part of it", {"a_column_updated_by_an_element_of_itself"}},
      {"leaves an argument with other sizes", {"an_input_transposed_in_place"}},
      {"changes the storage of a tensor", {"a_temporary_that_is_resized", "an_output_argument_that_is_resized"}},
      {"returns a tensor that requires gradients",
       {"grad_mode_switched_on_and_off", "a_frozen_weight_that_is_unfrozen", "a_result_made_to_require_gradients",
        "a_result_differentiated_outside", "the_gradient_of_an_input"}},
      {"a mode or generator that the callable itself leaves changed",
       {"grad_mode_left_changed_by_the_callable", "the_seed_set_inside", "a_generator_of_its_own_seeded_inside"}},
      {"an argument or result that cannot be described",
       {"a_foreign_argument", "sparse_inputs", "meta_inputs", "a_view_of_a_negative_or_conjugate",
        "nested_inputs_among_dense_ones", "zeros_without_memory_as_inputs", "a_zero_without_memory_among_others"}},
      {"tensors the graph cannot hold",
       {"sparse_inside", "quantized_inside", "a_nested_tensor_inside", "a_meta_tensor_inside", "a_conjugate_as_result",
        "a_custom_op_without_a_kernel"}},
  };
}

std::vector<EagerReason> checked_eager_reasons() {
  return {
      {"does something new on every call",
       {"a_captured_vector_that_grows", "a_captured_vector_of_factors", "a_number_of_the_host_that_is_raised_to",
        "operators_chosen_at_random"}},
      {"all it does may refuse its data on the CPU, and runs at once",
       {"deterministic_algorithms", "division_of_integers", "division_by_an_integer_zero", "embedding",
        "embedding_with_a_norm_limit", "embedding_bag", "state_replaced_behind_calls_that_threw"}},
      {"all it does brings data to the host", {"sizes_from_data", "a_tensor_printed"}},
      {"all it does draws random numbers", {"two_draws_that_look_alike"}},
      {"puts other memory under a tensor", {"a_temporary_that_is_set"}},
      {"writes a tensor whose elements share memory", {"an_expanded_input_that_is_filled"}},
      {"tensors and operators that segments do not know", {"sparse_inside", "a_custom_op_without_a_kernel"}},
  };
}

}  // namespace sinter::test::hostile
