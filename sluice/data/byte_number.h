// Whole numbers in the bytes of a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sluice::data {

// Returns the unsigned number in the `size` bytes (at most 8) that begin at `at`; `big`: the highest byte
// comes first. The caller has checked that these bytes exist.
inline std::uint64_t number_at(std::string_view bytes, std::size_t at, std::size_t size, bool big) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i)
    value = value << 8 | static_cast<unsigned char>(bytes[big ? at + i : at + size - 1 - i]);
  return value;
}

}  // namespace sluice::data
