#include "frontend/host_log.h"

#include <string_view>
#include <utility>

#include "frontend/libtorch_version.h"

namespace sinter::frontend {
namespace {

/// The slot that carries the log.
constexpr std::string_view kLogSlotName = "sinter host log";
constexpr auto kLogSlot = debug_slot(kLogSlotName, 0x54);

HostLog* current() { return static_cast<HostLog*>(c10::ThreadLocalDebugInfo::get(kLogSlot)); }

}  // namespace

void HostLog::add(Entry entry) {
  const std::lock_guard lock(mutex_);
  entries_.push_back(std::move(entry));
}

bool HostLog::empty() const {
  const std::lock_guard lock(mutex_);
  return entries_.empty();
}

HostLog::Scope::Scope(std::shared_ptr<HostLog> log) {
  if (log->empty()) return;
  if (HostLog* outer = current()) log->outer_ = outer->shared_from_this();
  guard_.emplace(kLogSlot, std::move(log));
}

bool HostLog::answers() { return current() != nullptr; }

std::optional<HostLog::Entry> HostLog::take(const std::type_info& type) {
  for (HostLog* log = current(); log != nullptr; log = log->outer_.get()) {
    if (!log->empty()) return log->take_own(type);
  }
  return std::nullopt;
}

std::optional<HostLog::Entry> HostLog::take_own(const std::type_info& type) {
  const std::lock_guard lock(mutex_);
  if (entries_.empty()) return std::nullopt;
  Entry entry = std::move(entries_.front());
  entries_.pop_front();
  if (*entry.type == type) return entry;
  entries_.clear();
  return std::nullopt;
}

}  // namespace sinter::frontend
