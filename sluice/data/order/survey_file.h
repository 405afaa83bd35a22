// What a survey found out, kept in the folder of the cache, so that a set is read once for it and not at
// every start by every process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::data {

// The samples of one shard that are taken: their numbers, and their lengths if these are needed.
struct SurveyedShard {
  std::vector<std::uint32_t> taken;
  std::vector<std::int32_t> lengths;
};

// Returns the path of the file in the folder for a survey with this identity: a text that is another one if
// any content of the set, any filter or the way of measuring is another one.
std::string survey_path(const std::string& folder, const std::string& identity);

// Reads what was kept for `shards` shards. Nothing if there is no such file, or it is damaged, or somebody
// else could have written it.
std::optional<std::vector<SurveyedShard>> read_survey(const std::string& path, std::size_t shards);

// Keeps it: complete or not at all, readable by this user only. Makes the folder if it is missing.
base::Status write_survey(const std::string& path, const std::vector<SurveyedShard>& shards);

}  // namespace sluice::data
