// TPU slices under one interface: a node of the Cloud TPU API, a queue entry with one or more nodes, or
// (tpu7x) a group of Compute Engine instances with a workload policy.
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

// The cloud, the project and the clock of one command. Threads: one at a time.
struct Cloud {
  google::Api* api = nullptr;
  std::string project;
  std::function<double()> now;                       // seconds since 1970
  std::function<void(const std::string& line)> say;  // progress, for people
  const std::atomic<bool>* cancelled = nullptr;

  google::Tpu tpu() const { return {*api, project}; }
  google::Compute compute() const { return {*api, project}; }
};
// Returns a Cloud with the system's clock and progress on standard error.
Cloud make_cloud(google::Api& api, std::string project);

enum class Capacity { kOnDemand, kSpot, kReservation, kFlexStart };
const char* capacity_name(Capacity capacity);

// The token scope that lets a machine do everything that its service account may.
inline constexpr const char* kCloudPlatform = "https://www.googleapis.com/auth/cloud-platform";

struct SliceWish {
  std::string name;  // the name of the node and of its queue entry; several slices are NAME-0, NAME-1 …
  std::string type;  // "v3-32"
  std::vector<std::string> zones;  // in the order to try them; {"any"}: all that have the type
  Capacity capacity = Capacity::kOnDemand;
  std::string reservation;   // for kReservation
  double flex_duration = 0;  // for kFlexStart, seconds
  double wait_until = 0;     // seconds since 1970 until which to queue and search; 0: one look at each zone
  int slices = 1;
  bool queued = false;     // use a queued resource even if a node would do
  double zone_wait = 120;  // seconds that a queue entry may wait in one zone while there are others to try
  std::string runtime;     // "": the generation's
  std::string network, subnetwork;  // "": the project's default
  bool external_ips = true;
  std::string service_account;                         // "": the project's default
  std::vector<std::string> scopes = {kCloudPlatform};  // scopes of its tokens on the hosts
  std::string startup_script;                          // the script itself, for all workers
  double idle = 0;                 // seconds unused until worker 0 deletes it (guard.h); 0: never
  std::vector<std::string> tags;   // network tags, for firewalls
  google::Texts labels, metadata;  // additional ones
  // Disks attached to each host: [{sourceDisk, mode}] in the API's form.
  std::vector<google::Json> data_disks;
  Mark mark;
  double max_cost = 0;  // upper limit in dollars until mark.expires; 0: no limit
};

struct Slice {
  std::string name, zone, type;
  // "READY", "CREATING", "PREEMPTED", …; with several nodes, the state that keeps the slice from being READY.
  // If only the queue entry is left, its state: WAITING_FOR_RESOURCES, SUSPENDED, FAILED.
  std::string state;
  std::vector<google::Node> nodes;  // in slice order; empty while queued
  std::optional<google::QueuedResource> queue;
  std::optional<Mark> mark;
  Capacity capacity = Capacity::kOnDemand;
  int slices = 1;
  double created = 0;
  bool compute = false;    // a group of Compute Engine instances
  google::Json instances;  // its instances, in worker order
  // Returns the worker hosts of all slices: slice 0's in order, then slice 1's …
  std::vector<google::Endpoint> hosts() const;
  bool ready() const { return state == "READY"; }
  // Returns the number of a node's slice among several (NAME-2 is slice 2); 0 if there is one.
  int number_of(const google::Node& node) const;
  // Returns the numbers of the slices whose nodes are READY and healthy, in ascending order.
  std::vector<int> usable() const;
};

// Returns the hourly cost of the whole wish; nothing without a list price.
std::optional<double> price_of(const SliceWish& wish);
// kInvalidArgument for an invalid wish: type, name, zones, expiry in the past, a cost over max_cost (names
// the sum), or missing data for its capacity. Sends no request.
base::Status check_wish(const SliceWish& wish, double now);

// Creates the slice, or adopts the existing one of this name and environment. Goes through the zones: no
// capacity, the next zone; a region's quota used up, the next region; forbidden, stop. Repeats this until
// wait_until. Returns when the slice is READY (or, queued with nothing to wait for, accepted). A slice that
// is READY is kept even if its create operation failed.
google::Outcome<Slice> create_slice(Cloud& cloud, const SliceWish& wish);

// Returns the slice of that name in `zone`, or in any zone (""). kNotFound names unreachable zones.
google::Outcome<Slice> find_slice(Cloud& cloud, const std::string& name, const std::string& zone = "");
// Lists all slices, including those that are not ours; `unreachable`: zones that did not answer.
google::Outcome<std::vector<Slice>> list_slices(Cloud& cloud, std::vector<std::string>* unreachable);
// Lists only slices of the Cloud TPU API, in one zone or in all ("-").
google::Outcome<std::vector<Slice>> list_tpu_slices(Cloud& cloud, const std::string& zone,
                                                    std::vector<std::string>* unreachable);
// Waits until its state is READY; kWrongState, with the reason, if it can never become so.
google::Outcome<Slice> wait_for_slice(Cloud& cloud, const std::string& name, const std::string& zone,
                                      double timeout);
// Deletes nodes and queue entry, and waits until neither is listed. No error if nothing exists. It does not
// check who owns the slice: callers do (may_adopt).
google::Done delete_slice(Cloud& cloud, const Slice& slice);
google::Done start_slice(Cloud& cloud, const Slice& slice);
// kInvalid for slices with more than one host: those can only be deleted.
google::Done stop_slice(Cloud& cloud, const Slice& slice);

// Returns whether a slice in this state never recovers by itself and still holds name and quota.
bool is_dead(const std::string& state);
// Returns the zones of the project that have the type, by the API.
google::Outcome<std::vector<std::string>> zones_with(Cloud& cloud, const std::string& type,
                                                     std::vector<std::string>* unreachable);

}  // namespace sluice::provision
