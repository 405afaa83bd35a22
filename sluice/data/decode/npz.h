// NumPy's .npz files: zip archives of .npy files.
#pragma once

#include <string_view>

#include "sluice/base/result.h"
#include "sluice/data/batch.h"

namespace sluice::data {

// Reads members, stored or deflated, each with its CRC-32 verified, under their names without ".npy".
// Encrypted and ZIP64 archives are refused; errors name the member.
base::Result<Arrays> parse_npz(std::string_view bytes);

}  // namespace sluice::data
