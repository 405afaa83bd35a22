// TPU slices as one thing, whatever makes them: a node of the Cloud TPU API, a queue entry with one or more
// nodes, or (tpu7x) a group of Compute Engine instances with a workload policy.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sluice/estimate/tpu_slice.h"
#include "sluice/google/compute.h"
#include "sluice/google/tpu.h"
#include "sluice/provision/ownership.h"

namespace sluice::provision {

// The cloud, the project and the time that one verb works with. Threads: one at a time.
struct Cloud {
  google::Api* api = nullptr;
  std::string project;
  std::function<double()> now;                       // seconds since 1970
  std::function<void(const std::string& line)> say;  // progress, for people
  const std::atomic<bool>* cancelled = nullptr;

  google::Tpu tpu() const { return {*api, project}; }
  google::Compute compute() const { return {*api, project}; }
};
// With the system's clock and progress on standard error.
Cloud make_cloud(google::Api& api, std::string project);

enum class Capacity { kOnDemand, kSpot, kReservation, kFlexStart };
const char* capacity_name(Capacity capacity);

// The scope of a machine's tokens that lets it do whatever its service account may.
inline constexpr const char* kCloudPlatform = "https://www.googleapis.com/auth/cloud-platform";

struct SliceWish {
  std::string name;  // of the node and of its queue entry; the slices of several are NAME-0, NAME-1 …
  std::string type;  // "v3-32"
  std::vector<std::string> zones;  // in the order in which they are tried; {"any"}: all that have the type
  Capacity capacity = Capacity::kOnDemand;
  std::string reservation;   // of kReservation
  double flex_duration = 0;  // of kFlexStart, seconds
  double wait_until = 0;     // seconds since 1970 until which to queue and hunt; 0: one look at each zone
  int slices = 1;
  bool queued = false;     // by a queued resource even where a node alone would do
  double zone_wait = 120;  // seconds that a queue entry may wait in one zone while others are left to try
  std::string runtime;     // "": the generation's
  std::string network, subnetwork;  // "": the project's default
  bool external_ips = true;
  std::string service_account;                         // "": the project's default
  std::vector<std::string> scopes = {kCloudPlatform};  // of its tokens on the hosts
  std::string startup_script;                          // a text, for all workers
  double idle = 0;                 // seconds unused until worker 0 deletes it (guard.h); 0: never
  std::vector<std::string> tags;   // of the network, for firewalls
  google::Texts labels, metadata;  // further ones
  // Disks attached to each host: [{sourceDisk, mode}] as the API has them.
  std::vector<google::Json> data_disks;
  Mark mark;
  double max_cost = 0;  // dollars to mark.expires that must not be exceeded; 0: no limit
};

struct Slice {
  std::string name, zone, type;
  // "READY", "CREATING", "PREEMPTED", …; of several the one that keeps it from being READY. Where only the
  // queue entry is left, its state: WAITING_FOR_RESOURCES, SUSPENDED, FAILED.
  std::string state;
  std::vector<google::Node> nodes;  // in slice order; empty while queued
  std::optional<google::QueuedResource> queue;
  std::optional<Mark> mark;
  Capacity capacity = Capacity::kOnDemand;
  int slices = 1;
  double created = 0;
  bool compute = false;    // a group of Compute Engine instances
  google::Json instances;  // its instances, in worker order
  // Worker hosts of all slices: slice 0's in order, then slice 1's …
  std::vector<google::Endpoint> hosts() const;
  bool ready() const { return state == "READY"; }
};

// All that a wish costs an hour; nothing without list price.
std::optional<double> price_of(const SliceWish& wish);
// kInvalidArgument for a wish that cannot be: type, name, zones, expiry in the past, more than max_cost (the
// sum is said), capacity without what it needs. Sends no request.
base::Status check_wish(const SliceWish& wish, double now);

// Makes it, or adopts what is there of this name and environment; goes through the zones: no capacity, the
// next zone; a region's quota used up, the next region; forbidden, stop. Until wait_until it goes round
// again. Returns when it is READY (or, queued with nothing to wait for, accepted). A slice that a create
// operation left READY is kept whatever the operation says.
google::Outcome<Slice> create_slice(Cloud& cloud, const SliceWish& wish);

// The slice of that name: in `zone`, or looked for in all of them (""). kNotFound names unreachable zones.
google::Outcome<Slice> find_slice(Cloud& cloud, const std::string& name, const std::string& zone = "");
// All, also what is not ours; `unreachable`: zones that did not answer.
google::Outcome<std::vector<Slice>> list_slices(Cloud& cloud, std::vector<std::string>* unreachable);
// Those of the Cloud TPU API alone, in one zone or in all ("-").
google::Outcome<std::vector<Slice>> list_tpu_slices(Cloud& cloud, const std::string& zone,
                                                    std::vector<std::string>* unreachable);
// Waits until its state is READY; kWrongState when it went to one that never becomes so, saying why.
google::Outcome<Slice> wait_for_slice(Cloud& cloud, const std::string& name, const std::string& zone,
                                      double timeout);
// Deletes nodes and queue entry, and waits until the lists have neither. Nothing there: done. It does not ask
// whose it is: callers do (may_adopt).
google::Done delete_slice(Cloud& cloud, const Slice& slice);
google::Done start_slice(Cloud& cloud, const Slice& slice);
// kInvalid for slices of more than one host: those can only be deleted.
google::Done stop_slice(Cloud& cloud, const Slice& slice);

// The states of a slice that never comes back by itself and still holds name and quota.
bool is_dead(const std::string& state);
// Zones that have the type: of the project's zones, by the API.
google::Outcome<std::vector<std::string>> zones_with(Cloud& cloud, const std::string& type,
                                                     std::vector<std::string>* unreachable);

}  // namespace sluice::provision
