#include "tests/capture/capture_test.h"

namespace capture_test {
namespace {

TEST(State, a_closed_over_tensor_gets_a_name_of_its_own) {
  const at::Tensor w = torch::randn({3});
  const Trace trace = trace_of([&](const at::Tensor& x) { return x * w + w; }, small());
  ASSERT_EQ(trace.states.size(), 1);
  EXPECT_EQ(trace.states[0].name, "closure.0");
  EXPECT_EQ(trace.states[0].tensor.lock().get(), w.unsafeGetTensorImpl());
}

TEST(State, is_found_behind_data) {
  const at::Tensor w = torch::randn({3});
  const Trace trace =
      trace_of([&] { return std::vector<at::Tensor>{small() * w.data()}; }, {small()}, {named("part.w", w)});
  ASSERT_TRUE(whole(trace));
  ASSERT_EQ(trace.states.size(), 1);
  EXPECT_EQ(trace.states[0].name, "part.w");
  EXPECT_TRUE(shows(trace, "# part"));
}

TEST(State, held_over_an_input_is_state_of_its_own) {
  const at::Tensor x = torch::randn({3});
  const at::Tensor cached = x.narrow(0, 0, 2);
  const Trace trace = trace_of([&](const at::Tensor& v) { return v.sum() + cached; }, x);
  ASSERT_TRUE(whole(trace));
  ASSERT_EQ(trace.states.size(), 1);
  EXPECT_EQ(trace.states[0].tensor.lock().get(), cached.unsafeGetTensorImpl());
}

TEST(Input, that_is_written_through_data_is_written_through_a_view) {
  at::Tensor x = torch::zeros({3});
  const Trace trace = trace_of([](const at::Tensor& v) { return v.data().add_(1); }, x);
  ASSERT_TRUE(whole(trace));
  EXPECT_TRUE(shows(trace, "mutates(0)"));
  EXPECT_TRUE(shows(trace, "alias %x0 + 0"));
}

TEST(State, without_a_name_behind_data_is_a_break) {
  const at::Tensor w = torch::randn({3});
  const Trace trace = trace_of([&](const at::Tensor& x) { return x * w.data(); }, small());
  EXPECT_TRUE(breaks(trace, BreakCode::unsupported_op, "", "through a temporary"));
}

TEST(State, that_is_written_is_written_where_it_lies) {
  at::Tensor w = torch::zeros({3});
  const Trace trace =
      trace_of([&] { return std::vector<at::Tensor>{w.add_(small())}; }, {small()}, {named("steps", w)});
  ASSERT_TRUE(whole(trace));
  EXPECT_TRUE(shows(trace, "alias %steps + 0"));
}

TEST(State, without_a_name_that_is_written_through_a_view_is_state_all_the_same) {
  at::Tensor w = torch::zeros({3});
  const Trace trace = trace_of([&](const at::Tensor& x) { return w.select(0, 1).fill_(2), x * w; }, small());
  ASSERT_TRUE(whole(trace));
  EXPECT_EQ(trace.states.size(), 1);
  EXPECT_TRUE(shows(trace, "alias %closure.0 + 1"));
}

TEST(State, written_by_operators_and_by_the_program_breaks) {
  at::Tensor w = torch::zeros({3});
  const Trace trace = trace_of(
      [&](const at::Tensor& x) {
        w.add_(1);
        w.data_ptr<float>()[0] = 5;
        return x * w;
      },
      small());
  EXPECT_TRUE(breaks(trace, BreakCode::state_mutation, "", "by the program itself"));
}

TEST(State, written_under_another_closed_over_view_breaks) {
  const at::Tensor w = torch::zeros({3});
  const at::Tensor part = w.narrow(0, 1, 2);
  const Trace trace =
      trace_of([&] { return std::vector<at::Tensor>{w.add_(1), small() * part.sum()}; }, {small()}, {named("w", w)});
  EXPECT_TRUE(breaks(trace, BreakCode::unsupported_op, "", "shares"));
}

TEST(State, whose_storage_is_replaced_breaks) {
  at::Tensor w = torch::zeros({3});
  const at::Tensor other = torch::ones({4});
  const Trace trace =
      trace_of([&](const at::Tensor& x) { return w.set_data(other), x * other.sum() + w.sum(); }, small());
  EXPECT_TRUE(whole(trace));
  at::Tensor v = torch::zeros({3});
  const Trace later = trace_of(
      [&](const at::Tensor& x) {
        at::Tensor y = x + v;
        v.set_data(other);
        return y;
      },
      small());
  EXPECT_TRUE(breaks(later, BreakCode::state_mutation, "", "changed its storage"));
}

TEST(Input, that_is_written_is_an_alias_of_itself) {
  at::Tensor x = torch::zeros({3});
  const Trace trace = trace_of([](const at::Tensor& v) { return v.add_(1); }, x);
  ASSERT_TRUE(whole(trace));
  EXPECT_TRUE(shows(trace, "alias %x0 + 0"));
  EXPECT_EQ(x[0].item<float>(), 1) << "written once, by the program itself";
}

TEST(Input, that_is_turned_in_place_breaks) {
  at::Tensor x = torch::zeros({3, 2});
  const Trace trace = trace_of([](const at::Tensor& v) { return v.t_().exp(); }, x);
  EXPECT_TRUE(breaks(trace, BreakCode::input_mutation, "aten::t_", "input 0"));
}

TEST(Content, of_a_tensor_made_from_a_vector_is_kept) {
  const Trace trace =
      trace_of([](const at::Tensor& x) { return x * torch::tensor(std::vector<float>{1, 2, 3}); }, small());
  ASSERT_TRUE(whole(trace));
  ASSERT_EQ(trace.contents.size(), 1);
  EXPECT_TRUE(torch::equal(trace.contents[0].value, torch::tensor(std::vector<float>{1, 2, 3})));
  EXPECT_TRUE(shows(trace, "= content 0 : f32[3]"));
}

TEST(Content, of_foreign_memory_is_kept) {
  std::vector<float> data{4, 5, 6};
  const Trace trace = trace_of([&](const at::Tensor& x) { return x + torch::from_blob(data.data(), {3}); }, small());
  ASSERT_TRUE(whole(trace));
  ASSERT_EQ(trace.contents.size(), 1);
  EXPECT_EQ(trace.contents[0].value[2].item<float>(), 6);
}

TEST(Content, written_through_an_accessor_replaces_what_the_factory_made) {
  const Trace trace = trace_of(
      [](const at::Tensor& x) {
        at::Tensor mask = torch::zeros({3});
        mask.accessor<float, 1>()[1] = 7;
        return x + mask;
      },
      small());
  ASSERT_TRUE(whole(trace));
  ASSERT_EQ(trace.contents.size(), 1);
  EXPECT_EQ(trace.contents[0].value[1].item<float>(), 7);
}

TEST(Content, written_between_two_reads_is_two_contents) {
  const Trace trace = trace_of(
      [](const at::Tensor& x) {
        at::Tensor mask = torch::zeros({3});
        const at::Tensor first = x + mask;
        mask.data_ptr<float>()[0] = 3;
        return first + mask;
      },
      small());
  ASSERT_EQ(trace.contents.size(), 1);
  EXPECT_TRUE(shows(trace, "aten.add.Tensor(%x0, %zeros, 1)"));
}

TEST(Content, of_foreign_memory_that_changes_is_two_contents) {
  std::vector<float> data{4, 5, 6};
  const Trace trace = trace_of(
      [&](const at::Tensor& x) {
        const at::Tensor blob = torch::from_blob(data.data(), {3});
        const at::Tensor y = x + blob;
        data[0] = 9;
        return y * blob;
      },
      small());
  ASSERT_TRUE(whole(trace));
  ASSERT_EQ(trace.contents.size(), 2);
  EXPECT_EQ(trace.contents[0].value[0].item<float>(), 4);
  EXPECT_EQ(trace.contents[1].value[0].item<float>(), 9);
}

TEST(Content, of_an_untouched_factory_stays_an_operator) {
  const Trace trace = trace_of([](const at::Tensor& x) { return x + torch::arange(3); }, small());
  EXPECT_TRUE(trace.contents.empty()) << text_of(trace);
}

TEST(Content, that_an_operator_writes_is_copied_first) {
  const Trace trace = trace_of(
      [](const at::Tensor& x) {
        at::Tensor table = torch::tensor(std::vector<float>{1, 2, 3});
        table.mul_(2);
        return x + table;
      },
      small());
  ASSERT_TRUE(whole(trace));
  EXPECT_EQ(trace.contents[0].value[0].item<float>(), 1);
  EXPECT_TRUE(shows(trace, "aten.mul_.Scalar(%clone, 2) mutates(0)"));
}

TEST(Content, of_a_number_put_by_index_is_kept) {
  const Trace trace = trace_of(
      [](const at::Tensor& x) {
        at::Tensor y = x.clone();
        y.index_put_({0}, 2.0);
        return y;
      },
      small());
  EXPECT_TRUE(whole(trace));
}

TEST(Content, that_is_returned_is_kept) {
  const Trace trace = trace_of([](const at::Tensor&) { return torch::tensor(std::vector<float>{1, 2}); }, small());
  ASSERT_TRUE(whole(trace));
  EXPECT_EQ(trace.contents.size(), 1);
}

/// What a traced program does where Python computed with sizes: numbers become tensors and numbers again.
at::Tensor number(double value) { return at::detail::scalar_tensor_static(value, at::kDouble, at::kCPU); }

TEST(HostRead, of_what_contents_alone_decide_is_a_constant_of_the_trace) {
  const Trace trace =
      trace_of([](const at::Tensor& x) { return x * (number(3) * number(2) + 1).item<double>(); }, small());
  ASSERT_TRUE(whole(trace));
  EXPECT_TRUE(shows(trace, "aten.mul.Scalar(%x0, 7.0)")) << text_of(trace);
}

TEST(HostRead, of_a_content_that_changes_is_seen_by_the_next_recording) {
  const auto times = [](double factor) {
    return trace_of([&](const at::Tensor& x) { return x * number(factor).item<double>(); }, small());
  };
  EXPECT_TRUE(difference(times(2), times(3)));
  EXPECT_FALSE(difference(times(2), times(2)));
}

TEST(HostRead, of_small_state_is_kept_beside_it) {
  const at::Tensor w = torch::tensor({4.0, 5.0});
  const Trace trace = trace_of([&](const at::Tensor& x) { return x * w.sum().item<double>(); }, small());
  ASSERT_TRUE(whole(trace));
  ASSERT_EQ(trace.states.size(), 1);
  EXPECT_TRUE(torch::equal(trace.states[0].read_by_host, w));
}

/// The outcomes of what the host read, in order; fails where the trace broke.
std::vector<std::string> reads_of(const Trace& trace) {
  EXPECT_TRUE(whole(trace));
  std::vector<std::string> outcomes;
  for (const HostRead& read : trace.reads) {
    EXPECT_TRUE(trace.graph.node(read.node).as<ir::Call>()->read);
    outcomes.push_back(read.outcome.text());
  }
  return outcomes;
}

TEST(HostRead, of_large_state_is_one_whose_outcome_counts) {
  const at::Tensor w = torch::ones({100});
  const Trace trace = trace_of([&](const at::Tensor& x) { return x * w.sum().item<float>(); }, small());
  EXPECT_EQ(reads_of(trace), std::vector<std::string>{"100.0"});
  EXPECT_FALSE(trace.states.at(0).read_by_host.defined());
}

TEST(HostRead, of_what_an_input_was_written_to_is_one_whose_outcome_counts) {
  const Trace trace = trace_of(
      [](const at::Tensor& x) {
        const at::Tensor table = torch::zeros({2, 3});
        table[0].copy_(x);
        return x * (table.sum() > 1e9).item<bool>();
      },
      small());
  EXPECT_EQ(reads_of(trace), std::vector<std::string>{"false"});
}

TEST(HostRead, of_random_numbers_is_one_whose_outcome_counts) {
  const Trace trace = trace_of([](const at::Tensor& x) { return x * (torch::rand({}) < 2).item<bool>(); }, small());
  EXPECT_EQ(reads_of(trace), std::vector<std::string>{"true"});
}

TEST(HostRead, of_sizes_that_contents_decide_is_recorded) {
  const Trace trace =
      trace_of([](const at::Tensor& x) { return x.index({torch::tensor({0, 2, 0}).nonzero().squeeze(1)}); }, small());
  ASSERT_TRUE(whole(trace));
  EXPECT_TRUE(shows(trace, "aten.nonzero"));
}

TEST(HostRead, of_a_number_a_bool_and_a_comparison_are_kept_in_order) {
  const Trace trace = trace_of(
      [](const at::Tensor& x) {
        const auto sum = (x * 0 + 1).sum().item<float>();
        const bool large = (x.abs().sum() > 1e9).item<bool>();
        return torch::equal(x, x + 1) || large || torch::allclose(x, x + 1) ? x : x * sum;
      },
      small());
  const std::vector<std::string> expected{std::to_string(small().numel()) + ".0", "false", "false", "false"};
  EXPECT_EQ(reads_of(trace), expected);
  const ir::Graph& graph = trace.graph;
  EXPECT_NE(graph.scope(graph.node(trace.reads[0].node).scope).source.find("leaves_test.cpp:"), std::string::npos);
}

TEST(HostRead, of_sizes_is_a_read_of_the_types_of_results) {
  const Trace trace = trace_of([](const at::Tensor& x) { return (x * 0).nonzero(); }, small());
  EXPECT_EQ(reads_of(trace), std::vector<std::string>{"[0," + std::to_string(small().dim()) + "]"});
}

TEST(HostRead, of_sizes_that_data_decide_may_be_any_operators) {
  const at::Tensor x = torch::tensor({0.0, 2.0, 3.0});
  EXPECT_EQ(reads_of(trace_of([](const at::Tensor& v) { return v.nonzero(); }, x)), std::vector<std::string>{"[2,1]"});
  EXPECT_EQ(reads_of(trace_of([](const at::Tensor& v) { return v.masked_select(v > 1); }, x)),
            std::vector<std::string>{"[2]"});
  EXPECT_EQ(reads_of(trace_of([](const at::Tensor& v) { return v.index({v > 2}); }, x)),
            std::vector<std::string>{"[1]"});
}

TEST(HostRead, indexing_by_numbers_is_none) {
  const at::Tensor index = torch::tensor(std::vector<int64_t>{2, 0});
  EXPECT_TRUE(whole(trace_of([&](const at::Tensor& x) { return x.index({index}); }, small())));
}

TEST(Breaks, sparse_tensors_are_not_supported) {
  const Trace trace = trace_of([](const at::Tensor& x) { return x.to_sparse().to_dense(); }, small());
  ASSERT_TRUE(trace.graph_break);
}

TEST(Breaks, a_sparse_input_is_not_supported) {
  const at::Tensor x = small().to_sparse();
  const Trace trace = trace_of([](const at::Tensor& v) { return v + v; }, x);
  EXPECT_TRUE(breaks(trace, BreakCode::unsupported_input, "", "input 0 is a sparse tensor"));
}

TEST(Leaves, conjugates_of_them_are_views_made_by_a_call) {
  const at::Tensor z = torch::randn({3}, at::kComplexFloat);
  const Trace trace = trace_of([](const at::Tensor& v) { return v.conj(); }, z);
  EXPECT_FALSE(trace.graph_break);
  EXPECT_TRUE(shows(trace, "call aten._conj(%x0) : c64[3] alias %x0 + 0"));
}

TEST(Breaks, conjugates_made_outside_are_not_supported) {
  const at::Tensor z = torch::randn({3}, at::kComplexFloat).conj();
  const Trace input = trace_of([](const at::Tensor& v) { return v * 2; }, z);
  EXPECT_TRUE(breaks(input, BreakCode::unsupported_input, "", "input 0 is a conjugated or negated view"));
  const Trace closed_over =
      trace_of([&](const at::Tensor& v) { return at::vdot(z, v); }, torch::randn({3}, at::kComplexFloat));
  EXPECT_TRUE(breaks(closed_over, BreakCode::unsupported_op, "", "a conjugated or negated view was made outside"));
}

/// All weights of a layer in one storage, as recurrent layers keep them, and the tensor over all of them that such a
/// layer makes on every call.
struct Flat {
  at::Tensor all = torch::rand({10});
  at::Tensor upper = all.slice(0, 6, 10), lower = all.slice(0, 2, 6);

  [[nodiscard]] at::Tensor buffer() const { return torch::empty({0}).set_(all.storage(), 0, {10}, {1}); }
};

TEST(Reseated, a_tensor_over_the_storage_of_named_state_is_a_view_across_it) {
  const Flat flat;
  const std::vector<NamedTensor> names{named("upper", flat.upper), named("lower", flat.lower)};
  const Trace trace = trace_of([&] { return std::vector{flat.buffer() * 2 + flat.upper.sum()}; }, {}, names);
  ASSERT_TRUE(whole(trace));
  EXPECT_EQ(trace.states.size(), 2);
  EXPECT_TRUE(shows(trace, "aten.as_strided(%lower, [10], [1], 0)"));
  EXPECT_TRUE(shows(trace, ": f32[10] alias %lower + -2"));
}

TEST(Reseated, a_tensor_over_an_intermediate_is_a_view_of_it) {
  const Trace trace = trace_of(
      [](const at::Tensor& x) {
        const at::Tensor y = x + 1;
        return torch::empty({0}).set_(y.storage(), 1, {2}, {1}) * y[0];
      },
      small());
  ASSERT_TRUE(whole(trace));
  EXPECT_TRUE(shows(trace, "aten.as_strided(%add, [2], [1], 1)"));
}

TEST(Reseated, a_tensor_that_holds_something_is_not_supported) {
  const Trace trace = trace_of([](const at::Tensor& x) { return (x + 1).set_(x.storage(), 0, {1}, {1}) * 2; }, small());
  EXPECT_TRUE(breaks(trace, BreakCode::unsupported_op, "aten::set_.source_Storage_storage_offset", "storage"));
}

TEST(InPlaceView, of_an_intermediate_is_a_view_of_it) {
  const Trace trace = trace_of(
      [](const at::Tensor& x) {
        at::Tensor y = torch::outer(x, x);
        y.transpose_(0, 1);
        return y.swapaxes_(0, 1).transpose_(0, 1) + x;
      },
      small());
  ASSERT_TRUE(whole(trace));
  EXPECT_TRUE(shows(trace, "= call aten.transpose.int(%")) << text_of(trace);
}

TEST(Breaks, resizing_is_not_supported) {
  const Trace trace = trace_of([](const at::Tensor& x) { return (x + 1).resize_({7}); }, small());
  EXPECT_TRUE(breaks(trace, BreakCode::unsupported_op, "aten::resize_", "storage"));
}

TEST(Breaks, a_break_leaves_the_results_alone) {
  std::vector<at::Tensor> outputs;
  const torch::NoGradGuard no_grad;
  const Trace trace = capture([&] { return std::vector<at::Tensor>{small().to_sparse().to_dense() * 2}; },
                              std::vector<at::Tensor>{small()}, {}, &outputs);
  ASSERT_TRUE(trace.graph_break);
  EXPECT_TRUE(torch::equal(outputs[0], small() * 2));
}

TEST(Breaks, an_input_with_a_history_is_named) {
  at::Tensor x = torch::ones({3}, at::requires_grad()) * 2;
  const auto program = [&] { return std::vector<at::Tensor>{(x * 2).detach()}; };
  const Trace trace = capture(program, std::vector<at::Tensor>{x}, {}, nullptr);
  EXPECT_TRUE(breaks(trace, BreakCode::needs_gradient, "aten::mul.Scalar", "input 0 is the result"));
  const torch::NoGradGuard no_grad;
  EXPECT_FALSE(capture(program, std::vector<at::Tensor>{x}, {}, nullptr).graph_break);
}

TEST(Gradients, a_gradient_that_was_assigned_is_an_output_after_the_results) {
  at::Tensor x = torch::ones({3}, at::requires_grad());
  const auto program = [&] {
    const at::Tensor loss = (x * x).sum();
    loss.backward();
    return std::vector<at::Tensor>{loss.detach()};
  };
  const Trace trace = capture(program, std::vector<at::Tensor>{x}, {}, nullptr);
  ASSERT_FALSE(trace.graph_break) << trace.graph_break->reason;
  ASSERT_EQ(trace.gradients.size(), 1u);
  EXPECT_EQ(trace.gradients[0].name, "input 0");
  EXPECT_FALSE(trace.gradients[0].defined);
  EXPECT_EQ(trace.gradients[0].after, GradientSlot::After::assigned);
  EXPECT_EQ(trace.gradients[0].output, 1u);
  EXPECT_EQ(trace.graph.outputs.size(), 2u);
}

TEST(Gradients, a_gradient_that_is_added_to_is_an_input_after_the_arguments) {
  at::Tensor weight = torch::ones({3}, at::requires_grad());
  weight.mutable_grad() = torch::ones({3});
  const auto program = [&] {
    weight.sum().backward();
    return std::vector<at::Tensor>{};
  };
  const std::vector<WeakTensor> leaves{weaken(weight)};
  const Trace trace = capture(program, std::vector<at::Tensor>{small()}, {}, nullptr, nullptr, leaves);
  ASSERT_FALSE(trace.graph_break) << trace.graph_break->reason;
  ASSERT_EQ(trace.gradients.size(), 1u);
  EXPECT_TRUE(trace.gradients[0].defined);
  EXPECT_TRUE(trace.gradients[0].read);
  EXPECT_EQ(trace.gradients[0].after, GradientSlot::After::kept);
}

TEST(Gradients, are_of_no_matter_where_none_are_taken) {
  at::Tensor weight = torch::ones({3}, at::requires_grad());
  weight.mutable_grad() = torch::ones({3});
  const torch::NoGradGuard no_grad;
  const auto program = [&] { return std::vector<at::Tensor>{weight * 2}; };
  EXPECT_TRUE(capture(program, std::vector<at::Tensor>{small()}, {}, nullptr).gradients.empty());
}

}  // namespace
}  // namespace capture_test
