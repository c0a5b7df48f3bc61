#include "draw_calls.h"

#include <array>
#include <cstdint>

#include "execute.h"

namespace sinter::test::fuzz {
namespace {

/// What may happen between two calls and make a difference to this program.
std::vector<Event> events(const Program& program, const Themes& themes, bool trusted) {
  std::vector<Event> list;
  if (!program.state.empty()) list = {Event::update_state, Event::replace_state};
  if (themes.effects) list.push_back(Event::toggle_flag);
  if (themes.effects && alike(program.state)) list.push_back(Event::swap_state);
  if (program.modules.empty()) return list;
  list.insert(list.end(), {Event::update_parameters, Event::write_data});
  if (trusted) return list;
  list.insert(list.end(), {Event::train, Event::eval, Event::replace_parameter, Event::replace_parameter});
  return list;
}

}  // namespace

std::vector<Call> draw_calls(Dice& dice, const Program& program, const Themes& themes, bool trusted) {
  std::vector<Call> calls;
  const int64_t count = themes.is_long ? 5 + dice.below(4) : themes.effects ? 8 + dice.below(5) : 18 + dice.below(9);
  const auto possible = events(program, themes, trusted);
  const bool eventful = !possible.empty() && dice.percent(65);
  const bool moves = dice.percent(12);
  const Place place = dice.among({Place::transposed, Place::offset, Place::strided});
  const bool differentiates = program.mode == Mode::grad && !program.keeps_inputs && dice.percent(50);
  const bool streams = dice.percent(8);
  for (int64_t i = 0; i < count; ++i) {
    Call next;
    if (eventful && i > 1 && dice.percent(35)) next.before = dice.among(possible);
    if (themes.changes && i > 0 && dice.percent(60)) {
      // Sizes that agree by 8: of those, some are computed from others without a recording.
      next.shape = {dice.among<int64_t>({0, 1, 8, 9, 16, 17, 24}), dice.among<int64_t>({0, 0, 1, 8})};
    }
    next.scale = themes.scales ? dice.among({1.0, 1.5}) : 1.5;
    if (moves && dice.percent(50)) next.place = place;
    next.gradient = differentiates && i > 2 && dice.percent(50);
    next.other_stream = streams && dice.percent(50);
    calls.push_back(next);
  }
  return calls;
}

}  // namespace sinter::test::fuzz
