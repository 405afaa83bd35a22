// The bodies of requests for TPU slices, and what of a wish can be checked without asking anybody.
#pragma once

#include "sluice/provision/slices.h"

namespace sluice::provision {

// Of nodes.create, and of a queue entry's nodeSpec.
google::Json node_body(const SliceWish& wish, const estimate::TpuSlice& type, const std::string& project,
                       const std::string& zone);
// Of queuedResources.create in `zone`. `server_deadline`: v2alpha1's runDuration holds the expiry.
google::Json queued_body(const SliceWish& wish, const estimate::TpuSlice& type, const std::string& project,
                         const std::string& zone, bool server_deadline, double now);

// Whether the wish needs a queue entry: several slices, a named reservation, flex-start, or an expiry, which
// the service itself then holds.
bool needs_queue(const SliceWish& wish);
// Whether its entry is made by v2alpha1, which alone knows of run durations.
bool needs_alpha(const SliceWish& wish);
// The wish's labels with the mark's.
google::Texts all_labels(const SliceWish& wish);
// Where a startup script that this made has the timer in it: the wish gets the limit, and the user's own
// script. False: it has none.
bool take_guard(SliceWish& wish);
// A default where the wish has none: the environment of a slice on its own, the owner, when it is made.
SliceWish completed(SliceWish wish, double now);

}  // namespace sluice::provision
