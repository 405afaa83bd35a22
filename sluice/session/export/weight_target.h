// The places that weights are written to: a file, an object, a folder, the objects of a folder in a bucket.
// Internal to this room.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "sluice/base/result.h"
#include "sluice/session/stored/stored_stream.h"

namespace sluice::sessions {

// Passes the bytes of a file on. It may be called again, if a server has forgotten an upload.
using PassBytes = std::function<base::Status(const TakeBytes& take)>;

// Writes a file or an object, which appears whole or not at all. `bytes`: about its size.
base::Status write_whole(const std::string& to, uint64_t bytes, const PassBytes& pass);

// The files of a folder that is written. Unless finish() succeeds, none of them remain.
class WeightFolder {
 public:
  virtual ~WeightFolder() = default;
  WeightFolder(const WeightFolder&) = delete;
  WeightFolder& operator=(const WeightFolder&) = delete;

  // `folder` is of this machine or in a bucket. kAlreadyExists if it has weights, with the name of one file.
  static base::Result<std::unique_ptr<WeightFolder>> open(const std::string& folder);

  // Returns whether the folder had a file of this name before.
  virtual base::Result<bool> has(const std::string& name) const = 0;
  virtual base::Status write(const std::string& name, uint64_t bytes, const PassBytes& pass) = 0;
  // Puts the files in their places in the order in which they were written.
  virtual base::Status finish() = 0;

 protected:
  WeightFolder() = default;
};

}  // namespace sluice::sessions
