#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <atomic>
#include <optional>
#include <vector>

#include "compiler/support/errors.h"
#include "frontend/torch/modes.h"
#include "frontend/torch/op_facts.h"
#include "frontend/trace/path_tree.h"
#include "frontend/trace/refused_data.h"
#include "frontend/trace/tensor_table.h"

namespace sinter::frontend {

/// What is known of every call of an operator.
struct OpTraits {
  explicit OpTraits(OpFacts known);

  OpFacts facts;
  AboveKernel above = AboveKernel::unknown;
  /// A composite operator of LibTorch whose kernel does nothing but call others, and which gives tensors. Numbers may
  /// be those of the tensor object: its version, whether it is a leaf.
  bool opens = false;
  SettingConcerns concerns{};                    ///< of the settings of LibTorch that may decide what it computes
  bool chooses_by_concerns = false;              ///< composite: what it calls follows from settings of its steps alone
  bool copies = false;                           ///< brings a tensor to another device or dtype
  bool resizes = false;                          ///< or puts other memory under a tensor
  bool makes_alike = false;                      ///< a tensor like its argument, whose data it does not read
  bool changes_reading = false;                  ///< gives what is read conjugated or negated
  bool fills = false;                            ///< writes one number everywhere
  bool refuses_on_cpu = false, refuses = false;  ///< some data, by its name
  bool refuses_divisors = false;                 ///< integers, on the CPU
  const DataRule* data_rule = nullptr;           ///< of all that it refuses, and that only on the CPU
  std::atomic<bool> excluded{false};             ///< gave what no segment can give
  mutable std::atomic<bool> break_known{false};  ///< break_of was asked, and its answer noted
};

/// The settings that decide what a call computes whose operator has these concerns: those about the devices of its
/// tensors, about all devices where it has none.
[[nodiscard]] SettingSet settings_of(SettingConcerns concerns, c10::ArrayRef<c10::IValue> arguments);

/// When the work of an operator is done.
enum class Way : uint8_t {
  transparent,  ///< at once: it looks at no data and makes none that others wait for
  now,          ///< at once, after everything that it reads or writes
  later,        ///< as a step of a segment
};

/// What becomes of a call. The same for two runs of a program that do the same: it depends on the operator, and on what
/// the table and the tensors' metadata say of the arguments.
[[nodiscard]] Way way_of(const OpTraits& traits, c10::ArrayRef<c10::IValue> arguments, const TensorTable& table);

/// True for a call that gives views of memory which no step makes or writes.
[[nodiscard]] bool views_what_is_there(const OpTraits& traits, c10::ArrayRef<c10::IValue> arguments,
                                       const TensorTable& table);

/// True for a call that throws where it refuses some of its data.
[[nodiscard]] bool may_refuse(const OpTraits& traits, c10::ArrayRef<c10::IValue> arguments);

/// Why a call that is made at once can be part of no segment, whatever its data are; nothing where only its data
/// decide, or the host reads them.
[[nodiscard]] std::optional<GraphBreak> break_of(const OpTraits& traits, c10::ArrayRef<c10::IValue> arguments);

/// True where a call puts a number into a few elements on the CPU that no step behind which `at` stands gives, reads or
/// writes: the host fills memory of its own, as torch::tensor({a, b, c}) does. Nothing waits for it.
[[nodiscard]] bool fills_what_nobody_reads(const OpTraits& traits, c10::ArrayRef<c10::IValue> arguments,
                                           const TensorTable& table, const PathNode* at);

/// True where a call that is made now must wait for the segment: it reads what the segment gives, or writes what it
/// reads.
[[nodiscard]] bool waits_for(const TensorTable& table, const OpFacts& facts, c10::ArrayRef<c10::IValue> arguments);

}  // namespace sinter::frontend
