// Memory for the duration of a call, kept by the thread for its next call. Internal to this room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace sluice::kernels {

// A piece of the calling thread's scratch memory, 64-byte aligned, not initialised; pieces are released in
// the reverse order. Large ones are on huge pages if the system has them.
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

// Several arrays of floats, one after the other in one piece of scratch memory. It is made from a table of
// the pointers to set, each with its array's floats, so that sizes and pointers cannot disagree.
class ScratchArrays {
 public:
  struct Array {
    float*& first;
    size_t floats;
  };
  ScratchArrays(std::initializer_list<Array> arrays) : memory_(bytes_of(arrays)) {
    float* next = memory_.floats();
    for (const auto& [first, floats] : arrays) {
      first = next;
      next += floats;
    }
  }

 private:
  static size_t bytes_of(std::initializer_list<Array> arrays) {
    size_t floats = 0;
    for (const Array& array : arrays) floats += array.floats;
    return floats * sizeof(float);
  }
  Scratch memory_;
};

}  // namespace sluice::kernels
