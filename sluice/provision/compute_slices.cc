#include "sluice/provision/compute_slices.h"

#include <algorithm>

#include "sluice/base/formats/parse_json.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/provision/compute_template.h"
#include "sluice/provision/slice_state.h"

namespace sluice::provision {
namespace {

using google::Compute;
using google::Done;
using google::Failure;
using google::Json;
using google::Kind;
using google::Outcome;
using google::Scope;

constexpr double kGroupTimeout = 1800;  // seconds until all machines of a group run

// Creates the resource, or adopts an existing one of this name if it is ours.
Done ensure(Cloud& cloud, const Scope& scope, const std::string& collection, const Json& body,
            const Mark& mark) {
  Compute compute = cloud.compute();
  const std::string name = google::text(body, "name");
  const auto begun = compute.insert(scope, collection, body);
  if (begun) {
    const auto done = google::wait(*cloud.api, *begun, google::default_wait(*cloud.api));
    if (done || cloud.api->dry_run()) return done;
    // The operation does not decide: the existing resource does.
    if (compute.get(scope, collection, name)) return {};
    return done;
  }
  if (begun.error().kind != Kind::kExists) return tl::unexpected<Failure>(begun.error());
  GOOGLE_TRY(const Json there, compute.get(scope, collection, name));
  const auto status = may_adopt(mark_of_description(google::text(there, "description")), mark.environment,
                                base::str(collection, "/", name));
  if (!status) return google::failed(Kind::kExists, Code::kAlreadyExists, status.error().what());
  return {};
}

// Deletes the resource if it belongs to this environment; another environment's stays.
Done drop(Cloud& cloud, const Scope& scope, const std::string& collection, const std::string& name,
          const std::string& environment) {
  Compute compute = cloud.compute();
  const auto before = compute.get(scope, collection, name);
  if (!before && before.error().kind == Kind::kNotFound) return {};
  if (!before) return tl::unexpected<Failure>(before.error());
  if (whose(mark_of_description(google::text(*before, "description")), environment) != Whose::kOurs)
    return {};
  for (int i = 0; i < 4; ++i) {
    const auto begun = compute.remove(scope, collection, name);
    if (!begun && begun.error().kind == Kind::kNotFound) return {};
    if (!begun && begun.error().kind != Kind::kWrongState) return tl::unexpected<Failure>(begun.error());
    if (begun) {
      const auto done = google::wait(*cloud.api, *begun, google::default_wait(*cloud.api));
      if (cloud.api->dry_run()) return {};
      if (!done && done.error().kind == Kind::kCancelled) return done;
    }
    const auto there = compute.get(scope, collection, name);
    if (!there && there.error().kind == Kind::kNotFound) return {};
    GOOGLE_OK(Pause(cloud).next());
  }
  return google::failed(Kind::kWrongState, Code::kFailedPrecondition, collection, "/", name,
                        " is still there after 4 tries to delete it: it may be in use");
}

Done ask(Cloud& cloud, const SliceWish& wish, const estimate::TpuSlice& type, const std::string& zone) {
  const std::string name = compute_name(wish.name), region = google::region_of_zone(zone);
  Compute compute = cloud.compute();
  Json group = {{"name", name},
                {"description", compute_description(wish)},
                {"baseInstanceName", wish.name},
                {"instanceTemplate", compute.name_of(Scope::global(), "instanceTemplates", name)},
                {"targetSize", type.hosts},
                // The group does not re-create a machine that its deadline or a preemption took.
                {"instanceLifecyclePolicy", {{"defaultActionOnFailure", "DO_NOTHING"}}}};
  const Json policy = {
      {"name", name},
      {"description", compute_description(wish)},
      {"workloadPolicy",
       {{"type", "HIGH_THROUGHPUT"}, {"acceleratorTopology", base::join(type.bounds, "x")}}}};
  GOOGLE_OK(ensure(cloud, Scope::region(region), "resourcePolicies", policy, wish.mark));
  group["resourcePolicies"] = {
      {"workloadPolicy", compute.name_of(Scope::region(region), "resourcePolicies", name)}};
  GOOGLE_OK(ensure(cloud, Scope::global(), "instanceTemplates", template_body(wish, cloud.now()), wish.mark));
  return ensure(cloud, Scope::zone(zone), "instanceGroupManagers", group, wish.mark);
}

// A group's mark cannot be changed: after its end was moved, its first machine's labels have the new one.
void take_moved_end(Slice& slice) {
  if (slice.instances.empty() || !slice.mark) return;
  const auto mark = mark_of_labels(google::texts(slice.instances.front(), "labels"));
  if (mark && mark->environment == slice.mark->environment) slice.mark->expires = mark->expires;
}

// `all`: machines in the order of their names.
Slice slice_of_group(const Json& group, const std::vector<Json>& all) {
  Slice slice;
  slice.compute = true;
  const std::string name = google::text(group, "name");
  slice.zone = google::last_piece(google::text(group, "zone"));
  slice.created = google::seconds_of_time(google::text(group, "creationTimestamp"));
  slice.mark = mark_of_description(google::text(group, "description"));
  slice.name = slice.mark && base::starts_with(name, kNamePrefix)
                   ? name.substr(std::string(kNamePrefix).size())
                   : name;
  const Json json = base::parse_json(google::text(group, "description"));
  slice.type = google::text(json, "sluice-type");
  const std::string capacity = google::text(json, "sluice-capacity");
  for (const Capacity one : {Capacity::kSpot, Capacity::kReservation, Capacity::kFlexStart})
    if (capacity == capacity_name(one)) slice.capacity = one;
  slice.instances = Json::array();
  int running = 0, lost = 0, repaired = 0;
  const std::string base = google::text(group, "baseInstanceName") + "-";
  const auto first = std::lower_bound(
      all.begin(), all.end(), base,
      [](const Json& machine, const std::string& name) { return google::text(machine, "name") < name; });
  for (auto at = first; at != all.end() && base::starts_with(google::text(*at, "name"), base); ++at) {
    const Json& machine = *at;
    if (!is_machine_of(google::text(machine, "name"), google::text(group, "baseInstanceName"))) continue;
    if (google::last_piece(google::text(machine, "zone")) != slice.zone) continue;
    slice.instances.push_back(machine);
    const std::string status = google::text(machine, "status");
    running += status == "RUNNING";
    repaired += status == "REPAIRING";
    lost += has_stopped(status);
  }
  const int wanted = static_cast<int>(google::number(group, "targetSize"));
  // A stable group creates no more machines: missing ones were taken away and are not coming back.
  const bool at_rest = google::truth(group, "status.isStable");
  if (lost > 0 || (running + repaired < wanted && at_rest)) {
    slice.state = slice.capacity == Capacity::kSpot ? "PREEMPTED" : "TERMINATED";
  } else {
    slice.state = repaired > 0 ? "REPAIRING" : running >= wanted && wanted > 0 ? "READY" : "CREATING";
  }
  take_moved_end(slice);
  return slice;
}

// Waits until the group is READY; fails with the reason if it never will be.
Outcome<Slice> await(Cloud& cloud, const SliceWish& wish, const std::string& zone) {
  const double end = cloud.api->clock().now() + kGroupTimeout;
  Pause pause(cloud);
  while (true) {
    GOOGLE_TRY(const auto slices, compute_slices(cloud, nullptr));
    const auto found = std::find_if(slices.begin(), slices.end(), [&](const Slice& slice) {
      return slice.name == wish.name && slice.zone == zone;
    });
    if (found == slices.end())
      return google::failed(Kind::kOther, Code::kAborted, "the group ", wish.name, " vanished from ", zone);
    if (found->ready()) return *found;
    if (is_dead(found->state))
      return google::failed(Kind::kNoCapacity, Code::kResourceExhausted, "machines of ", wish.name, " in ",
                            zone, " were taken away: it is ", found->state);
    google::Call call;
    call.service = google::Service::kCompute;
    call.path = "/compute/v1/" +
                cloud.compute().name_of(Scope::zone(zone), "instanceGroupManagers", compute_name(wish.name)) +
                "/listErrors";
    call.what = "the errors of the group " + wish.name;
    GOOGLE_TRY(const Json errors, cloud.api->pages(call, "items", nullptr));
    const bool waits = wish.wait_until > cloud.now() && wish.zones.size() == 1;
    if (!errors.empty() && !waits)
      return tl::unexpected<Failure>(google::failure_of_operation(
          google::at(errors.back(), "error"), base::str("the machines of ", wish.name, " in ", zone)));
    if (cloud.api->clock().now() >= end)
      return google::failed(Kind::kNoCapacity, Code::kDeadlineExceeded, "the machines of ", wish.name, " in ",
                            zone, " do not all run after half an hour");
    GOOGLE_OK(pause.next());
  }
}

// Deletes the group, template and policy of this name; skips what does not exist.
Done drop_all(Cloud& cloud, const std::string& name, const std::string& zone,
              const std::string& environment) {
  const std::string resource = compute_name(name);
  GOOGLE_OK(drop(cloud, Scope::zone(zone), "instanceGroupManagers", resource, environment));
  GOOGLE_OK(drop(cloud, Scope::global(), "instanceTemplates", resource, environment));
  return drop(cloud, Scope::region(google::region_of_zone(zone)), "resourcePolicies", resource, environment);
}

// Deletes the template that an earlier try left without a group. The run time of its machines counts from
// their start, so machines of an old template would outlive their end.
Done drop_stale_template(Cloud& cloud, const SliceWish& wish) {
  constexpr double kFresh = 600;
  const auto there = cloud.compute().get(Scope::global(), "instanceTemplates", compute_name(wish.name));
  if (!there && there.error().kind == Kind::kNotFound) return {};
  if (!there) return tl::unexpected<Failure>(there.error());
  SliceWish before;
  take_template(*there, before);
  const auto mark = mark_of_description(google::text(*there, "description"));
  const bool fresh =
      cloud.now() - google::seconds_of_time(google::text(*there, "creationTimestamp")) < kFresh;
  if (fresh && mark && label_time(mark->expires) == label_time(wish.mark.expires) &&
      before.runtime == wish.runtime)
    return {};
  return drop(cloud, Scope::global(), "instanceTemplates", compute_name(wish.name), wish.mark.environment);
}

// Returns the zone of the group that an earlier try created, which stays there. A dead group is deleted.
Outcome<std::optional<std::string>> adopt_earlier(Cloud& cloud, const SliceWish& wish,
                                                  const estimate::TpuSlice& type) {
  std::optional<std::string> alive;
  GOOGLE_TRY(const auto there, compute_slices(cloud, nullptr));
  for (const Slice& slice : there) {
    if (slice.name != wish.name || !slice.mark || slice.mark->environment != wish.mark.environment) continue;
    if (slice.type != type.name)
      return google::failed(Kind::kExists, Code::kAlreadyExists, different_type(slice, type.name));
    if (is_dead(slice.state)) {
      cloud.say(
          base::str(slice.name, " in ", slice.zone, " is ", slice.state, ": deleting and re-creating it"));
      GOOGLE_OK(drop_all(cloud, slice.name, slice.zone, wish.mark.environment));
    } else if (!alive) {
      alive = slice.zone;
    }
  }
  if (!alive) GOOGLE_OK(drop_stale_template(cloud, wish));
  return alive;
}

}  // namespace

bool is_machine_of(const std::string& machine, const std::string& base_name) {
  if (!base::starts_with(machine, base_name + "-")) return false;
  const std::string end = machine.substr(base_name.size() + 1);
  return !end.empty() && end.find('-') == std::string::npos;
}

bool is_compute_type(const estimate::TpuSlice& type) { return type.generation->runtime.empty(); }

bool has_stopped(const std::string& status) {
  return status == "TERMINATED" || status == "STOPPING" || status == "SUSPENDED";
}

std::vector<google::Endpoint> endpoints_of_instances(const Json& instances) {
  std::vector<google::Endpoint> endpoints;
  for (const Json& machine : instances) {
    google::Endpoint endpoint;
    for (const Json& network : google::elements(machine, "networkInterfaces")) {
      if (endpoint.internal_ip.empty()) endpoint.internal_ip = google::text(network, "networkIP");
      for (const Json& access : google::elements(network, "accessConfigs"))
        if (endpoint.external_ip.empty()) endpoint.external_ip = google::text(access, "natIP");
    }
    endpoints.push_back(endpoint);
  }
  return endpoints;
}

Outcome<std::vector<Slice>> compute_slices(Cloud& cloud, std::vector<std::string>* unreachable) {
  Compute compute = cloud.compute();
  const auto groups = compute.aggregated("instanceGroupManagers");
  if (!groups && groups.error().kind == Kind::kApiDisabled) return std::vector<Slice>();
  if (!groups) return tl::unexpected<Failure>(groups.error());
  std::vector<std::string> missing = groups->unreachable;
  std::vector<Json> wanted, machines;
  for (const Json& group : groups->items)
    if (!google::text(group, "resourcePolicies.workloadPolicy").empty()) wanted.push_back(group);
  if (!wanted.empty()) {
    GOOGLE_TRY(auto all, compute.aggregated("instances"));
    machines = std::move(all.items);
    missing.insert(missing.end(), all.unreachable.begin(), all.unreachable.end());
    std::sort(machines.begin(), machines.end(),
              [](const Json& a, const Json& b) { return google::text(a, "name") < google::text(b, "name"); });
  }
  for (const std::string& zone : missing)
    if (unreachable != nullptr &&
        std::find(unreachable->begin(), unreachable->end(), zone) == unreachable->end())
      unreachable->push_back(zone);
  std::vector<Slice> slices;
  for (const Json& group : wanted) slices.push_back(slice_of_group(group, machines));
  return slices;
}

Outcome<SliceWish> wish_of_group(Cloud& cloud, const Slice& slice) {
  SliceWish wish;
  wish.name = slice.name;
  wish.type = slice.type;
  wish.zones = {slice.zone};
  wish.capacity = slice.capacity;
  if (slice.mark) wish.mark = *slice.mark;
  GOOGLE_TRY(const Json made_from,
             cloud.compute().get(Scope::global(), "instanceTemplates", compute_name(slice.name)));
  take_template(made_from, wish);
  return wish;
}

Done delete_compute_slice(Cloud& cloud, const Slice& slice) {
  return drop_all(cloud, slice.name, slice.zone, slice.mark ? slice.mark->environment : "");
}

Done delete_compute_remains(Cloud& cloud, const std::string& name, const std::string& environment) {
  const std::string resource = compute_name(name);
  const auto ours = [&](const Json& json) {
    return whose(mark_of_description(google::text(json, "description")), environment) == Whose::kOurs;
  };
  Compute compute = cloud.compute();
  const auto made_from = compute.get(Scope::global(), "instanceTemplates", resource);
  if (!made_from && made_from.error().kind == Kind::kApiDisabled) return {};
  if (!made_from && made_from.error().kind != Kind::kNotFound)
    return tl::unexpected<Failure>(made_from.error());
  if (made_from && ours(*made_from))
    GOOGLE_OK(drop(cloud, Scope::global(), "instanceTemplates", resource, environment));
  GOOGLE_TRY(const auto policies, compute.aggregated("resourcePolicies"));
  for (const Json& policy : policies.items) {
    if (google::text(policy, "name") != resource || !ours(policy)) continue;
    const std::string region = google::last_piece(google::text(policy, "region"));
    GOOGLE_OK(drop(cloud, Scope::region(region), "resourcePolicies", resource, environment));
  }
  return {};
}

Outcome<Slice> create_compute_slice(Cloud& cloud, const SliceWish& wish, const estimate::TpuSlice& type) {
  if (wish.runtime.empty())
    return google::failed(Kind::kInvalid, Code::kInvalidArgument, type.name,
                          " is a group of Compute Engine machines: say their image, --runtime "
                          "projects/P/global/images/family/F");
  if (wish.slices > 1)
    return google::failed(Kind::kInvalid, Code::kInvalidArgument, "several slices of ", type.name,
                          ": make them one by one");
  std::vector<std::string> zones = wish.zones;
  if (zones == std::vector<std::string>{"any"})
    return google::failed(Kind::kInvalid, Code::kInvalidArgument, type.name,
                          ": name its zones with --zones a,b");
  std::optional<Failure> last;
  if (!cloud.api->dry_run()) {
    GOOGLE_TRY(const std::optional<std::string> there, adopt_earlier(cloud, wish, type));
    if (there) {
      zones.erase(std::remove(zones.begin(), zones.end(), *there), zones.end());
      zones.insert(zones.begin(), *there);
    }
  }
  for (const std::string& zone : zones) {
    cloud.say(base::str("asking for ", type.name, " (", capacity_name(wish.capacity), ") in ", zone));
    const Done asked = ask(cloud, wish, type, zone);
    if (asked && cloud.api->dry_run()) {
      Slice slice;
      slice.name = wish.name;
      slice.zone = zone;
      slice.type = type.name;
      slice.state = "DRY_RUN";
      return slice;
    }
    auto slice = asked ? await(cloud, wish, zone) : Outcome<Slice>(tl::unexpected<Failure>(asked.error()));
    if (slice) return slice;
    last = slice.error();
    const bool elsewhere = last->kind == Kind::kNoCapacity || last->kind == Kind::kQuota;
    if (last->kind == Kind::kExists || last->kind == Kind::kCancelled || last->kind == Kind::kPassing ||
        last->kind == Kind::kCredentials)
      return slice;
    cloud.say(base::str(zone, ": ", last->what()));
    GOOGLE_OK(drop_all(cloud, wish.name, zone, wish.mark.environment));
    if (!elsewhere) return slice;
  }
  return tl::unexpected<Failure>(*last);
}

}  // namespace sluice::provision
