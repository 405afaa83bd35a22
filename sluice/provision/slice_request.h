// The bodies of requests for TPU slices, and the checks of a wish that need no request.
#pragma once

#include "sluice/provision/slices.h"

namespace sluice::provision {

// Returns the body of nodes.create, and of a queue entry's nodeSpec.
google::Json node_body(const SliceWish& wish, const estimate::TpuSlice& type, const std::string& project,
                       const std::string& zone);
// Returns the body of queuedResources.create in `zone`. `server_deadline`: v2alpha1's runDuration holds the
// expiry.
google::Json queued_body(const SliceWish& wish, const estimate::TpuSlice& type, const std::string& project,
                         const std::string& zone, bool server_deadline, double now);

// Returns whether the wish needs a queue entry: several slices, a named reservation, flex-start, or an
// expiry, which the service itself then enforces.
bool needs_queue(const SliceWish& wish);
// Returns the wish's labels and the mark's.
google::Texts all_labels(const SliceWish& wish);
// If the startup script was made here with a timer, sets the wish's limit and the user's own script. Returns
// false if it has no timer.
bool take_guard(SliceWish& wish);
// Sets defaults if the wish has no value: the environment of a slice on its own, the owner, the time of
// creation.
SliceWish completed(SliceWish wish, double now);

}  // namespace sluice::provision
