#pragma once

#include <ATen/core/Generator.h>

#include <cstdint>
#include <optional>

#include "frontend/trace/step.h"

namespace sinter::frontend {

/// Where the default generator of a CUDA device stands.
struct GeneratorPlace {
  uint64_t seed = 0, drawn = 0;

  [[nodiscard]] static GeneratorPlace of(c10::Device device);
  void set(c10::Device device) const;
  bool operator==(const GeneratorPlace&) const = default;
};

/// What the steps of a segment draw. Where they stand in the program the generator is moved on as they move it, so that
/// the host and later operators find it where eager leaves it; while their work is done it stands where the first of
/// them found it. Not thread-safe.
class DrawLog {
 public:
  /// False where a step would not draw on from where those before it have stopped: somebody has set the generator
  /// since, or it is another device's.
  [[nodiscard]] bool continues_with(const Step& step) const;
  /// Moves the generator on, where the step draws.
  void note(const Step& step);
  [[nodiscard]] bool empty() const { return !first_; }
  void clear() { first_.reset(); }
  /// Puts the generator where the first step found it, unless somebody has set it since: the program runs again.
  void take_back();

  /// While it lives the generator stands where the first step found it.
  class WhileItRuns {
   public:
    explicit WhileItRuns(const DrawLog& log);
    WhileItRuns(const WhileItRuns&) = delete;
    WhileItRuns& operator=(const WhileItRuns&) = delete;
    ~WhileItRuns();
    /// Puts it there again: what has begun to draw has failed, and begins again in another way.
    void begin_again() const;

   private:
    const DrawLog& log_;
    GeneratorPlace after_;
  };

 private:
  c10::Device device_{c10::kCUDA};
  std::optional<GeneratorPlace> first_;  ///< none where nothing was drawn
  GeneratorPlace next_;
};

/// The device whose default generator a call with these arguments draws from, where one that draws may be a step: an
/// operator whose draws follow from sizes alone, all of it on one CUDA device.
[[nodiscard]] std::optional<c10::Device> draws_in_step(const OpFacts& facts, c10::ArrayRef<c10::IValue> arguments);

}  // namespace sinter::frontend
