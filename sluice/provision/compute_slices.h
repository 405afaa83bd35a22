// TPU slices that Compute Engine creates (tpu7x and later): a managed instance group with a workload policy
// that gives its machines one topology. Policy, template and group are called sluice-NAME and carry the mark
// in `description`.
#pragma once

#include "sluice/provision/slices.h"

namespace sluice::provision {

// Returns whether a slice of this type is such a group: the Cloud TPU API does not have it.
bool is_compute_type(const estimate::TpuSlice& type);
// Tries the wish's zones like create_slice. wish.runtime is required: it names the image of the machines.
google::Outcome<Slice> create_compute_slice(Cloud& cloud, const SliceWish& wish,
                                            const estimate::TpuSlice& type);
// Returns whether a machine of Compute Engine in this state has stopped, or does so now.
bool has_stopped(const std::string& status);
// Returns whether a group with this base name of its machines has made the machine: Compute Engine appends a
// hyphen and four letters or digits. The machines of the group "a-1" are not the group "a"'s.
bool is_machine_of(const std::string& machine, const std::string& base_name);
// Lists all groups that have a workload policy; ours come with their machines. The list is empty if the
// project has no Compute Engine.
google::Outcome<std::vector<Slice>> compute_slices(Cloud& cloud, std::vector<std::string>* unreachable);
// Reads from a group's template the wish that re-creates a group like it; only for groups of ours.
google::Outcome<SliceWish> wish_of_group(Cloud& cloud, const Slice& slice);
// Deletes the group, then its template and policy.
google::Done delete_compute_slice(Cloud& cloud, const Slice& slice);
// Deletes what an interrupted delete leaves: the template and policy of a deleted group, if they belong to
// `environment`.
google::Done delete_compute_remains(Cloud& cloud, const std::string& name, const std::string& environment);
// Returns the endpoints of a slice's machines, in worker order.
std::vector<google::Endpoint> endpoints_of_instances(const google::Json& instances);

}  // namespace sluice::provision
