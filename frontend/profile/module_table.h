#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "frontend/torch/modules.h"

namespace sinter::frontend {

/// A module by its position in a table; none where negative.
using ModuleIndex = int64_t;
inline constexpr ModuleIndex no_module = -1;

/// Who owns a tensor.
struct TensorOwner {
  enum class Role : uint8_t { none, parameter, gradient, state };
  Role role = Role::none;
  ModuleIndex module = no_module;
};

/// The modules of a program as a tree, a module before its parts, and the tensors that they own. Not thread-safe.
class ModuleTable {
 public:
  struct Row {
    std::string path;        ///< "layer1.0.bn1"
    std::string class_name;  ///< with namespaces; empty where not known
    ModuleIndex parent = no_module;
    int64_t depth = 0;
  };

  ModuleTable() = default;
  explicit ModuleTable(const std::vector<NamedModule>& modules);

  [[nodiscard]] const std::vector<Row>& rows() const { return rows_; }
  /// The module of that path. Made, with those around it, where a model file names one that was not there.
  ModuleIndex intern(const std::string& path);

  /// The innermost module that both are or are parts of; none where there is none.
  [[nodiscard]] ModuleIndex common(ModuleIndex a, ModuleIndex b) const;
  [[nodiscard]] bool is_inside(ModuleIndex part, ModuleIndex whole) const { return common(part, whole) == whole; }

  /// Who owns a tensor: by itself, or by its memory where one owner alone has that.
  [[nodiscard]] TensorOwner owner_of(const at::Tensor& tensor) const;
  /// Notes an owner of memory until forget_memory, unless the memory has one. For gradients and states of optimizers.
  void give_memory(const at::Tensor& tensor, TensorOwner owner);
  /// Looks up gradients that parameters have now. Memory that is gone has no owner any more.
  void refresh_gradients();

  [[nodiscard]] const std::vector<NamedTensor>& tensors() const { return tensors_; }
  /// Memory of give_memory that is still there.
  void visit_given_memory(const std::function<void(const c10::StorageImpl&, const TensorOwner&)>& visit) const;

 private:
  using WeakStorage = c10::weak_intrusive_ptr<c10::StorageImpl>;
  struct Owned {
    WeakStorage storage;
    TensorOwner owner;
  };

  ModuleIndex add(const std::string& path, const std::string& class_name);

  std::vector<Row> rows_;
  std::unordered_map<std::string, ModuleIndex> by_path_;
  std::vector<NamedTensor> tensors_;
  std::unordered_map<const c10::TensorImpl*, TensorOwner> by_tensor_;
  std::unordered_map<const c10::StorageImpl*, TensorOwner> by_storage_;  ///< of parameters; shared by owners: none
  std::unordered_map<const c10::StorageImpl*, Owned> given_;
};

}  // namespace sinter::frontend
