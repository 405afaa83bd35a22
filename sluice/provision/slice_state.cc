#include "sluice/provision/slice_state.h"

#include <algorithm>

#include "sluice/base/text/join.h"
#include "sluice/base/text/number.h"

namespace sluice::provision {
namespace {

// Returns the state that keeps several nodes from being READY: a dead node's before one that is still coming.
std::string state_of(const std::vector<google::Node>& nodes, int wanted) {
  for (const google::Node& node : nodes)
    if (is_dead(node.state)) return node.state;
  for (const google::Node& node : nodes)
    if (node.state != "READY") return node.state;
  return static_cast<int>(nodes.size()) < wanted ? "CREATING" : "READY";
}

}  // namespace

bool is_dead(const std::string& state) {
  static const char* const kDead[] = {"PREEMPTED",  "TERMINATED", "SUSPENDED",
                                      "SUSPENDING", "FAILED",     "HIDDEN"};
  return std::any_of(std::begin(kDead), std::end(kDead), [&](const char* dead) { return state == dead; });
}

bool is_lost(const std::string& state) { return is_dead(state) || state == "DELETING"; }

Slice slice_of(std::vector<google::Node> nodes, std::optional<google::QueuedResource> queue) {
  Slice slice;
  if (queue) {
    slice.name = queue->id;
    slice.zone = queue->zone;
    slice.slices = queue->slices;
    slice.created = queue->created;
    for (const google::QueuedNode& node : queue->nodes) {
      slice.type = node.type;
      slice.mark = mark_of_labels(node.labels);
    }
    if (queue->spot) slice.capacity = Capacity::kSpot;
    if (queue->flex_start) slice.capacity = Capacity::kFlexStart;
    if (!queue->reservation.empty()) slice.capacity = Capacity::kReservation;
  }
  for (const google::Node& node : nodes) {
    if (!queue) {
      slice.name = node.id;
      slice.zone = node.zone;
      slice.created = node.created;
      if (node.spot) slice.capacity = Capacity::kSpot;
      if (node.reserved) slice.capacity = Capacity::kReservation;
    }
    slice.type = node.type;
    slice.mark = mark_of_labels(node.labels);
  }
  if (queue && (nodes.empty() || is_lost(queue->state))) {
    slice.state = queue->state == "ACTIVE" ? "SUSPENDED" : queue->state;
  } else {
    slice.state = state_of(nodes, slice.slices);
  }
  slice.nodes = std::move(nodes);
  slice.queue = std::move(queue);
  return slice;
}

int Slice::number_of(const google::Node& node) const {
  if (slices == 1) return 0;
  return base::number_of<int>(std::string_view(node.id).substr(node.id.rfind('-') + 1)).value_or(0);
}

std::vector<int> Slice::usable() const {
  std::vector<int> numbers;
  for (const google::Node& node : nodes)
    if (node.state == "READY" && (node.health.empty() || node.health == "HEALTHY"))
      numbers.push_back(number_of(node));
  return numbers;
}

std::string why_dead(const Slice& slice) {
  if (slice.queue && !google::text(slice.queue->error, "message").empty())
    return " (" + google::text(slice.queue->error, "message") + ")";
  for (const google::Node& node : slice.nodes)
    if (is_dead(node.state) && !node.health_description.empty()) return " (" + node.health_description + ")";
  return "";
}

std::string different_type(const Slice& slice, const std::string& wanted) {
  return base::str("the TPU slice ", slice.name, " in ", slice.zone, " is a ", slice.type, ", not a ", wanted,
                   ": delete it first (sluice tpu delete ", slice.name, "), or choose another name");
}

Pause::Pause(Cloud& cloud) : cloud_(cloud) {
  const google::Wait how = google::default_wait(*cloud.api);
  seconds_ = how.first;
  longest_ = how.longest;
}

google::Done Pause::next() {
  cloud_.api->clock().sleep(seconds_, cloud_.cancelled);
  seconds_ = std::min(seconds_ * 1.5, longest_);
  if (cloud_.cancelled != nullptr && *cloud_.cancelled)
    return google::failed(google::Kind::kCancelled, Code::kCancelled, "cancelled");
  return {};
}

}  // namespace sluice::provision
