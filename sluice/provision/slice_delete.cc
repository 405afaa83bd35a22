// Deletes a slice: its queue entry first, by force. Deleting only the node leaves the entry SUSPENDED, which
// still holds quota.
#include "sluice/base/text/join.h"
#include "sluice/provision/compute_slices.h"
#include "sluice/provision/slice_state.h"
#include "sluice/provision/slices.h"

namespace sluice::provision {
namespace {

using google::Done;
using google::Failure;
using google::Kind;
using google::Outcome;

constexpr int kTries = 4;

// A part of a slice that can be looked up and deleted.
struct Part {
  std::string what;
  // Returns its state; kNotFound if it is deleted.
  std::function<Outcome<std::string>()> state;
  std::function<Outcome<google::Operation>()> remove;
};

// Returns when the part no longer exists. Its operations do not decide: if it still exists, it is deleted
// again.
Done remove_part(Cloud& cloud, const Part& part) {
  google::Wait how = google::default_wait(*cloud.api);
  how.timeout = 1200;
  const auto gone = [&] {
    const auto state = part.state();
    return !state && state.error().kind == Kind::kNotFound;
  };
  how.enough = gone;
  Failure last(Kind::kOther, Code::kInternal, "");
  for (int i = 0; i < kTries; ++i) {
    const auto begun = part.remove();
    if (!begun && begun.error().kind == Kind::kNotFound) return {};
    // Another operation on it is in progress, perhaps an earlier delete of ours: that ends.
    const bool busy = !begun && begun.error().kind == Kind::kWrongState;
    if (!begun && !busy) return tl::unexpected<Failure>(begun.error());
    if (busy) {
      last = begun.error();
    } else if (auto done = google::wait(*cloud.api, *begun, how); !done) {
      if (done.error().kind == Kind::kCancelled) return done;
      last = done.error();
    }
    if (cloud.api->dry_run()) return {};
    Pause pause(cloud);
    const double end = cloud.api->clock().now() + how.timeout;
    while (true) {
      const auto state = part.state();
      if (!state && state.error().kind == Kind::kNotFound) return {};
      if (!state) return tl::unexpected<Failure>(state.error());
      if (*state != "DELETING" || cloud.api->clock().now() >= end) break;
      GOOGLE_OK(pause.next());
    }
    GOOGLE_OK(pause.next());
  }
  return tl::unexpected<Failure>(
      Failure(last.kind, last.code(),
              base::str(part.what, " is still there after ", kTries, " tries: ", last.what())));
}

Part queue_part(Cloud& cloud, const std::string& zone, const std::string& id) {
  return {base::str("the queue entry ", id, " in ", zone),
          [&cloud, zone, id]() -> Outcome<std::string> {
            GOOGLE_TRY(const auto queue, cloud.tpu().queued(zone, id));
            return queue.state;
          },
          [&cloud, zone, id] { return cloud.tpu().delete_queued(zone, id, /*force=*/true); }};
}

Part node_part(Cloud& cloud, const std::string& zone, const std::string& id) {
  return {base::str("the node ", id, " in ", zone),
          [&cloud, zone, id]() -> Outcome<std::string> {
            GOOGLE_TRY(const auto node, cloud.tpu().node(zone, id));
            return node.state;
          },
          [&cloud, zone, id] { return cloud.tpu().delete_node(zone, id); }};
}

}  // namespace

Done delete_slice(Cloud& cloud, const Slice& slice) {
  if (slice.compute) return delete_compute_slice(cloud, slice);
  if (slice.queue) GOOGLE_OK(remove_part(cloud, queue_part(cloud, slice.zone, slice.queue->id)));
  for (const google::Node& node : slice.nodes) {
    const Part part = node_part(cloud, node.zone, node.id);
    // As a rule, the node was deleted with its queue entry.
    if (slice.queue && !cloud.api->dry_run()) {
      const auto state = part.state();
      if (!state && state.error().kind == Kind::kNotFound) continue;
    }
    if (slice.queue && cloud.api->dry_run()) continue;
    GOOGLE_OK(remove_part(cloud, part));
  }
  return {};
}

}  // namespace sluice::provision
