#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <optional>

/// What programs switch on for the length of a scope.
namespace sinter::test::fuzz {

/// Autocast on one device.
class Autocast {
 public:
  Autocast(at::DeviceType device, at::ScalarType dtype);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  at::DeviceType device_;
  bool was_;
  at::ScalarType dtype_;
};

/// A stream of LibTorch's pool is the current one of a GPU. It waits for the one before, which waits for it at the end.
/// Nothing happens on the CPU.
class OtherStream {
 public:
  explicit OtherStream(at::Device device);
  ~OtherStream();
  OtherStream(const OtherStream&) = delete;
  OtherStream& operator=(const OtherStream&) = delete;

 private:
  at::Device device_;
  std::optional<c10::Stream> outer_, inner_;
};

/// How many threads LibTorch's pool has.
class Threads {
 public:
  explicit Threads(int count);
  ~Threads();
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

}  // namespace sinter::test::fuzz
