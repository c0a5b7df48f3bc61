#pragma once

#include "compiler/ir/text_cursor.h"
#include "compiler/ir/type.h"

namespace sinter::ir {

/// Readers of the parts of the text form that hold no values.
[[nodiscard]] DType read_dtype(TextCursor& cursor);
[[nodiscard]] Device read_device(TextCursor& cursor);
/// `f16[8,768]{1,8}@cpu`; without "@" the tensor is on `home`.
[[nodiscard]] Type read_type(TextCursor& cursor, Device home);

}  // namespace sinter::ir
