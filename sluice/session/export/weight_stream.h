// Weights to be written elsewhere: what they are, and their bytes. Internal to this room.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/session/files/safetensors_header.h"
#include "sluice/session/files/tensor_file.h"
#include "sluice/session/stored/stored_stream.h"

namespace sluice::sessions {

// Returns the bytes of a tensor.
uint64_t bytes_of(const SafetensorsEntry& tensor);

// Threads: one at a time.
class WeightStream {
 public:
  // Reads the headers of what StoredReader::list() takes. What Python's torch.save wrote is read whole.
  static base::Result<WeightStream> open(const std::string& from);

  // The tensors in the order of their places in the files.
  const std::vector<SafetensorsEntry>& tensors() const { return tensors_; }
  // Passes the bytes of tensors on, given by their places in tensors(), one tensor after the other.
  base::Status pass(const std::vector<size_t>& which, const TakeBytes& take);

  // The folder that the weights are in, if `from` is not a file: of this machine, or a URL; else "".
  const std::string& folder() const { return folder_; }
  // Returns a file of that folder; nothing if it has no such file.
  base::Result<std::optional<std::string>> read_beside(const std::string& name) const;

 private:
  std::vector<SafetensorsEntry> tensors_;
  std::string folder_;
  std::unique_ptr<StoredReader> reader_;  // null: values_ has the tensors
  StoredTensors stored_;
  NamedTensors values_;
};

}  // namespace sluice::sessions
