// Decoders of audio files: bytes of a file → samples.
#pragma once

#include <cstdint>
#include <string_view>

#include "sluice/base/result.h"
#include "sluice/data/array.h"

namespace sluice::data {

struct Sound {
  Array samples;          // float32 [channels, frames], −1 … 1
  std::int64_t rate = 0;  // frames a second
};

// Decodes FLAC and WAV (by their first bytes) through libsndfile. A damaged or cut-off file is an error.
base::Result<Sound> decode_sound(std::string_view bytes);

}  // namespace sluice::data
