// Compute Engine: one set of calls for all its collections, and the few actions that are not among them.
#pragma once

#include <string>
#include <vector>

#include "sluice/google/tpu.h"

namespace sluice::google {

// Where a collection is: all of the project, one region or one zone.
struct Scope {
  enum Level { kGlobal, kRegion, kZone } level = kGlobal;
  std::string name;
  static Scope global() { return {kGlobal, ""}; }
  static Scope region(std::string name) { return {kRegion, std::move(name)}; }
  static Scope zone(std::string name) { return {kZone, std::move(name)}; }
};

// "us-central1" of "us-central1-a".
std::string region_of_zone(const std::string& zone);
// A request id (a UUID): sent again with the same, a mutation happens once.
std::string new_request_id();

// Collections by their names in URLs: "instances", "disks", "networks", "subnetworks", "firewalls",
// "routers", "instanceTemplates", "instanceGroupManagers", "resourcePolicies", "snapshots", "images",
// "reservations" … Threads: all members from any thread.
class Compute {
 public:
  Compute(Api& api, std::string project) : api_(api), project_(std::move(project)) {}

  Outcome<Json> get(const Scope& scope, const std::string& collection, const std::string& name);
  // kExists when there is one of that name. `query`: further parameters ("sourceInstanceTemplate").
  Outcome<Operation> insert(const Scope& scope, const std::string& collection, const Json& body,
                            std::vector<std::pair<std::string, std::string>> query = {});
  // kNotFound when there is none.
  Outcome<Operation> remove(const Scope& scope, const std::string& collection, const std::string& name);
  // `query`: which fields ("paths"), where the collection wants to be told.
  Outcome<Operation> patch(const Scope& scope, const std::string& collection, const std::string& name,
                           const Json& body, std::vector<std::pair<std::string, std::string>> query = {});
  // POST …/{name}/{action}: resize, setLabels, setMetadata, attachDisk, detachDisk, start, stop, recreate …
  Outcome<Operation> act(const Scope& scope, const std::string& collection, const std::string& name,
                         const std::string& action, const Json& body = nullptr,
                         std::vector<std::pair<std::string, std::string>> query = {});
  Outcome<Listed<Json>> list(const Scope& scope, const std::string& collection,
                             const std::string& filter = "");
  // Over all zones and regions; the items know their zone or region by their own fields.
  Outcome<Listed<Json>> aggregated(const std::string& collection, const std::string& filter = "");

  // The instances of a group: [{instance: URL, instanceStatus, currentAction, …}].
  Outcome<std::vector<Json>> managed_instances(const Scope& scope, const std::string& group);
  // The serial port's output from `start` on (bytes): {contents, next}.
  Outcome<Json> serial_output(const std::string& zone, const std::string& instance, double start = 0);
  // Guest attributes below query_path: [{namespace, key, value}].
  Outcome<std::vector<Json>> guest_attributes(const std::string& zone, const std::string& instance,
                                              const std::string& query_path);
  // Replaces labels of a disk, an instance, a snapshot or an image. `read`: the resource that they were taken
  // from; refused (412) where its labels have changed since.
  Outcome<Operation> set_labels(const Scope& scope, const std::string& collection, const std::string& name,
                                const Texts& labels, const Json& read);

  // The project: quotas, commonInstanceMetadata {fingerprint, items}.
  Outcome<Json> project_json();
  Outcome<Operation> set_common_metadata(const Json& metadata);
  // Limits and uses of a region.
  Outcome<std::vector<Quota>> region_quotas(const std::string& region);
  // All zones' names; `region`: only those there.
  Outcome<std::vector<std::string>> zones(const std::string& region = "");

  const std::string& project() const { return project_; }
  Api& api() { return api_; }
  // "projects/p/zones/z/disks/d", as requests name resources.
  std::string name_of(const Scope& scope, const std::string& collection, const std::string& name) const;

 private:
  std::string path(const Scope& scope, const std::string& collection) const;
  Outcome<Operation> mutate(Call call);
  Api& api_;
  const std::string project_;
};

}  // namespace sluice::google
