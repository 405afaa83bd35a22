// TPU slices that Compute Engine makes (tpu7x and later): a managed instance group whose workload policy
// gives its machines one topology. Policy, template and group are called sluice-NAME and carry the mark in
// `description`.
#pragma once

#include "sluice/provision/slices.h"

namespace sluice::provision {

// Whether a slice of this type is such a group: the Cloud TPU API does not have it.
bool is_compute_type(const estimate::TpuSlice& type);
// Goes through the wish's zones like create_slice. wish.runtime names the machines' image, which it must
// have.
google::Outcome<Slice> create_compute_slice(Cloud& cloud, const SliceWish& wish,
                                            const estimate::TpuSlice& type);
// All groups that have a workload policy; ours with their machines. None where the project has no Compute
// Engine.
google::Outcome<std::vector<Slice>> compute_slices(Cloud& cloud, std::vector<std::string>* unreachable);
// The wish that makes a group of ours like this one again, by its template.
google::Outcome<SliceWish> wish_of_group(Cloud& cloud, const Slice& slice);
// The group, then template and policy.
google::Done delete_compute_slice(Cloud& cloud, const Slice& slice);
// Template and policy of a group that is gone, when they are `environment`'s: what a delete that was
// interrupted leaves.
google::Done delete_compute_remains(Cloud& cloud, const std::string& name, const std::string& environment);
// Of a slice's machines, in worker order.
std::vector<google::Endpoint> endpoints_of_instances(const google::Json& instances);

}  // namespace sluice::provision
