#pragma once

#include <string>

namespace sinter::frontend {

/// A pickle of protocol 2 with plain dicts where it asks for `collections.OrderedDict()`, for LibTorch's unpickler,
/// which would make None of those. The attributes of such a dict (`_metadata` of a module's state dict) are dropped;
/// its items keep their order. An OrderedDict that is built from an argument stays as it is.
///
/// Only whole opcodes are replaced, each by one of the same length, so that memo indices and all that they refer to
/// stay valid. Nothing is run. A stream that is cut off, or has an opcode that LibTorch's unpickler does not know,
/// comes back unchanged: the unpickler then says what is wrong. Source of the format: CPython, Lib/pickletools.py.
[[nodiscard]] std::string with_plain_dicts(std::string pickle);

}  // namespace sinter::frontend
