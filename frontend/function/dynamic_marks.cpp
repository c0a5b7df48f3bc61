#include "frontend/function/dynamic_marks.h"

#include <ATen/core/Tensor.h>
#include <fmt/format.h>

#include <algorithm>

#include "compiler/support/errors.h"
#include "sinter/sinter.h"

namespace sinter {
namespace {

/// The marks of one tensor. LibTorch lets back ends keep data of their own with a tensor; strided tensors on the CPU
/// and on CUDA have none.
struct SizeMarks final : c10::BackendMeta {
  struct Mark {
    uint32_t dim = 0;
    int64_t min = 2;
    int64_t max = 0;
  };
  std::vector<Mark> marks;
};

const SizeMarks* marks_of(const at::Tensor& tensor) {
  return dynamic_cast<const SizeMarks*>(tensor.unsafeGetTensorImpl()->get_backend_meta());
}

}  // namespace

void mark_dynamic(const at::Tensor& tensor, int64_t dim, int64_t min, int64_t max) {
  if (!tensor.defined()) throw UserError("mark_dynamic: the tensor is undefined");
  const int64_t rank = tensor.dim();
  const int64_t position = dim < 0 ? dim + rank : dim;
  if (position < 0 || position >= rank) {
    throw UserError(fmt::format("mark_dynamic: dim {} of a tensor with {} dims; say 0 to {}", dim, rank, rank - 1));
  }
  min = std::max<int64_t>(min, 2);
  if (min >= max) throw UserError(fmt::format("mark_dynamic: the range [{}, {}] holds less than two sizes", min, max));
  const int64_t size = tensor.size(position);
  if (size < min || size > max) {
    throw UserError(fmt::format("mark_dynamic: size[{}] is {}, outside of [{}, {}]", position, size, min, max));
  }
  auto marks = c10::make_intrusive<SizeMarks>();
  if (const auto* known = marks_of(tensor)) marks->marks = known->marks;
  std::erase_if(marks->marks, [&](const auto& mark) { return mark.dim == position; });
  marks->marks.push_back({static_cast<uint32_t>(position), min, max});
  tensor.unsafeGetTensorImpl()->set_backend_meta(std::move(marks));
}

namespace frontend {

bool has_promises(const detail::Flat& arguments) {
  return std::ranges::any_of(arguments.tensors, [](const at::Tensor* tensor) { return marks_of(*tensor) != nullptr; });
}

void collect_promises(const detail::Flat& arguments, std::vector<SizePromise>& promises) {
  for (uint32_t i = 0; i < arguments.tensors.size(); ++i) {
    const at::Tensor& tensor = *arguments.tensors[i];
    const auto* marks = marks_of(tensor);
    if (marks == nullptr) continue;
    for (const auto& mark : marks->marks) {
      const SizePromise promise{i, mark.dim, tensor.dim(), mark.min, mark.max};
      const auto same = [&](const SizePromise& known) {
        return known.input == i && known.dim == mark.dim && known.rank == promise.rank;
      };
      std::erase_if(promises, same);
      promises.push_back(promise);
    }
  }
}

namespace {

/// Calls `visit(promise, size)` for the sizes of arguments that promises speak of.
template <class Visit>
void visit_promised(const std::vector<SizePromise>& promises, const detail::Flat& arguments, Visit&& visit) {
  for (const SizePromise& promise : promises) {
    if (promise.input >= arguments.tensors.size()) continue;
    const at::Tensor& tensor = *arguments.tensors[promise.input];
    if (tensor.dim() == promise.rank) visit(promise, tensor.size(promise.dim));
  }
}

}  // namespace

std::vector<int64_t> promised_sizes(const std::vector<SizePromise>& promises, const detail::Flat& arguments) {
  std::vector<int64_t> sizes;
  visit_promised(promises, arguments, [&](const SizePromise&, int64_t size) { sizes.push_back(size); });
  return sizes;
}

void check_promises(const std::vector<SizePromise>& promises, const detail::Flat& arguments,
                    const std::string& function) {
  visit_promised(promises, arguments, [&](const SizePromise& promise, int64_t size) {
    if (size >= promise.min && size <= promise.max) return;
    throw UserError(fmt::format("{}: size[{}] of input {} is {}, and mark_dynamic promised [{}, {}]", function,
                                promise.dim, promise.input, size, promise.min, promise.max));
  });
}

}  // namespace frontend
}  // namespace sinter
