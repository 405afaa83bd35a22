// Reads weights from a file, a checkpoint, a bucket or a web server.
#pragma once

#include <string>

#include "sluice/base/result.h"
#include "sluice/session/files/tensor_file.h"

namespace sluice::sessions {

// `from`: a file that read_tensors reads; a checkpoint's folder; a folder of transformers (model.safetensors,
// or the files that model.safetensors.index.json names); gs://… of a file, of a checkpoint or of a run's log
// folder; or http(s)://… of a file. Remote files are downloaded to a temporary file first. Errors name
// `from`.
base::Result<NamedTensors> read_weights(const std::string& from);

// Returns the error for a folder without weights; for a run's log folder it names the folders to use instead.
tl::unexpected<Error> no_weights(const std::string& folder);

}  // namespace sluice::sessions
