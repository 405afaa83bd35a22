// Finds leftovers and deletes them.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "sluice/base/text/join.h"
#include "sluice/google/buckets.h"
#include "sluice/google/filestore.h"
#include "sluice/provision/inventory.h"
#include "sluice/provision/slice_state.h"

namespace sluice::provision {
namespace {

using google::Done;
using google::Kind;
using google::Scope;

constexpr double kYoung = 3600;  // seconds in which an environment may still be in creation

// An environment is alive while one of its things computes or keeps data.
bool keeps_alive(const Thing& thing) {
  switch (thing.kind) {
    case ThingKind::kTpu:
    case ThingKind::kMachine:
    case ThingKind::kDisk:
    case ThingKind::kNfs:
      return true;
    default:
      return false;
  }
}

// `whole`: all zones answered, so that an environment that is not in `alive` does not exist.
// `ends`: when the last thing of an environment expires.
std::string reason_of(const Thing& thing, const std::set<std::string>& alive,
                      const std::map<std::string, double>& ends, bool whole, double now) {
  if (!thing.mark) return "";
  // A network's mark cannot be changed when its environment gets more time.
  const bool in_use = thing.kind == ThingKind::kNetwork && (!whole || ends.at(thing.mark->environment) > now);
  if (thing.mark->expires > 0 && thing.mark->expires <= now && !in_use)
    return "expired " + google::time_of_seconds(thing.mark->expires);
  if (thing.kind == ThingKind::kTpu && is_dead(thing.state)) return thing.state + why_dead(thing.slice);
  if (thing.kind == ThingKind::kNfs && thing.state == "ERROR") return thing.state;
  if (thing.kind == ThingKind::kDisk && thing.state == "FAILED") return thing.state;
  if (thing.kind == ThingKind::kMachine && thing.state == "TERMINATED" && thing.capacity == "spot")
    return "PREEMPTED";
  if (!keeps_alive(thing) && thing.kind != ThingKind::kBucket && alive.count(thing.mark->environment) == 0 &&
      whole && now - thing.created > kYoung)
    return base::str("orphaned: the environment ", thing.mark->environment, " has nothing else left");
  return "";
}

// Users come before what they use.
int order(ThingKind kind) {
  switch (kind) {
    case ThingKind::kTpu:
      return 0;
    case ThingKind::kGroup:
      return 1;
    case ThingKind::kMachine:
      return 2;
    case ThingKind::kTemplate:
      return 3;
    case ThingKind::kPolicy:
      return 4;
    case ThingKind::kDisk:
      return 5;
    case ThingKind::kNfs:
      return 6;
    case ThingKind::kFirewall:
      return 7;
    case ThingKind::kRouter:
      return 8;
    case ThingKind::kSubnetwork:
      return 9;
    case ThingKind::kNetwork:
      return 10;
    case ThingKind::kBucket:
      return 11;
  }
  return 12;
}

const char* collection_of(ThingKind kind) {
  switch (kind) {
    case ThingKind::kMachine:
      return "instances";
    case ThingKind::kDisk:
      return "disks";
    case ThingKind::kGroup:
      return "instanceGroupManagers";
    case ThingKind::kTemplate:
      return "instanceTemplates";
    case ThingKind::kPolicy:
      return "resourcePolicies";
    case ThingKind::kFirewall:
      return "firewalls";
    case ThingKind::kRouter:
      return "routers";
    case ThingKind::kSubnetwork:
      return "subnetworks";
    default:
      return "networks";
  }
}

Scope scope_of(const Thing& thing) {
  if (thing.place.empty()) return Scope::global();
  // A zone has a letter after its region: us-central1-a.
  const bool zone = std::count(thing.place.begin(), thing.place.end(), '-') >= 2;
  return zone ? Scope::zone(thing.place) : Scope::region(thing.place);
}

Done finish(Cloud& cloud, const google::Outcome<google::Operation>& begun) {
  if (!begun && begun.error().kind == Kind::kNotFound) return {};
  if (!begun) return tl::unexpected<google::Failure>(begun.error());
  return google::wait(*cloud.api, *begun, google::default_wait(*cloud.api));
}

}  // namespace

std::vector<Leftover> leftovers(const Inventory& inventory, double now) {
  std::set<std::string> alive;
  for (const Thing& thing : inventory.things)
    if (thing.mark && keeps_alive(thing)) alive.insert(thing.mark->environment);
  std::map<std::string, double> ends;
  for (const Thing& thing : inventory.things) {
    if (!thing.mark) continue;
    double& end = ends[thing.mark->environment];
    end = std::max(end, thing.mark->expires > 0 ? thing.mark->expires : HUGE_VAL);
  }
  std::vector<Leftover> found;
  for (const Thing& thing : inventory.things)
    if (const std::string reason = reason_of(thing, alive, ends, inventory.gaps.unreachable.empty(), now);
        !reason.empty())
      found.push_back({thing, reason});
  std::stable_sort(found.begin(), found.end(), [](const Leftover& a, const Leftover& b) {
    return order(a.thing.kind) < order(b.thing.kind);
  });
  return found;
}

Done delete_thing(Cloud& cloud, const Thing& thing) {
  switch (thing.kind) {
    case ThingKind::kTpu:
      return delete_slice(cloud, thing.slice);
    case ThingKind::kNfs:
      return finish(cloud, google::Filestores(*cloud.api, cloud.project).remove(thing.place, thing.name));
    case ThingKind::kBucket:
      return google::failed(Kind::kInvalid, Code::kInvalidArgument, "the bucket ", thing.name,
                            " is kept: its objects are data. gcloud storage rm --recursive gs://", thing.name,
                            " deletes it");
    default:
      return finish(cloud, cloud.compute().remove(scope_of(thing), collection_of(thing.kind), thing.name));
  }
}

}  // namespace sluice::provision
