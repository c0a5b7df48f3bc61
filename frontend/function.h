#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <variant>
#include <vector>

#include "frontend/builder.h"
#include "frontend/counters.h"
#include "frontend/shape_family.h"
#include "sinter/detail/function.h"
#include "sinter/events.h"

namespace sinter::detail {

/// One call on its way through a function.
struct Call {
  const Flat& arguments;
  const Program& program;
  Replay& replay;
  frontend::Modes modes;
  std::vector<Event> events;  ///< to be told once the call holds no lock any more
};

/// How a call was answered.
enum class Ran : uint8_t {
  replay,     ///< by a plan
  recording,  ///< by the callable, recorded
  callable,   ///< by the callable as it is
};

/// Entries, and the schedule of captures: what a function has learnt since it was made or reset. Thread-safe: calls
/// look entries up without a lock; one thread at a time captures and compiles, and others run eagerly meanwhile.
class Function {
 public:
  Function(const Options& options, const std::vector<frontend::NamedModule>& modules, const std::string& name);

  /// See detail::call.
  bool call(const Flat& arguments, const Program& program, Replay& replay);
  [[nodiscard]] Report report() const;
  [[nodiscard]] Stats stats() const { return counters_.read(); }

 private:
  using Entry = frontend::Entry;
  using Entries = std::vector<std::shared_ptr<Entry>>;

  /// Entries of one function; further combinations run eagerly.
  static constexpr size_t max_entries = 16;
  /// Shapes that are kept beside them: at most so many, and with so many buffers in their plans together. Recorded
  /// graphs hold memory of the device, so that there are fewer. The shape whose last call is longest ago makes room.
  static constexpr size_t max_instances = 1024;
  static constexpr size_t max_recorded_instances = 16;
  static constexpr size_t max_instance_buffers = 65536;

  struct Found {
    std::shared_ptr<Entry> entry;
    frontend::Fit fit = frontend::Fit::none;
  };

  /// The first entry that fits in full, else the first that fits but for where its arguments lie.
  [[nodiscard]] static Found find(const Entries& entries, const Flat& arguments, const frontend::Modes& modes);
  [[nodiscard]] bool is_due(int64_t call) const;
  Ran run(Call& call);
  Ran answer(const Found& found, Call& call);
  /// True when the call was captured again and compared.
  [[nodiscard]] bool verify(const Found& found, int64_t number, Call& call);
  Ran miss(Call& call);
  /// The second call of a function whose first one kept a tensor that it made, as one that fills a cache does.
  Ran record_again(const std::shared_ptr<Entry>& first, Call& call);
  /// Runs the program to record it, and makes an entry of it. Under `building_`.
  Ran record(Call& call, bool second_try);
  Ran follow(Entry& entry, int64_t number, Call& call);
  [[nodiscard]] bool extend(Entry& entry, int64_t number, Call& call);
  void keep_failure(Entry& entry, const InternalError& error, Call& call);
  Ran replay_or_run(const std::shared_ptr<Entry>& entry, Call& call);
  Ran run_eagerly(Entry& entry, Call& call) const;
  Ran run_unsupported(const std::string& what, Call& call);
  void retire(const Entry& entry, const std::string& note);
  /// True for one that is new.
  bool add_note(const std::string& note);
  static Ran run_callable(const Call& call);
  /// Calls `work`, and notes where the builder failed when it throws.
  template <class Work>
  auto noting_failure(Work&& work);
  [[nodiscard]] bool is_full() const;
  void add(std::shared_ptr<Entry> entry);
  void publish(std::shared_ptr<const Entries> entries);

  // What Options::on_event is told of; kept with the call until its locks are released.
  void note_event(Call& call, std::string signature, std::variant<GraphBreak, Recompilation, LimitReached> what);
  void note_break(Call& call, const Entry& entry);
  void note_recompilation(Call& call, const Entry& entry, std::vector<GuardMiss> because);
  void tell(const std::vector<Event>& events);

  // Calls that differ from others in sizes only (function_shapes.cpp); used under `building_`.
  [[nodiscard]] std::shared_ptr<Entry> instantiate(const Call& call);
  /// Entries that replay and fit the call but for sizes; none where sizes stay static.
  [[nodiscard]] Entries alike(const Flat& arguments, const frontend::Modes& modes) const;
  [[nodiscard]] std::shared_ptr<frontend::ShapeFamily> join(const Entries& alike, const frontend::Captured& captured,
                                                            const Flat& arguments);
  void settle(const std::shared_ptr<Entry>& entry, const std::shared_ptr<frontend::ShapeFamily>& family);
  void after_verification(const Entry& entry, const Flat& arguments);
  void drop_instances(const Entry* head, bool with_head);
  void specialise(const std::string& reason);
  /// The same from outside of `building_`, unless another thread builds: then a later failure will.
  void specialise_if_idle(const std::string& reason);
  void make_room();
  [[nodiscard]] bool has_room(const Entries& entries) const;
  void refuse_break(const Entry& entry) const;
  void refuse(const GraphBreak& reason) const;

  const Options options_;
  const std::vector<frontend::NamedModule> modules_;
  const std::string name_;
  frontend::Counters counters_;
  frontend::Builder builder_;  ///< used under `building_`

  std::vector<std::shared_ptr<frontend::ShapeFamily>> families_;  ///< under `building_`
  std::vector<frontend::SizePromise> promises_;                   ///< of sinter::mark_dynamic
  std::string specialised_;  ///< why sizes stay static: a number that follows from no size; or empty

  std::atomic<std::shared_ptr<const Entries>> entries_;
  std::mutex building_;       ///< held by whoever captures, compiles or changes the list
  mutable std::mutex notes_;  ///< of what follows
  std::vector<EntryReport> retired_;
  std::vector<std::string> note_texts_;
  bool callback_threw_ = false;
  std::string failed_at_;
  std::vector<EntryReport> unsupported_;
};

}  // namespace sinter::detail
