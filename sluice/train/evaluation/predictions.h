// A model's predictions for each sample of a set, as JSON lines or shards.
#pragma once

#include <cstdint>
#include <string>

#include "sluice/base/result.h"
#include "sluice/session/session.h"
#include "sluice/train/steps.h"

namespace sluice::train {

// Writes each sample of the feed on this process's replicas, replica after replica in each batch. In a JSON
// line, {"key": …, NAME: value, …}, a value is a number or nested lists, "nan", "inf" or "-inf". `path` and
// `shard_size` as for Trainer::predict; `autocast` as for evaluate(). Returns the number of samples.
base::Result<int64_t> write_predictions(Session& session, const Steps& steps, Feed feed, bool autocast,
                                        const std::string& path, int64_t shard_size);

}  // namespace sluice::train
