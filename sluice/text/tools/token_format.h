// Constants of Megatron-LM's index files.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::text {

inline constexpr char kIndexMagic[9] = {'M', 'M', 'I', 'D', 'I', 'D', 'X', '\0', '\0'};
inline constexpr std::uint64_t kIndexVersion = 1;
inline constexpr std::uint8_t kUint16 = 8, kInt32 = 4;
inline constexpr std::size_t kIndexHeader = sizeof kIndexMagic + 8 + 1 + 8 + 8;

}  // namespace sluice::text
