#include <exception>

#include "frontend/replay/compiled_path.h"
#include "frontend/replay/dispatch_hook.h"
#include "frontend/replay/session.h"

/// How a device begins with the segment that is expected while the program calls its operators.
namespace sinter::frontend {

/// A step was matched, or several from `first` on.
void Session::go_to(PathNode& node, PathNode& first) {
  const bool begins = at_->depth == 0;
  at_ = &node;
  if (begins) expect_what_follows(first);
  if (node.depth > early_due_) start_early();
}

/// A device may begin with what is expected, where nothing asks what this call does.
void Session::expect_what_follows(PathNode& first) {
  first_ = &first;
  if (undo_ || log_) return;
  const auto path = first.expected.path();
  if (path == nullptr) return;
  early_ = std::make_unique<EarlyRun>(path);
  early_due_ = early_->due().value_or(nothing_early);
}

/// What cannot begin now, for want of memory, say, is for the end of the segment.
void Session::start_early() {
  early_due_ = nothing_early;
  if (!early_->path()->holds(*at_)) return;
  const c10::impl::ExcludeDispatchKeyGuard no_hook(kHookKeys);
  const SurroundingsGuard segment(*surroundings_, settings_matter_);
  try {
    early_->start(table_, at_->depth);
  } catch (const std::exception&) {
    return early_.reset();
  }
  early_due_ = early_->due().value_or(nothing_early);
}

/// Behind the first step of this segment; what was begun instead was in vain.
void Session::note_what_followed(const std::shared_ptr<CompiledPath>& path) {
  const bool as_expected = early_ != nullptr && early_->path() == path;
  if (early_ != nullptr || (path != nullptr && path->may_begin_early())) first_->expected.note(path);
  if (!as_expected) early_.reset();
  early_due_ = nothing_early;
}

}  // namespace sinter::frontend
