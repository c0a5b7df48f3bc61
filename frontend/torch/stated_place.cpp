#include "frontend/torch/stated_place.h"

#include "frontend/torch/script_place.h"

namespace sinter::frontend {
namespace {

thread_local const StatedPlace* guarded = nullptr;

}  // namespace

PlaceGuard::PlaceGuard(const StatedPlace& place) : before_(guarded) { guarded = &place; }
PlaceGuard::~PlaceGuard() { guarded = before_; }

std::optional<StatedPlace> stated_place() {
  if (guarded != nullptr) return *guarded;
  return script_place();
}

}  // namespace sinter::frontend
