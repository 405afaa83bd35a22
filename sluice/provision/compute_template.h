// The instance template of a machine group that is a TPU slice, and reading a wish back from it.
#pragma once

#include "sluice/provision/slices.h"

namespace sluice::provision {

// Returns the body of instanceTemplates.insert. The machines publish their host keys and end when the wish's
// mark does.
google::Json template_body(const SliceWish& wish, double now);
// Returns the name of the template, the group and the policy: "sluice-NAME".
std::string compute_name(const std::string& slice);
// Returns the mark as JSON for `description`, with type and capacity.
std::string compute_description(const SliceWish& wish);

// Sets the fields of `wish` that a template has: image, network, service account, labels, metadata, tags,
// disks, reservation, run time of flex-start.
void take_template(const google::Json& json, SliceWish& wish);

// Converts metadata to the form of Compute Engine, {items: [{key, value}]}, and back.
google::Json items_of_metadata(const google::Texts& metadata);
google::Texts metadata_of_items(const google::Json& metadata);

}  // namespace sluice::provision
