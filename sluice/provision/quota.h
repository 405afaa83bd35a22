// Quotas of the Cloud TPU API: how many cores or chips of a generation the project may have in a place, and
// has.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sluice/provision/slices.h"

namespace sluice::provision {

// Whether a quota of the Cloud TPU API counts chips or cores of this generation, by its name
// ("TPUV6EPreemptiblePerProjectPerRegionForTPUAPI").
bool quota_is_for(const std::string& name, const estimate::TpuGeneration& generation, bool spot);

// All limits by region and zone; used: by `slices`, which are all that the project has, also what is
// PREEMPTED or only queued.
google::Outcome<std::vector<google::Quota>> tpu_quotas(Cloud& cloud, const std::vector<Slice>& slices);

// The refusal of a quota, which names its limit, with how much of it is in use.
google::Failure with_use(Cloud& cloud, const google::Failure& failure, const estimate::TpuSlice& type,
                         Capacity capacity);

// What one more wish counts there: its type's number, for each of its slices.
double quota_count(const estimate::TpuSlice& type, int slices);
// The quota that has no room for it in `zone`. Nothing where there is room, where no limit is known, and for
// reservations and flex-start, whose quotas have no names that are known here. A generation may have several
// limits in a place (of serving, of pods): one with room is enough, since Google alone knows which counts.
std::optional<google::Quota> lacking_quota(const std::vector<google::Quota>& quotas,
                                           const estimate::TpuSlice& type, Capacity capacity, int slices,
                                           const std::string& zone);

}  // namespace sluice::provision
