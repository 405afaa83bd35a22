#include "sluice/google/filestore.h"

#include "sluice/base/text/join.h"

namespace sluice::google {
namespace {

std::string parent(const std::string& project, const std::string& location) {
  return base::str("/v1/projects/", project, "/locations/", location, "/instances");
}

Outcome<Operation> begun(Api& api, const Call& call) {
  GOOGLE_TRY(const Json answer, api.call(call));
  return operation_of(Service::kFilestore, "/v1", answer, call.what);
}

}  // namespace

Filestore filestore_of(const Json& json) {
  Filestore share;
  const std::string name = text(json, "name");
  share.zone = piece_after(name, "locations");
  share.id = last_piece(name);
  share.state = text(json, "state");
  share.tier = text(json, "tier");
  for (const Json& one : elements(json, "fileShares")) share.capacity_gb += number(one, "capacityGb");
  for (const Json& network : elements(json, "networks"))
    for (const std::string& ip : items(network, "ipAddresses"))
      if (share.ip.empty()) share.ip = ip;
  share.labels = texts(json, "labels");
  share.created = seconds_of_time(text(json, "createTime"));
  share.json = json;
  return share;
}

Outcome<Filestore> Filestores::get(const std::string& location, const std::string& id) {
  const Call call{.service = Service::kFilestore,
                  .path = parent(project_, location) + "/" + id,
                  .what = base::str("the NFS share ", id, " in ", location)};
  GOOGLE_TRY(const Json json, api_.call(call));
  return filestore_of(json);
}

Outcome<Listed<Filestore>> Filestores::list(const std::string& location) {
  const Call call{.service = Service::kFilestore,
                  .path = parent(project_, location),
                  .what = base::str("the NFS shares of ", project_)};
  return api_.list(call, "instances", filestore_of);
}

Outcome<Operation> Filestores::create(const std::string& location, const std::string& id, const Json& body) {
  const Call call{.service = Service::kFilestore,
                  .method = "POST",
                  .path = parent(project_, location),
                  .query = {{"instanceId", id}},
                  .body = body,
                  .what = base::str("creating the NFS share ", id, " in ", location)};
  return begun(api_, call);
}

Outcome<Operation> Filestores::patch(const std::string& location, const std::string& id, const Json& body,
                                     const std::string& mask) {
  const Call call{.service = Service::kFilestore,
                  .method = "PATCH",
                  .path = parent(project_, location) + "/" + id,
                  .query = {{"updateMask", mask}},
                  .body = body,
                  .what = base::str("changing the NFS share ", id, " in ", location)};
  return begun(api_, call);
}

Outcome<Operation> Filestores::remove(const std::string& location, const std::string& id, bool force) {
  Call call{.service = Service::kFilestore,
            .method = "DELETE",
            .path = parent(project_, location) + "/" + id,
            .what = base::str("deleting the NFS share ", id, " in ", location)};
  if (force) call.query = {{"force", "true"}};
  return begun(api_, call);
}

}  // namespace sluice::google
