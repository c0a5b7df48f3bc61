#include "themes.h"

#include <algorithm>
#include <numeric>

namespace sinter::test::fuzz {

int64_t Themes::controls() const {
  return std::accumulate(wanted.begin(), wanted.end(), int64_t{0},
                         [](int64_t sum, const auto& control) { return sum + control.second; });
}

Themes draw_themes(Dice& dice, bool effects) {
  Themes themes;
  themes.effects = effects;
  themes.reads = dice.percent(12);
  themes.draws = dice.percent(12);
  themes.changes = dice.percent(20);
  themes.scales = dice.percent(12);
  themes.integers = dice.percent(12);
  themes.complex = dice.percent(7);
  themes.spatial = dice.percent(14);
  themes.is_long = !themes.spatial && dice.percent(2);
  themes.wanted[Control::branch] = themes.reads ? 3 : 0;
  themes.wanted[Control::until] = themes.reads ? 1 : 0;
  themes.wanted[Control::loop] = dice.percent(8) ? 3 : 0;
  themes.wanted[Control::autocast] = dice.percent(8) ? 4 : 0;
  themes.wanted[Control::side_stream] = dice.percent(4) ? 3 : 0;
  if (themes.effects) {
    themes.wanted[Control::every] = themes.wanted[Control::flagged] = themes.wanted[Control::turns] = 2;
    themes.wanted[Control::coin] = themes.wanted[Control::grad_mode] = 1;
    themes.wanted[Control::branch] = std::max<int64_t>(themes.wanted[Control::branch], 1);
  }
  if (!themes.is_long) return themes;
  themes.threads = dice.among({2, 3});
  // Sizes that follow from the branch that was taken would broadcast to gigabytes.
  for (const Control control : {Control::branch, Control::every, Control::flagged, Control::turns, Control::coin}) {
    themes.wanted[control] = 0;
  }
  return themes;
}

}  // namespace sinter::test::fuzz
