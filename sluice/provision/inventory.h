// Everything that costs or is left over in one project, in all zones: what Sluice made, and what it did not.
#pragma once

#include <optional>
#include <string>
#include <vector>

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
  std::string place;     // zone or region; "": of the whole project
  std::string type;      // "v3-32", "n2-standard-16", "pd-balanced 1000 GB"
  std::string capacity;  // of TPUs and machines: "spot" …
  std::string state;
  std::optional<Mark> mark;  // nothing: foreign
  double created = 0;
  // US dollars an hour by list prices as it is now (0 while nothing is charged); nothing: no list price.
  std::optional<double> hourly;
  // Since it was made. Where it is not running any more this is the most that it can have been.
  std::optional<double> spent;
  bool upper_bound = false;
  Slice slice;  // of kTpu
};

struct Inventory {
  std::vector<Thing> things;
  // "PROJECT ZONE", "PROJECT file.googleapis.com: why": what did not answer, so that the list may lack
  // things.
  std::vector<std::string> unreachable;
};

// TPU slices alone; or, with `all`, also machines, disks, NFS shares, buckets, and of what costs nothing
// (networks, firewalls, templates …) those that Sluice made. A service that the project has not enabled has
// nothing. Errors: only those of credentials.
google::Outcome<Inventory> take_inventory(Cloud& cloud, bool all);
Thing thing_of(const Slice& slice, const std::string& project, double now);

struct Leftover {
  Thing thing;
  std::string reason;  // "expired 2026-11-25T03:00:00Z", "PREEMPTED", "orphaned: …"
};
// What of ours is expired, dead (PREEMPTED, SUSPENDED, FAILED …) or orphaned (its environment has nothing
// left that runs or keeps data, and it is more than an hour old), in the order in which it can be deleted.
std::vector<Leftover> leftovers(const Inventory& inventory, double now);
// Buckets are not deleted (their objects are data): kInvalid.
google::Done delete_thing(Cloud& cloud, const Thing& thing);

// Sums by "env" or "owner" of what is ours; foreign things are under "(not made by Sluice)".
struct CostRow {
  std::string key;
  int things = 0;
  double hourly = 0, spent = 0;
  int without_price = 0;
};
std::vector<CostRow> costs_by(const Inventory& inventory, const std::string& by);

}  // namespace sluice::provision
