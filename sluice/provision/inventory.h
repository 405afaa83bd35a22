// Everything in one project, in all zones, that costs money or is left over: created by Sluice or not.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sluice/provision/gaps.h"
#include "sluice/provision/slices.h"

namespace sluice::provision {

enum class ThingKind {
  kTpu,
  kMachine,
  kDisk,
  kNfs,
  kBucket,
  kGroup,
  kTemplate,
  kPolicy,
  kFirewall,
  kRouter,
  kSubnetwork,
  kNetwork
};
const char* kind_word(ThingKind kind);

struct Thing {
  ThingKind kind = ThingKind::kTpu;
  std::string project, name;
  std::string place;     // zone or region; "": the whole project
  std::string type;      // "v3-32", "n2-standard-16", "pd-balanced 1000 GB"
  std::string capacity;  // for TPUs and machines: "spot" …
  std::string state;
  std::optional<Mark> mark;  // nothing: foreign
  double created = 0;
  // US dollars an hour at list prices in the current state (0 while nothing is charged); nothing: no list
  // price.
  std::optional<double> hourly;
  // The cost since creation. If the thing no longer runs, this is an upper bound.
  std::optional<double> spent;
  bool upper_bound = false;
  Slice slice;  // for kTpu
};

struct Inventory {
  std::vector<Thing> things;
  Gaps gaps;
};

// Lists only TPU slices; with `all`, also machines, disks, NFS shares and buckets, and what Sluice made among
// the things without a price (networks, firewalls, templates …). A service that is not enabled is named in
// `gaps.not_enabled`, or in `gaps.unreachable` if `all` is false. Errors: only errors of credentials.
google::Outcome<Inventory> take_inventory(Cloud& cloud, bool all);
Thing thing_of(const Slice& slice, const std::string& project, double now);

struct Leftover {
  Thing thing;
  std::string reason;  // "expired 2026-11-25T03:00:00Z", "PREEMPTED", "orphaned: …"
};
// Returns our things that are expired, dead (PREEMPTED, SUSPENDED, FAILED …) or orphaned (the environment has
// nothing left that runs or keeps data, and the thing is over an hour old), in an order in which they can be
// deleted.
std::vector<Leftover> leftovers(const Inventory& inventory, double now);
// Buckets are not deleted (their objects are data): kInvalid.
google::Done delete_thing(Cloud& cloud, const Thing& thing);

// The sums of our things by "env" or "owner"; foreign things are under "(not made by Sluice)".
struct CostRow {
  std::string key;
  int things = 0;
  double hourly = 0, spent = 0;
  int without_price = 0;
};
std::vector<CostRow> costs_by(const Inventory& inventory, const std::string& by);

}  // namespace sluice::provision
