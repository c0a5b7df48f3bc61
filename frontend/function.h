#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "frontend/builder.h"
#include "sinter/detail/function.h"

namespace sinter::detail {

/// The state that copies of a compiled object share: entries, and the schedule of captures. Thread-safe: calls look
/// entries up without a lock; one thread at a time captures and compiles, and others run eagerly meanwhile.
class Function {
 public:
  Function(Options options, std::vector<frontend::NamedModule> modules, std::string name);

  /// See detail::call.
  bool call(const Flat& arguments, const Program& program, Replay& replay);
  [[nodiscard]] Report report() const;

 private:
  using Entry = frontend::Entry;
  using Entries = std::vector<std::shared_ptr<Entry>>;

  /// Entries of one function; further combinations run eagerly.
  static constexpr size_t max_entries = 16;

  struct Found {
    std::shared_ptr<Entry> entry;
    frontend::Fit fit = frontend::Fit::none;
  };

  /// The first entry that fits in full, else the first that fits but for where its arguments lie.
  [[nodiscard]] static Found find(const Entries& entries, const Flat& arguments, const frontend::Modes& modes);
  [[nodiscard]] bool is_due(int64_t call) const;
  bool answer(const Found& found, const Flat& arguments, const frontend::Modes& modes, const Program& program,
              Replay& replay);
  [[nodiscard]] bool verify(const Found& found, int64_t call, const Flat& arguments, const frontend::Modes& modes,
                            const Program& program);
  bool miss(const Flat& arguments, const frontend::Modes& modes, const Program& program, Replay& replay);
  bool replay_or_run(Entry& entry, const Flat& arguments, const Program& program, Replay& replay);
  bool run_eagerly(Entry& entry, const Program& program) const;
  bool run_unsupported(const std::string& what, const Program& program);
  bool run_uncounted(const std::string& note, const Program& program);
  void note_failure();
  [[nodiscard]] bool is_full() const;
  void add(std::shared_ptr<Entry> entry);
  void refuse_break(const Entry& entry) const;

  const Options options_;
  const std::vector<frontend::NamedModule> modules_;
  const std::string name_;
  frontend::Builder builder_;  ///< used under `building_`

  std::atomic<std::shared_ptr<const Entries>> entries_;
  std::mutex building_;       ///< held by whoever captures, compiles or changes the list
  mutable std::mutex notes_;  ///< of what follows
  std::vector<EntryReport> retired_;
  std::vector<std::string> note_texts_;
  std::string failed_at_;
  std::vector<EntryReport> unsupported_;
};

}  // namespace sinter::detail
