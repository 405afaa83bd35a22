// The download of checkpoints and weights from a bucket or a web server. The layout in a bucket is the same
// as in a run's log folder: the small objects RUN/last and RUN/best name a checkpoint's folder next to them.
#pragma once

#include <string>

#include "sluice/base/result.h"

namespace sluice::sessions {

// Downloads the files of a checkpoint to a local folder. `url`: a run's folder (its last checkpoint), the
// run's last or best, or a checkpoint's own folder.
base::Status fetch_checkpoint(const std::string& url, const std::string& folder);
// Downloads the file of weights that `url` leads to into a local folder; returns its path there: of weights
// in pieces (pieces/piece_index.h), the path of the index, which ends in .json, in the folder of its files.
// `url`: gs://… of a file or of a checkpoint, as above, or http(s)://… of a file.
base::Result<std::string> fetch_weights(const std::string& url, const std::string& folder);

// Returns the URL of the object with the weights that `url` leads to: gs://… of a file or of a checkpoint.
base::Result<std::string> weights_object(const std::string& url);

// Returns the URL of the checkpoint's own folder that `url` leads to, as fetch_checkpoint() takes it.
base::Result<std::string> checkpoint_folder(const std::string& url);

// The functions that read the layout. object_text: the text of a small object, trimmed; "" if it does not
// exist.
base::Result<std::string> object_text(const std::string& url);
base::Result<bool> object_exists(const std::string& url);
std::string without_slash(std::string url);  // at its end

}  // namespace sluice::sessions
