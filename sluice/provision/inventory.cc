#include "sluice/provision/inventory.h"

#include <algorithm>
#include <map>
#include <set>

#include "sluice/base/text/join.h"
#include "sluice/google/buckets.h"
#include "sluice/google/filestore.h"
#include "sluice/provision/price.h"

namespace sluice::provision {
namespace {

using google::Json;
using google::Kind;
using google::Outcome;

bool one_of(const std::string& state, std::initializer_list<const char*> states) {
  return std::any_of(states.begin(), states.end(), [&](const char* one) { return state == one; });
}

// Sets the current hourly price, and the cost since creation.
void add_price(Thing& thing, std::optional<double> price, bool charged, double now) {
  if (!price) return;
  thing.hourly = charged ? *price : 0;
  if (thing.created > 0) thing.spent = *price * std::max(0.0, now - thing.created) / 3600;
  thing.upper_bound = !charged;
}

void add_once(std::vector<std::string>& list, const std::string& entry) {
  if (std::find(list.begin(), list.end(), entry) == list.end()) list.push_back(entry);
}

class Taker {
 public:
  Taker(Cloud& cloud, bool all) : cloud_(cloud), all_(all), now_(cloud.now()) {}

  google::Done run() {
    GOOGLE_OK(slices());
    if (!all_) return {};
    GOOGLE_OK(compute("instances", [this](const Json& json) { machine(json); }));
    GOOGLE_OK(compute("disks", [this](const Json& json) { disk(json); }));
    GOOGLE_OK(shares());
    GOOGLE_OK(buckets());
    const std::pair<const char*, ThingKind> marked[] = {{"instanceGroupManagers", ThingKind::kGroup},
                                                        {"instanceTemplates", ThingKind::kTemplate},
                                                        {"resourcePolicies", ThingKind::kPolicy},
                                                        {"routers", ThingKind::kRouter},
                                                        {"subnetworks", ThingKind::kSubnetwork}};
    for (const auto& [collection, kind] : marked)
      GOOGLE_OK(compute(collection, [this, kind = kind](const Json& json) { described(json, kind); }));
    GOOGLE_OK(global("firewalls", ThingKind::kFirewall));
    return global("networks", ThingKind::kNetwork);
  }
  Inventory taken() { return std::move(inventory_); }

 private:
  // Records that a service did not answer, so that the list may not be complete. An error of credentials or a
  // cancellation ends the listing.
  google::Done missing(const google::Failure& failure, const std::string& what) {
    if (failure.kind == Kind::kApiDisabled) {
      add_once(inventory_.gaps.not_enabled, base::str(cloud_.project, " ", failure.service));
      return {};
    }
    if (failure.kind == Kind::kCredentials || failure.kind == Kind::kCancelled)
      return tl::unexpected<google::Failure>(failure);
    inventory_.gaps.unreachable.push_back(base::str(cloud_.project, " ", what, ": ", failure.what()));
    return {};
  }
  void add_zones(const std::vector<std::string>& zones) {
    for (const std::string& zone : zones) add_once(inventory_.gaps.unreachable, cloud_.project + " " + zone);
  }
  google::Done slices() {
    std::vector<std::string> zones;
    const auto listed = list_slices(cloud_, &zones);
    add_zones(zones);
    // If only TPUs are listed, the answer that the service is not enabled is shown.
    if (!listed && listed.error().kind == Kind::kApiDisabled && !all_) {
      inventory_.gaps.unreachable.push_back(base::str(cloud_.project, ": ", listed.error().what()));
      return {};
    }
    if (!listed) return missing(listed.error(), "TPUs");
    for (const Slice& slice : *listed) {
      inventory_.things.push_back(thing_of(slice, cloud_.project, now_));
      if (slice.compute) groups_.insert(kNamePrefix + slice.name);
      for (const Json& machine : slice.instances) in_slices_.insert(google::text(machine, "name"));
    }
    return {};
  }
  google::Done compute(const std::string& collection, const std::function<void(const Json&)>& take) {
    const auto listed = cloud_.compute().aggregated(collection);
    if (!listed) return missing(listed.error(), collection);
    add_zones(listed->unreachable);
    for (const Json& json : listed->items) take(json);
    return {};
  }
  google::Done global(const std::string& collection, ThingKind kind) {
    const auto listed = cloud_.compute().list(google::Scope::global(), collection);
    if (!listed) return missing(listed.error(), collection);
    for (const Json& json : listed->items) described(json, kind);
    return {};
  }
  Thing of_compute(const Json& json, ThingKind kind) const {
    Thing thing;
    thing.kind = kind;
    thing.project = cloud_.project;
    thing.name = google::text(json, "name");
    const std::string zone = google::text(json, "zone"), region = google::text(json, "region");
    thing.place = google::last_piece(zone.empty() ? region : zone);
    thing.created = google::seconds_of_time(google::text(json, "creationTimestamp"));
    thing.mark = mark_of_labels(google::texts(json, "labels"));
    if (!thing.mark) thing.mark = mark_of_description(google::text(json, "description"));
    return thing;
  }
  void described(const Json& json, ThingKind kind) {
    Thing thing = of_compute(json, kind);
    thing.hourly = 0;
    thing.spent = 0;
    thing.state = "-";
    // A group that is a TPU slice is listed only as the slice, with its policy and template.
    if (thing.mark && groups_.count(thing.name) == 0) inventory_.things.push_back(thing);
  }
  void machine(const Json& json) {
    Thing thing = of_compute(json, ThingKind::kMachine);
    if (in_slices_.count(thing.name) != 0) return;
    thing.type = google::last_piece(google::text(json, "machineType"));
    thing.state = google::text(json, "status");
    const bool spot = google::text(json, "scheduling.provisioningModel") == "SPOT" ||
                      google::truth(json, "scheduling.preemptible");
    thing.capacity = spot ? "spot" : "on-demand";
    add_price(thing, machine_price(thing.type, spot),
              one_of(thing.state, {"PROVISIONING", "STAGING", "RUNNING", "REPAIRING"}), now_);
    inventory_.things.push_back(thing);
  }
  void disk(const Json& json) {
    Thing thing = of_compute(json, ThingKind::kDisk);
    const std::string type = google::last_piece(google::text(json, "type"));
    const double gib = google::number(json, "sizeGb");
    thing.type = base::str(type, " ", gib, " GB");
    thing.state = google::text(json, "status");
    add_price(thing, disk_price(type, gib), true, now_);
    inventory_.things.push_back(thing);
  }
  google::Done shares() {
    const auto listed = google::Filestores(*cloud_.api, cloud_.project).list();
    if (!listed) return missing(listed.error(), "NFS shares");
    add_zones(listed->unreachable);
    for (const google::Filestore& share : listed->items) {
      Thing thing;
      thing.kind = ThingKind::kNfs;
      thing.project = cloud_.project;
      thing.name = share.id;
      thing.place = share.zone;
      thing.type = base::str(share.tier, " ", share.capacity_gb, " GB");
      thing.state = share.state;
      thing.created = share.created;
      thing.mark = mark_of_labels(share.labels);
      add_price(thing, filestore_price(share.tier, share.capacity_gb), share.state != "CREATING", now_);
      inventory_.things.push_back(thing);
    }
    return {};
  }
  google::Done buckets() {
    const auto listed = google::Buckets(*cloud_.api, cloud_.project).list();
    if (!listed) return missing(listed.error(), "buckets");
    for (const google::Bucket& bucket : *listed) {
      Thing thing;
      thing.kind = ThingKind::kBucket;
      thing.project = cloud_.project;
      thing.name = bucket.name;
      thing.place = label_value(bucket.location);
      thing.type = bucket.storage_class;
      thing.state = "-";
      thing.created = bucket.created;
      thing.mark = mark_of_labels(bucket.labels);
      inventory_.things.push_back(thing);
    }
    return {};
  }

  Cloud& cloud_;
  const bool all_;
  const double now_;
  std::set<std::string> in_slices_;  // names of machines
  std::set<std::string> groups_;     // names of the groups that are slices
  Inventory inventory_;
};

}  // namespace

const char* kind_word(ThingKind kind) {
  static const char* const kWords[] = {"tpu",      "machine", "disk",     "nfs",    "bucket",     "group",
                                       "template", "policy",  "firewall", "router", "subnetwork", "network"};
  return kWords[static_cast<int>(kind)];
}

Thing thing_of(const Slice& slice, const std::string& project, double now) {
  Thing thing;
  thing.project = project;
  thing.name = slice.name;
  thing.place = slice.zone;
  thing.type = slice.slices > 1 ? base::str(slice.slices, " x ", slice.type) : slice.type;
  thing.capacity = capacity_name(slice.capacity);
  thing.state = slice.state;
  thing.mark = slice.mark;
  thing.created = slice.created;
  // Flex-start and reservations have no list price: the on-demand price is an upper bound.
  const bool charged =
      one_of(slice.state, {"READY", "RESTARTING", "REIMAGING", "REPAIRING", "STOPPING", "DELETING"});
  add_price(thing, tpu_price(slice.type, slice.capacity == Capacity::kSpot, slice.slices), charged, now);
  // A slice that has no hosts yet has cost nothing.
  if (!charged && !is_dead(slice.state) && slice.state != "STOPPED" && thing.spent) thing.spent = 0;
  thing.slice = slice;
  return thing;
}

Outcome<Inventory> take_inventory(Cloud& cloud, bool all) {
  Taker taker(cloud, all);
  GOOGLE_OK(taker.run());
  return taker.taken();
}

std::vector<CostRow> costs_by(const Inventory& inventory, const std::string& by) {
  std::map<std::string, CostRow> rows;
  for (const Thing& thing : inventory.things) {
    std::string key = "(not made by Sluice)";
    if (thing.mark) key = by == "owner" ? thing.mark->owner : thing.mark->environment;
    if (key.empty()) key = "(no owner)";
    CostRow& row = rows[key];
    row.key = key;
    ++row.things;
    row.hourly += thing.hourly.value_or(0);
    row.spent += thing.spent.value_or(0);
    row.without_price += thing.hourly ? 0 : 1;
  }
  std::vector<CostRow> sorted;
  for (auto& [key, row] : rows) sorted.push_back(row);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const CostRow& a, const CostRow& b) { return a.hourly > b.hourly; });
  return sorted;
}

}  // namespace sluice::provision
