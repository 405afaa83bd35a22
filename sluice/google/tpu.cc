#include "sluice/google/tpu.h"

#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"

namespace sluice::google {
namespace {

std::string type_of(const Json& json) {
  const std::string type = text(json, "acceleratorType");
  if (!type.empty()) return type;
  return std::string(
      base::trim(text(json, "acceleratorConfig.type") + " " + text(json, "acceleratorConfig.topology")));
}

std::vector<std::string> last_pieces(const Json& list, std::string_view field) {
  std::vector<std::string> names;
  for (const Json& item : list) {
    const std::string name = text(item, field);
    names.push_back(last_piece(name.empty() ? text(item, "name") : name));
  }
  return names;
}

}  // namespace

std::string Node::name() const { return base::str("projects/", project, "/locations/", zone, "/nodes/", id); }
std::string QueuedResource::name() const {
  return base::str("projects/", project, "/locations/", zone, "/queuedResources/", id);
}

Node node_of(const Json& json) {
  Node node;
  const std::string name = text(json, "name");
  node.project = piece_after(name, "projects");
  node.zone = piece_after(name, "locations");
  node.id = last_piece(name);
  node.type = type_of(json);
  node.runtime = text(json, "runtimeVersion");
  node.state = text(json, "state");
  node.health = text(json, "health");
  node.health_description = text(json, "healthDescription");
  node.queued_resource = last_piece(text(json, "queuedResource"));
  node.description = text(json, "description");
  node.service_account = text(json, "serviceAccount.email");
  for (const Json& endpoint : elements(json, "networkEndpoints"))
    node.endpoints.push_back({text(endpoint, "ipAddress"), static_cast<int>(number(endpoint, "port")),
                              text(endpoint, "accessConfig.externalIp")});
  node.labels = texts(json, "labels");
  node.metadata = texts(json, "metadata");
  node.symptoms = {};
  for (const Json& symptom : elements(json, "symptoms"))
    node.symptoms.push_back(text(symptom, "symptomType"));
  node.spot = truth(json, "schedulingConfig.spot") || truth(json, "schedulingConfig.preemptible") ||
              text(json, "schedulingConfig.provisioningModel") == "SPOT";
  node.reserved = truth(json, "schedulingConfig.reserved");
  node.created = seconds_of_time(text(json, "createTime"));
  node.json = json;
  return node;
}

QueuedResource queued_of(const Json& json) {
  QueuedResource queued;
  const std::string name = text(json, "name");
  queued.project = piece_after(name, "projects");
  queued.zone = piece_after(name, "locations");
  queued.id = last_piece(name);
  queued.state = text(json, "state.state");
  queued.initiator = text(json, "state.stateInitiator");
  queued.error = at(json, "state.failedData.error");
  queued.slices = 0;
  for (const Json& spec : elements(json, "tpu.nodeSpec")) {
    const Json& node = at(spec, "node");
    queued.nodes.push_back(
        {text(spec, "nodeId"), type_of(node), texts(node, "labels"), text(node, "description")});
    const int count = static_cast<int>(number(spec, "multisliceParams.nodeCount"));
    queued.slices += count > 0 ? count : 1;
  }
  queued.spot = at(json, "spot").is_object() || text(json, "provisioningModel") == "SPOT";
  queued.flex_start = text(json, "provisioningModel") == "FLEX_START";
  queued.reservation = last_piece(text(json, "reservationName"));
  queued.created = seconds_of_time(text(json, "createTime"));
  queued.json = json;
  return queued;
}

std::string Tpu::parent(const std::string& zone) const {
  return base::str("/projects/", project_, "/locations/", zone);
}

Outcome<Operation> Tpu::mutate(const std::string& method, const std::string& path,
                               std::vector<std::pair<std::string, std::string>> query, Json body,
                               const std::string& what, const std::string& version) {
  const Call call{.method = method,
                  .path = version + path,
                  .query = std::move(query),
                  .body = std::move(body),
                  .what = what};
  GOOGLE_TRY(const Json answer, api_.call(call));
  return operation_of(Service::kTpu, version, answer, what);
}

Outcome<Node> Tpu::node(const std::string& zone, const std::string& id) {
  const Call call{.path = "/v2" + parent(zone) + "/nodes/" + id,
                  .what = base::str("the node ", id, " in ", zone)};
  GOOGLE_TRY(const Json json, api_.call(call));
  return node_of(json);
}

Outcome<Listed<Node>> Tpu::nodes(const std::string& zone) {
  const Call call{.path = "/v2" + parent(zone) + "/nodes", .what = base::str("the TPU nodes of ", project_)};
  return api_.list(call, "nodes", node_of);
}

Outcome<Operation> Tpu::create_node(const std::string& zone, const std::string& id, const Json& body) {
  return mutate("POST", parent(zone) + "/nodes", {{"nodeId", id}}, body,
                base::str("creating the node ", id, " in ", zone));
}

Outcome<Operation> Tpu::delete_node(const std::string& zone, const std::string& id) {
  return mutate("DELETE", parent(zone) + "/nodes/" + id, {}, nullptr,
                base::str("deleting the node ", id, " in ", zone));
}

Outcome<Operation> Tpu::start_node(const std::string& zone, const std::string& id) {
  return mutate("POST", parent(zone) + "/nodes/" + id + ":start", {}, Json::object(),
                base::str("starting the node ", id, " in ", zone));
}

Outcome<Operation> Tpu::stop_node(const std::string& zone, const std::string& id) {
  return mutate("POST", parent(zone) + "/nodes/" + id + ":stop", {}, Json::object(),
                base::str("stopping the node ", id, " in ", zone));
}

Outcome<Operation> Tpu::patch_metadata(const std::string& zone, const std::string& id,
                                       const Texts& metadata) {
  return mutate("PATCH", parent(zone) + "/nodes/" + id, {{"updateMask", "metadata"}},
                {{"metadata", metadata}}, base::str("the metadata of the node ", id, " in ", zone));
}

Outcome<Operation> Tpu::patch_labels(const std::string& zone, const std::string& id, const Texts& labels) {
  return mutate("PATCH", parent(zone) + "/nodes/" + id, {{"updateMask", "labels"}}, {{"labels", labels}},
                base::str("the labels of the node ", id, " in ", zone));
}

Outcome<std::vector<Json>> Tpu::guest_attributes(const std::string& zone, const std::string& id,
                                                 const std::string& query_path,
                                                 const std::vector<std::string>& workers) {
  Call call{.method = "POST",
            .path = "/v2" + parent(zone) + "/nodes/" + id + ":getGuestAttributes",
            .body = {{"queryPath", query_path}},
            .what = base::str("the guest attributes of the node ", id, " in ", zone),
            .reads = true};
  if (!workers.empty()) call.body["workerIds"] = workers;
  GOOGLE_TRY(const Json answer, api_.call(call));
  return elements(answer, "guestAttributes");
}

Outcome<QueuedResource> Tpu::queued(const std::string& zone, const std::string& id) {
  const Call call{.path = "/v2" + parent(zone) + "/queuedResources/" + id,
                  .what = base::str("the queue entry ", id, " in ", zone)};
  GOOGLE_TRY(const Json json, api_.call(call));
  return queued_of(json);
}

Outcome<Listed<QueuedResource>> Tpu::queued_list(const std::string& zone) {
  const Call call{.path = "/v2" + parent(zone) + "/queuedResources",
                  .what = base::str("the TPU queue of ", project_)};
  return api_.list(call, "queuedResources", queued_of);
}

Outcome<Operation> Tpu::create_queued(const std::string& zone, const std::string& id, const Json& body,
                                      bool alpha) {
  return mutate("POST", parent(zone) + "/queuedResources", {{"queuedResourceId", id}}, body,
                base::str("queueing ", id, " in ", zone), alpha ? "/v2alpha1" : "/v2");
}

Outcome<Operation> Tpu::delete_queued(const std::string& zone, const std::string& id, bool force) {
  return mutate("DELETE", parent(zone) + "/queuedResources/" + id, {{"force", force ? "true" : "false"}},
                nullptr, base::str("deleting the queue entry ", id, " in ", zone));
}

Outcome<std::vector<std::string>> Tpu::accelerator_types(const std::string& zone) {
  const Call call{.path = "/v2" + parent(zone) + "/acceleratorTypes",
                  .what = base::str("the TPU types of ", zone)};
  GOOGLE_TRY(const Json all, api_.pages(call, "acceleratorTypes", nullptr));
  return last_pieces(all, "type");
}

Outcome<std::vector<std::string>> Tpu::locations() {
  const Call call{.path = base::str("/v2/projects/", project_, "/locations"),
                  .what = base::str("the zones with TPUs")};
  GOOGLE_TRY(const Json all, api_.pages(call, "locations", nullptr));
  return last_pieces(all, "locationId");
}

}  // namespace sluice::google
