#pragma once

#include "bench/compare/costs.h"
#include "bench/compare/results.h"

namespace sinter::bench {

/// One row of a case with what is said relative to the case's eager.
struct Contender {
  std::string name;    ///< "sinter default", "torch.compile reduce-overhead"
  size_t results = 0;  ///< index into Comparison::results
  Row row;
  double speedup = 0;  ///< the case's eager_ms / the row's steady_ms
};

/// One model on one kind of device with one dtype and shape, and all who measured it.
struct Case {
  std::string model;
  std::string device;  ///< kind: "cpu", "cuda"
  std::string dtype;
  std::string shape;
  double eager_ms = 0;  ///< LibTorch from C++: the mean over Sinter's own rows
  std::vector<Contender> contenders;
};

/// Results side by side.
struct Comparison {
  std::vector<Results> results;       ///< Sinter's own first
  std::vector<Case> cases;            ///< in the order of Sinter's own rows
  std::vector<Contender> unmatched;   ///< rows of peers for cases that Sinter did not measure; speedup 0
  std::vector<std::string> warnings;  ///< why numbers may not be comparable, one sentence each
};

/// Joins rows that agree in model, kind of device, dtype and shape. Throws UserError when no result is Sinter's own.
[[nodiscard]] Comparison join(std::vector<Results> results);

/// True where the eager beside a row took more than 15 % longer or shorter than the case's.
[[nodiscard]] bool eager_differs(const Case& one, const Row& row);

/// The table as text: a block for each case, then warnings and rows without a partner.
[[nodiscard]] std::string to_text(const Comparison& comparison);

/// The document that `sinter bench --json` writes; parse_results reads it back.
[[nodiscard]] Json to_json(const Comparison& comparison);

}  // namespace sinter::bench
