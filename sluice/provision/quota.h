// Quotas of the Cloud TPU API: how many cores or chips of a generation the project may have in a place, and
// how many it has.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sluice/provision/slices.h"

namespace sluice::provision {

// Returns whether a quota of the Cloud TPU API counts chips or cores of this generation, by the quota's name
// ("TPUV6EPreemptiblePerProjectPerRegionForTPUAPI").
bool quota_is_for(const std::string& name, const estimate::TpuGeneration& generation, bool spot);

// Returns all limits by region and zone. Usage is counted from `slices`: all of the project's, including
// slices that are PREEMPTED or only queued.
google::Outcome<std::vector<google::Quota>> tpu_quotas(Cloud& cloud, const std::vector<Slice>& slices);

// Extends a quota's refusal, which names the limit, by how much of it is in use.
google::Failure with_use(Cloud& cloud, const google::Failure& failure, const estimate::TpuSlice& type,
                         Capacity capacity);

// Returns how much one more wish counts: its type's number, for each of its slices.
double quota_count(const estimate::TpuSlice& type, int slices);
// Returns the quota that has no room for the wish in `zone`. Nothing if there is room, if no limit is known,
// and for reservations and flex-start, whose quotas' names are not known here. A generation may have several
// limits in a place (for serving, for pods): one with room is enough, since only Google knows which one
// applies.
std::optional<google::Quota> lacking_quota(const std::vector<google::Quota>& quotas,
                                           const estimate::TpuSlice& type, Capacity capacity, int slices,
                                           const std::string& zone);

}  // namespace sluice::provision
