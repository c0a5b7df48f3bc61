#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <iterator>
#include <string>
#include <utility>

namespace sinter::codegen {

/// Lines of a function's body, indented as deep as the blocks they stand in.
class CudaLines {
 protected:
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    out_.append(indent_, ' ');
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
    out_ += '\n';
  }
  template <class... Args>
  void open(fmt::format_string<Args...> format, Args&&... args) {
    line(format, std::forward<Args>(args)...);
    indent_ += 2;
  }
  void close() {
    indent_ -= 2;
    line("}}");
  }
  [[nodiscard]] const std::string& lines() const { return out_; }

 private:
  std::string out_;
  size_t indent_ = 2;
};

}  // namespace sinter::codegen
