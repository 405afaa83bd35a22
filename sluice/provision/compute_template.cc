#include "sluice/provision/compute_template.h"

#include <algorithm>

#include "sluice/provision/slice_request.h"

namespace sluice::provision {
namespace {

using google::Json;

Json scheduling(const SliceWish& wish, double now) {
  Json body = {{"onHostMaintenance", "TERMINATE"}};
  if (wish.capacity == Capacity::kSpot) body["provisioningModel"] = "SPOT";
  if (wish.capacity == Capacity::kFlexStart) body["provisioningModel"] = "FLEX_START";
  if (wish.capacity == Capacity::kReservation) body["provisioningModel"] = "RESERVATION_BOUND";
  if (wish.capacity == Capacity::kSpot || wish.mark.expires > 0 || wish.capacity == Capacity::kFlexStart)
    body["instanceTerminationAction"] = "DELETE";
  if (wish.capacity != Capacity::kOnDemand) body["automaticRestart"] = false;
  double seconds = wish.capacity == Capacity::kFlexStart ? wish.flex_duration : 0;
  if (wish.mark.expires > 0)
    seconds = seconds > 0 ? std::min(seconds, wish.mark.expires - now) : wish.mark.expires - now;
  if (seconds > 0) body["maxRunDuration"] = {{"seconds", std::to_string(static_cast<long long>(seconds))}};
  return body;
}

}  // namespace

std::string compute_name(const std::string& slice) { return kNamePrefix + slice; }

std::string compute_description(const SliceWish& wish) {
  Json json = labels_of(wish.mark);
  json["sluice-type"] = wish.type;
  json["sluice-capacity"] = capacity_name(wish.capacity);
  return json.dump();
}

Json items_of_metadata(const google::Texts& metadata) {
  Json items = Json::array();
  for (const auto& [key, value] : metadata) items.push_back({{"key", key}, {"value", value}});
  return items;
}

google::Texts metadata_of_items(const Json& metadata) {
  google::Texts found;
  for (const Json& item : google::elements(metadata, "items"))
    found[google::text(item, "key")] = google::text(item, "value");
  return found;
}

Json template_body(const SliceWish& wish, double now) {
  Json network = {{"network", wish.network.empty() ? "global/networks/default" : wish.network}};
  if (!wish.subnetwork.empty()) network["subnetwork"] = wish.subnetwork;
  if (wish.external_ips) network["accessConfigs"] = {{{"type", "ONE_TO_ONE_NAT"}, {"name", "External NAT"}}};
  google::Texts metadata = wish.metadata;
  metadata.try_emplace("enable-guest-attributes", "TRUE");  // where machines publish their host keys
  if (!wish.startup_script.empty()) metadata["startup-script"] = wish.startup_script;
  Json properties = {
      {"machineType", "tpu7x-standard-4t"},
      {"labels", all_labels(wish)},
      {"scheduling", scheduling(wish, now)},
      {"networkInterfaces", {network}},
      {"metadata", {{"items", items_of_metadata(metadata)}}},
      {"disks",
       {{{"boot", true},
         {"autoDelete", true},
         {"initializeParams",
          {{"sourceImage", wish.runtime}, {"diskType", "hyperdisk-balanced"}, {"diskSizeGb", "100"}}}}}}};
  // A template has only names of disks: they mean the disks in the zone of its machines.
  for (const Json& disk : wish.data_disks)
    properties["disks"].push_back({{"source", google::last_piece(google::text(disk, "sourceDisk"))},
                                   {"mode", google::text(disk, "mode")},
                                   {"autoDelete", false}});
  if (!wish.tags.empty()) properties["tags"] = {{"items", wish.tags}};
  const bool default_scopes = wish.scopes == std::vector<std::string>{kCloudPlatform};
  if (!wish.service_account.empty() || !default_scopes)
    properties["serviceAccounts"] = {
        {{"email", wish.service_account.empty() ? "default" : wish.service_account},
         {"scopes", wish.scopes}}};
  if (wish.capacity == Capacity::kReservation)
    properties["reservationAffinity"] = {{"consumeReservationType", "SPECIFIC_RESERVATION"},
                                         {"key", "compute.googleapis.com/reservation-name"},
                                         {"values", {wish.reservation}}};
  return {{"name", compute_name(wish.name)},
          {"description", compute_description(wish)},
          {"properties", properties}};
}

void take_template(const Json& json, SliceWish& wish) {
  const Json& properties = google::at(json, "properties");
  const auto first = [&](std::string_view field) {
    const auto all = google::elements(properties, field);
    return all.empty() ? Json() : all.front();
  };
  for (const Json& disk : google::elements(properties, "disks")) {
    if (google::truth(disk, "boot")) {
      wish.runtime = google::text(disk, "initializeParams.sourceImage");
    } else {
      wish.data_disks.push_back(
          {{"sourceDisk", google::text(disk, "source")}, {"mode", google::text(disk, "mode")}});
    }
  }
  const Json network = first("networkInterfaces");
  wish.network = google::text(network, "network");
  wish.subnetwork = google::text(network, "subnetwork");
  wish.external_ips = !google::elements(network, "accessConfigs").empty();
  wish.service_account = google::text(first("serviceAccounts"), "email");
  if (const auto scopes = google::items(first("serviceAccounts"), "scopes"); !scopes.empty())
    wish.scopes = scopes;
  wish.labels = google::texts(properties, "labels");
  wish.metadata = metadata_of_items(google::at(properties, "metadata"));
  wish.tags = google::items(properties, "tags.items");
  if (wish.capacity == Capacity::kFlexStart)
    wish.flex_duration = google::number(properties, "scheduling.maxRunDuration.seconds");
  const auto reservations = google::items(properties, "reservationAffinity.values");
  if (!reservations.empty()) wish.reservation = reservations.front();
}

}  // namespace sluice::provision
