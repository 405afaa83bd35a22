#include "sluice/provision/slices.h"

#include <algorithm>
#include <cstdlib>

#include "sluice/base/clock.h"
#include "sluice/base/log.h"
#include "sluice/base/text/join.h"
#include "sluice/provision/compute_slices.h"
#include "sluice/provision/node_owners.h"
#include "sluice/provision/slice_state.h"

namespace sluice::provision {
namespace {

using google::Done;
using google::Kind;
using google::Node;
using google::Outcome;
using google::QueuedResource;

// Orders by the number after the last "-": NAME-2 comes before NAME-10.
bool earlier_slice(const Node& a, const Node& b) {
  const auto number = [](const std::string& id) { return std::atoi(id.c_str() + id.rfind('-') + 1); };
  return number(a.id) < number(b.id);
}

// Groups the nodes and queue entries of one project into slices.
std::vector<Slice> grouped(const std::vector<Node>& nodes, const std::vector<QueuedResource>& queue) {
  const NodeOwners owners(queue);
  std::vector<std::vector<Node>> own(queue.size());
  std::vector<Node> others;
  for (const Node& node : nodes) {
    const auto entry = owners.of(node);
    (entry ? own[*entry] : others).push_back(node);
  }
  std::vector<Slice> slices;
  for (std::size_t i = 0; i < queue.size(); ++i) {
    std::sort(own[i].begin(), own[i].end(), earlier_slice);
    slices.push_back(slice_of(std::move(own[i]), queue[i]));
  }
  for (Node& node : others) slices.push_back(slice_of({std::move(node)}, std::nullopt));
  return slices;
}

// Adds zones that did not answer, each once: a list of all zones must report them.
void add_unreachable(std::vector<std::string>* unreachable, const std::vector<std::string>& zones) {
  if (unreachable == nullptr) return;
  for (const std::string& zone : zones)
    if (std::find(unreachable->begin(), unreachable->end(), zone) == unreachable->end())
      unreachable->push_back(zone);
}

}  // namespace

Outcome<std::vector<Slice>> list_tpu_slices(Cloud& cloud, const std::string& zone,
                                            std::vector<std::string>* unreachable) {
  google::Tpu tpu = cloud.tpu();
  // Lists the queue first: the later list then has the nodes of an ACTIVE entry.
  GOOGLE_TRY(const auto queue, tpu.queued_list(zone));
  GOOGLE_TRY(const auto nodes, tpu.nodes(zone));
  add_unreachable(unreachable, nodes.unreachable);
  add_unreachable(unreachable, queue.unreachable);
  return grouped(nodes.items, queue.items);
}

Cloud make_cloud(google::Api& api, std::string project) {
  Cloud cloud;
  cloud.api = &api;
  cloud.project = std::move(project);
  cloud.now = base::wall_seconds;
  cloud.say = [](const std::string& line) { base::info(line); };
  cloud.cancelled = api.options().cancelled;
  return cloud;
}

std::vector<google::Endpoint> Slice::hosts() const {
  std::vector<google::Endpoint> all;
  for (const Node& node : nodes) all.insert(all.end(), node.endpoints.begin(), node.endpoints.end());
  if (compute) {
    const auto machines = endpoints_of_instances(instances);
    all.insert(all.end(), machines.begin(), machines.end());
  }
  return all;
}

Outcome<std::vector<Slice>> list_slices(Cloud& cloud, std::vector<std::string>* unreachable) {
  GOOGLE_TRY(std::vector<Slice> slices, list_tpu_slices(cloud, "-", unreachable));
  GOOGLE_TRY(std::vector<Slice> groups, compute_slices(cloud, unreachable));
  std::move(groups.begin(), groups.end(), std::back_inserter(slices));
  return slices;
}

Outcome<Slice> find_slice(Cloud& cloud, const std::string& name, const std::string& zone) {
  std::vector<std::string> unreachable;
  GOOGLE_TRY(std::vector<Slice> slices, list_tpu_slices(cloud, zone.empty() ? "-" : zone, &unreachable));
  std::vector<Slice> found;
  for (Slice& slice : slices)
    if (slice.name == name) found.push_back(std::move(slice));
  if (found.empty()) {
    GOOGLE_TRY(std::vector<Slice> groups, compute_slices(cloud, &unreachable));
    for (Slice& slice : groups)
      if (slice.name == name && (zone.empty() || slice.zone == zone)) found.push_back(std::move(slice));
  }
  if (found.size() > 1)
    return google::failed(Kind::kInvalid, Code::kInvalidArgument, "there are slices ", name, " in ",
                          found[0].zone, " and ", found[1].zone, ": say which with --zone");
  if (found.size() == 1) return std::move(found[0]);
  // A zone that does not answer may have it.
  const bool hidden = zone.empty()
                          ? !unreachable.empty()
                          : std::find(unreachable.begin(), unreachable.end(), zone) != unreachable.end();
  return google::failed(
      hidden ? Kind::kPassing : Kind::kNotFound, hidden ? Code::kUnavailable : Code::kNotFound,
      "there is no TPU slice ", name, " in ",
      zone.empty() ? "any zone of the project " + cloud.project : zone,
      unreachable.empty() ? "" : "; but these zones did not answer: " + base::join(unreachable, ", "));
}

Outcome<Slice> wait_for_slice(Cloud& cloud, const std::string& name, const std::string& zone,
                              double timeout) {
  const double end = cloud.api->clock().now() + timeout;
  Pause pause(cloud);
  while (true) {
    GOOGLE_TRY(Slice slice, find_slice(cloud, name, zone));
    if (slice.ready()) return slice;
    if (is_dead(slice.state))
      return google::failed(Kind::kWrongState, Code::kFailedPrecondition, name, " in ", slice.zone, " is ",
                            slice.state, why_dead(slice),
                            ": it does not come back by itself. Delete it (sluice ", "tpu delete ", name,
                            ") and create it again");
    if (cloud.api->clock().now() >= end)
      return google::failed(Kind::kPassing, Code::kDeadlineExceeded, name, " in ", slice.zone, " is still ",
                            slice.state);
    GOOGLE_OK(pause.next());
  }
}

Done start_slice(Cloud& cloud, const Slice& slice) {
  if (slice.compute)
    return google::failed(
        Kind::kInvalid, Code::kInvalidArgument,
        "a group of Compute Engine instances is not started or stopped: delete and create it");
  for (const Node& node : slice.nodes) {
    if (node.state == "READY" || node.state == "STARTING") continue;
    auto begun = cloud.tpu().start_node(node.zone, node.id);
    // A repeated request fails if the first one, whose answer was lost, has started the node.
    if (!begun && !begun.error().after_lost) return tl::unexpected<google::Failure>(begun.error());
    if (begun) GOOGLE_OK(google::wait(*cloud.api, *begun, google::default_wait(*cloud.api)));
  }
  return {};
}

Done stop_slice(Cloud& cloud, const Slice& slice) {
  const auto type = estimate::find_tpu_slice(slice.type);
  if (slice.compute || slice.nodes.size() > 1 || (type && type->hosts > 1))
    return google::failed(Kind::kInvalid, Code::kInvalidArgument, slice.name, " (", slice.type,
                          ") has several hosts: Google stops only slices of one host. Delete it (sluice tpu "
                          "delete ",
                          slice.name, "), and create it again when it is needed; its disks are lost");
  for (const Node& node : slice.nodes) {
    if (node.state == "STOPPED" || node.state == "STOPPING") continue;
    auto begun = cloud.tpu().stop_node(node.zone, node.id);
    if (!begun && !begun.error().after_lost) return tl::unexpected<google::Failure>(begun.error());
    if (begun) GOOGLE_OK(google::wait(*cloud.api, *begun, google::default_wait(*cloud.api)));
  }
  return {};
}

Outcome<std::vector<std::string>> zones_with(Cloud& cloud, const std::string& type,
                                             std::vector<std::string>* unreachable) {
  google::Tpu tpu = cloud.tpu();
  GOOGLE_TRY(const std::vector<std::string> all, tpu.locations());
  std::vector<std::string> zones;
  for (const std::string& zone : all) {
    const auto types = tpu.accelerator_types(zone);
    if (!types && (types.error().kind == Kind::kPassing || types.error().kind == Kind::kNotFound)) {
      add_unreachable(unreachable, {zone});
      continue;
    }
    if (!types) return tl::unexpected<google::Failure>(types.error());
    if (std::find(types->begin(), types->end(), type) != types->end()) zones.push_back(zone);
  }
  return zones;
}

}  // namespace sluice::provision
