#pragma once

#include <c10/core/StorageImpl.h>

#include <cstdint>
#include <optional>

namespace sinter::frontend {

/// Memory that is not there yet, which carries the number of what it will be in one run of a segment.
[[nodiscard]] c10::DataPtr missing_memory(c10::Device device, uint32_t number);

/// The number of missing memory; none for memory that is there. A storage may outlive the run that its number belongs
/// to: compare addresses.
[[nodiscard]] std::optional<uint32_t> number_of_missing(const c10::StorageImpl& storage);

}  // namespace sinter::frontend
