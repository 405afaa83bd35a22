// What a slice's parts say of the whole, and waiting between looks at it.
#pragma once

#include "sluice/provision/slices.h"

namespace sluice::provision {

Slice slice_of(std::vector<google::Node> nodes, std::optional<google::QueuedResource> queue);
// ": MESSAGE" of a failed queue entry or of an unhealthy node; "" when nothing is said.
std::string why_dead(const Slice& slice);

// What is said where a slice of a wish's name is there, and is another type.
std::string different_type(const Slice& slice, const std::string& wanted);

// Waits between looks: a second at first, growing to ten, and no longer than the retry policy's.
class Pause {
 public:
  explicit Pause(Cloud& cloud);
  google::Done next();

 private:
  Cloud& cloud_;
  double seconds_, longest_;
};

}  // namespace sluice::provision
