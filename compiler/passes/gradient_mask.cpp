#include "compiler/passes/gradient_mask.h"

namespace sinter::passes {

std::optional<Gradients> gradients_of(const CallSite& site, const ir::Arg& mask, size_t entries) {
  const ir::ArgList* flags = mask.list();
  if (flags == nullptr || flags->size() != entries) return std::nullopt;
  Gradients gradients;
  size_t results = 0;
  for (size_t i = 0; i < entries; ++i) {
    const auto* wanted = std::get_if<bool>(&(*flags)[i].data);
    if (wanted == nullptr) return std::nullopt;
    if (*wanted) gradients[i] = results++;
  }
  return results == site.results.size() ? std::optional(gradients) : std::nullopt;
}

bool is_used(const CallSite& site, const std::optional<size_t>& gradient) {
  return gradient && site.results[*gradient].used;
}

}  // namespace sinter::passes
