// Checkpoints and weights that lie in a bucket or on a web server, brought here. The layout in a bucket is
// that of a run's log folder: the small objects RUN/last and RUN/best name a checkpoint's own folder beside
// them.
#pragma once

#include <string>

#include "sluice/base/result.h"

namespace sluice::sessions {

// The files of a checkpoint into a local folder. `url`: a run's folder (its last checkpoint), its last or
// best, or a checkpoint's own folder.
base::Status fetch_checkpoint(const std::string& url, const std::string& folder);
// The file of weights that `url` leads to into a local folder; returns its path there. `url`: gs://… of a
// file or of a checkpoint, as above, or http(s)://… of a file.
base::Result<std::string> fetch_weights(const std::string& url, const std::string& folder);

// What the layout is read by. A small object's text without the white space around it; "" when there is none.
base::Result<std::string> object_text(const std::string& url);
base::Result<bool> object_exists(const std::string& url);
std::string without_slash(std::string url);  // at its end

}  // namespace sluice::sessions
