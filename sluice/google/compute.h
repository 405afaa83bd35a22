// Compute Engine: one set of calls for all its collections, and the few special actions.
#pragma once

#include <string>
#include <vector>

#include "sluice/google/tpu.h"

namespace sluice::google {

// The place of a collection: the whole project, one region or one zone.
struct Scope {
  enum Level { kGlobal, kRegion, kZone } level = kGlobal;
  std::string name;
  static Scope global() { return {kGlobal, ""}; }
  static Scope region(std::string name) { return {kRegion, std::move(name)}; }
  static Scope zone(std::string name) { return {kZone, std::move(name)}; }
};

// Returns "us-central1" for "us-central1-a".
std::string region_of_zone(const std::string& zone);
// Returns a new request id (a UUID): a mutation that is sent again with the same id happens once.
std::string new_request_id();

// Collections have their names in URLs: "instances", "disks", "networks", "subnetworks", "firewalls",
// "routers", "instanceTemplates", "instanceGroupManagers", "resourcePolicies", "snapshots", "images",
// "reservations" … Threads: all members from any thread.
class Compute {
 public:
  Compute(Api& api, std::string project) : api_(api), project_(std::move(project)) {}

  Outcome<Json> get(const Scope& scope, const std::string& collection, const std::string& name);
  // kExists if the name is taken. `query`: further parameters ("sourceInstanceTemplate").
  Outcome<Operation> insert(const Scope& scope, const std::string& collection, const Json& body,
                            std::vector<std::pair<std::string, std::string>> query = {});
  // kNotFound if it does not exist.
  Outcome<Operation> remove(const Scope& scope, const std::string& collection, const std::string& name);
  // `query`: the changed fields ("paths"), for collections that require them.
  Outcome<Operation> patch(const Scope& scope, const std::string& collection, const std::string& name,
                           const Json& body, std::vector<std::pair<std::string, std::string>> query = {});
  // POST …/{name}/{action}: resize, setLabels, setMetadata, attachDisk, detachDisk, start, stop, recreate …
  Outcome<Operation> act(const Scope& scope, const std::string& collection, const std::string& name,
                         const std::string& action, const Json& body = nullptr,
                         std::vector<std::pair<std::string, std::string>> query = {});
  Outcome<Listed<Json>> list(const Scope& scope, const std::string& collection,
                             const std::string& filter = "");
  // Lists over all zones and regions; each item has its zone or region in its own fields.
  Outcome<Listed<Json>> aggregated(const std::string& collection, const std::string& filter = "");

  // Returns the serial port's output from byte `start` on: {contents, next}.
  Outcome<Json> serial_output(const std::string& zone, const std::string& instance, double start = 0);
  // Returns the guest attributes below query_path: [{namespace, key, value}].
  Outcome<std::vector<Json>> guest_attributes(const std::string& zone, const std::string& instance,
                                              const std::string& query_path);
  // Replaces the labels of a disk, an instance, a snapshot or an image. `read`: the resource that they were
  // read from; refused (412) if its labels have changed since.
  Outcome<Operation> set_labels(const Scope& scope, const std::string& collection, const std::string& name,
                                const Texts& labels, const Json& read);

  // Returns the project: quotas, commonInstanceMetadata {fingerprint, items}.
  Outcome<Json> project_json();
  // Returns the limits and usage of a region.
  Outcome<std::vector<Quota>> region_quotas(const std::string& region);
  // Returns all zones' names; `region`: only its zones.
  Outcome<std::vector<std::string>> zones(const std::string& region = "");

  const std::string& project() const { return project_; }
  Api& api() { return api_; }
  // Returns "projects/p/zones/z/disks/d", the form in which requests name resources.
  std::string name_of(const Scope& scope, const std::string& collection, const std::string& name) const;

 private:
  std::string path(const Scope& scope, const std::string& collection) const;
  Outcome<Operation> mutate(Call call);
  Api& api_;
  const std::string project_;
};

}  // namespace sluice::google
