// The bytes of whole tensors of files, one part after the other, for a program that only passes them on.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/session/stored/stored_tensors.h"

namespace sluice::sessions {

// Takes the next bytes, which are valid during the call. After an error it is not called again.
using TakeBytes = std::function<base::Status(std::string_view bytes)>;

struct StreamedTensor {
  std::string name;  // for errors
  const StoredTensor* tensor = nullptr;
};

// Passes the bytes of the tensors on: the first tensor's elements in row-major order, then the elements of
// the next tensor. The host holds about `held` bytes of values at a time, or one row of the first dimension
// if a row has more. Small neighbours are read together. Compares all checksums that an index has; kDataLoss
// names the tensor, the file and the place in it for bytes that are not as they were written, which may have
// been passed on.
base::Status stream_tensors(StoredReader& reader, const std::vector<StreamedTensor>& tensors, uint64_t held,
                            const TakeBytes& take);

}  // namespace sluice::sessions
