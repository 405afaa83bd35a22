// What a survey found out, kept in a folder, so that a set is read once for it and not at every start by
// every process.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sluice/base/files/folder_lock.h"
#include "sluice/base/result.h"

namespace sluice::data {

// The samples of one shard that are taken: their numbers, and their lengths if these are needed.
struct SurveyedShard {
  std::vector<std::uint32_t> taken;
  std::vector<std::int32_t> lengths;
};

// Returns $XDG_CACHE_HOME/sluice/surveys, or ~/.cache/sluice/surveys: the place without a cache folder; "" if
// neither variable is set.
std::string usual_survey_folder();
// Removes the surveys in the folder that were used longest ago, until the others have at most `most` bytes.
void forget_old_surveys(const std::string& folder, std::uint64_t most);

// Returns the path of the file in the folder for a survey with this identity: a text that is another one if
// any content of the set, any filter or the way of measuring is another one.
std::string survey_path(const std::string& folder, const std::string& identity);

// Reads what was kept for `shards` shards. Nothing if there is no such file, or it is damaged, or somebody
// else could have written it. The file then counts as used now.
std::optional<std::vector<SurveyedShard>> read_survey(const std::string& path, std::size_t shards);

// The right to make a survey: one process of this machine at a time. The others wait, and find it made.
class SurveyClaim {
 public:
  // Waits, but not once `cancelled`. Where no lock can be had, everyone gets a turn.
  static base::Result<SurveyClaim> wait(const std::string& path, const std::atomic<bool>* cancelled);
  SurveyClaim(SurveyClaim&& other) noexcept
      : folder_(std::move(other.folder_)), lock_(std::exchange(other.lock_, std::nullopt)) {}
  SurveyClaim& operator=(SurveyClaim&&) = delete;
  ~SurveyClaim();

 private:
  explicit SurveyClaim(std::string folder) : folder_(std::move(folder)) {}
  std::string folder_;
  std::optional<base::FolderLock> lock_;
};

// Keeps it: complete or not at all, readable by this user only. Makes the folder if it is missing.
base::Status write_survey(const std::string& path, const std::vector<SurveyedShard>& shards);

}  // namespace sluice::data
