#pragma once

namespace sinter::frontend {

/// From here on backward passes that are started while a session is the thread's come to it first. All others go to the
/// engine that was LibTorch's before, as do the passes themselves. Thread-safe.
void install_backward_hook();

}  // namespace sinter::frontend
