// The instance template of a group of machines that is a TPU slice: what each of them is, and back.
#pragma once

#include "sluice/provision/slices.h"

namespace sluice::provision {

// Of instanceTemplates.insert. The machines publish their host keys, and have the end of the wish's mark.
google::Json template_body(const SliceWish& wish, double now);
// Its name, and that of the group and the policy: "sluice-NAME".
std::string compute_name(const std::string& slice);
// The mark as JSON for `description`, with type and capacity.
std::string compute_description(const SliceWish& wish);

// Fills in what a template has: image, network, service account, labels, metadata, tags, disks, reservation,
// flex-start's time.
void take_template(const google::Json& json, SliceWish& wish);

// Metadata as Compute Engine has them: {items: [{key, value}]}.
google::Json items_of_metadata(const google::Texts& metadata);
google::Texts metadata_of_items(const google::Json& metadata);

}  // namespace sluice::provision
