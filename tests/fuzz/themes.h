#pragma once

#include <cstdint>
#include <map>

#include "dice.h"
#include "program.h"

namespace sinter::test::fuzz {

/// What a program is about besides the operators that all are made of.
struct Themes {
  bool effects = false;   ///< of the host
  bool reads = false;     ///< on the host
  bool draws = false;     ///< random numbers
  bool changes = false;   ///< shapes
  bool scales = false;    ///< the scalar argument changes
  bool integers = false;  ///< of few bits, too
  bool complex = false;
  bool spatial = false;               ///< tensors with a batch, channels and one to three more dimensions
  bool is_long = false;               ///< tensors with more elements than one thread takes
  int threads = 1;                    ///< that the program sets, one of long tensors other ones
  std::map<Control, int64_t> wanted;  ///< how often rows with blocks are drawn

  /// The weight of all rows with blocks.
  [[nodiscard]] int64_t controls() const;
};

[[nodiscard]] Themes draw_themes(Dice& dice, bool effects);

}  // namespace sinter::test::fuzz
