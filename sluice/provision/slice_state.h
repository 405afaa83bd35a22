// The state of a slice from the states of its parts, and waiting between looks at it.
#pragma once

#include "sluice/provision/slices.h"

namespace sluice::provision {

Slice slice_of(std::vector<google::Node> nodes, std::optional<google::QueuedResource> queue);
// Returns whether a slice in this state is dead or is being deleted: it never becomes READY again.
bool is_lost(const std::string& state);
// Returns ": MESSAGE" of a failed queue entry or of an unhealthy node; "" if there is no message.
std::string why_dead(const Slice& slice);

// Returns the message for an existing slice that has a wish's name but another type.
std::string different_type(const Slice& slice, const std::string& wanted);

// Waits between looks: one second at first, growing to ten, and at most the retry policy's limit.
class Pause {
 public:
  explicit Pause(Cloud& cloud);
  google::Done next();

 private:
  Cloud& cloud_;
  double seconds_, longest_;
};

}  // namespace sluice::provision
