// From channels together to channels one after the other.
#pragma once

#include <cstdint>

namespace sluice::data {

// [area, channels] → [channels, area].
void split_planes(const std::uint8_t* in, std::int64_t area, std::int64_t channels, std::uint8_t* out);
void split_planes(const float* in, std::int64_t area, std::int64_t channels, float* out);

}  // namespace sluice::data
