// The Cloud TPU API: nodes and queued resources of TPU v2 to v6e.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sluice/google/operation.h"

namespace sluice::google {

// One worker host of a slice.
struct Endpoint {
  std::string internal_ip;
  int port = 0;
  std::string external_ip;  // "": none
};

struct Node {
  std::string project, zone, id;
  std::string type;            // "v3-32"; for a node with acceleratorConfig "V3 4x4"
  std::string runtime, state;  // state: CREATING, READY, PREEMPTED …
  std::string health, health_description;
  std::string queued_resource;  // the id of the queue entry that created it; "": created without one
  std::string description, service_account;
  std::vector<Endpoint> endpoints;  // in worker order
  Texts labels, metadata;
  std::vector<std::string> symptoms;
  bool spot = false, reserved = false;
  double created = 0;  // seconds since 1970
  Json json;           // the whole node as the API returned it

  // Returns "projects/p/locations/z/nodes/i".
  std::string name() const;
};
Node node_of(const Json& json);

struct QueuedNode {
  std::string id;  // "": the entry creates several nodes, named by a prefix
  std::string type;
  Texts labels;
  std::string description;
};
struct QueuedResource {
  std::string project, zone, id;
  std::string state;      // ACCEPTED, WAITING_FOR_RESOURCES, ACTIVE, SUSPENDED, FAILED …
  std::string initiator;  // USER or SERVICE: who caused that state
  Json error = nullptr;   // for FAILED
  std::vector<QueuedNode> nodes;
  int slices = 1;  // number of nodes that it creates, also with multislice
  bool spot = false, flex_start = false;
  std::string reservation;
  double created = 0;
  Json json;

  std::string name() const;
};
QueuedResource queued_of(const Json& json);

// Threads: all members from any thread.
class Tpu {
 public:
  Tpu(Api& api, std::string project) : api_(api), project_(std::move(project)) {}

  // Zone "-" means all zones. A node in a list has the same fields as from get().
  Outcome<Node> node(const std::string& zone, const std::string& id);
  Outcome<Listed<Node>> nodes(const std::string& zone = "-");
  Outcome<Operation> create_node(const std::string& zone, const std::string& id, const Json& body);
  // kNotFound if it does not exist.
  Outcome<Operation> delete_node(const std::string& zone, const std::string& id);
  Outcome<Operation> start_node(const std::string& zone, const std::string& id);
  // Only for nodes with one host.
  Outcome<Operation> stop_node(const std::string& zone, const std::string& id);
  // Each replaces the whole map: read, extend, write.
  Outcome<Operation> patch_metadata(const std::string& zone, const std::string& id, const Texts& metadata);
  Outcome<Operation> patch_labels(const std::string& zone, const std::string& id, const Texts& labels);
  // Returns guest attributes below query_path ("hostkeys/") of all workers, or of those named: one element a
  // worker, in worker order, {queryValue: {items: [{namespace, key, value}]}}.
  Outcome<std::vector<Json>> guest_attributes(const std::string& zone, const std::string& id,
                                              const std::string& query_path,
                                              const std::vector<std::string>& workers = {});

  Outcome<QueuedResource> queued(const std::string& zone, const std::string& id);
  Outcome<Listed<QueuedResource>> queued_list(const std::string& zone = "-");
  // `alpha`: use v2alpha1, for runDuration and provisioningModel.
  Outcome<Operation> create_queued(const std::string& zone, const std::string& id, const Json& body,
                                   bool alpha = false);
  // `force` deletes its node too.
  Outcome<Operation> delete_queued(const std::string& zone, const std::string& id, bool force);

  Outcome<std::vector<std::string>> accelerator_types(const std::string& zone);
  Outcome<std::vector<std::string>> locations();
  const std::string& project() const { return project_; }
  Api& api() { return api_; }

 private:
  std::string parent(const std::string& zone) const;
  Outcome<Operation> mutate(const std::string& method, const std::string& path,
                            std::vector<std::pair<std::string, std::string>> query, Json body,
                            const std::string& what, const std::string& version = "/v2");
  Api& api_;
  const std::string project_;
};

}  // namespace sluice::google
