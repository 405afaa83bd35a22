// Memory for the length of a call, kept by the thread for its next one. Internal to this room.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::kernels {

// A piece of the calling thread's scratch memory, 64-byte aligned, not initialised; pieces are given back in
// the reverse order. Large ones lie on huge pages where the system has them.
class Scratch {
 public:
  explicit Scratch(size_t bytes);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  void* data() const { return data_; }
  float* floats() const { return static_cast<float*>(data_); }
  std::byte* bytes() const { return static_cast<std::byte*>(data_); }

 private:
  void* data_;
  size_t depth_;
};

}  // namespace sluice::kernels
