#include "sluice/google/compute.h"

#include <cstdio>
#include <random>

#include "sluice/base/text/join.h"

namespace sluice::google {
namespace {

const std::string kRoot = "/compute/v1/";

std::string where(const Scope& scope) { return scope.level == Scope::kGlobal ? "" : " in " + scope.name; }

}  // namespace

std::string region_of_zone(const std::string& zone) { return zone.substr(0, zone.rfind('-')); }

std::string new_request_id() {
  std::random_device random;
  const auto word = [&] { return static_cast<unsigned>(random()); };
  const unsigned b = word(), c = word();
  char text[40];
  // Version 4 of RFC 4122: 122 random bits.
  std::snprintf(text, sizeof text, "%08x-%04x-4%03x-%04x-%04x%08x", word(), b >> 16, b & 0xfff,
                0x8000 | (c & 0x3fff), c >> 16, word());
  return text;
}

std::string Compute::name_of(const Scope& scope, const std::string& collection,
                             const std::string& name) const {
  const std::string place = scope.level == Scope::kGlobal   ? "global"
                            : scope.level == Scope::kRegion ? "regions/" + scope.name
                                                            : "zones/" + scope.name;
  return base::str("projects/", project_, "/", place, "/", collection, name.empty() ? "" : "/", name);
}

std::string Compute::path(const Scope& scope, const std::string& collection) const {
  return kRoot + name_of(scope, collection, "");
}

Outcome<Operation> Compute::mutate(Call call) {
  call.service = Service::kCompute;
  // The same id in each try: a mutation whose answer was lost happens only once.
  call.query.emplace_back("requestId", new_request_id());
  GOOGLE_TRY(const Json answer, api_.call(call));
  return operation_of(Service::kCompute, "", answer, call.what);
}

Outcome<Json> Compute::get(const Scope& scope, const std::string& collection, const std::string& name) {
  const Call call{.service = Service::kCompute,
                  .path = path(scope, collection) + "/" + name,
                  .what = base::str(collection, "/", name, where(scope))};
  return api_.call(call);
}

Outcome<Operation> Compute::insert(const Scope& scope, const std::string& collection, const Json& body,
                                   std::vector<std::pair<std::string, std::string>> query) {
  Call call{.method = "POST",
            .path = path(scope, collection),
            .query = std::move(query),
            .body = body,
            .what = base::str("creating ", collection, "/", text(body, "name"), where(scope))};
  return mutate(std::move(call));
}

Outcome<Operation> Compute::remove(const Scope& scope, const std::string& collection,
                                   const std::string& name) {
  Call call{.method = "DELETE",
            .path = path(scope, collection) + "/" + name,
            .what = base::str("deleting ", collection, "/", name, where(scope))};
  return mutate(std::move(call));
}

Outcome<Operation> Compute::patch(const Scope& scope, const std::string& collection, const std::string& name,
                                  const Json& body, std::vector<std::pair<std::string, std::string>> query) {
  Call call{.method = "PATCH",
            .path = path(scope, collection) + "/" + name,
            .query = std::move(query),
            .body = body,
            .what = base::str("changing ", collection, "/", name, where(scope))};
  return mutate(std::move(call));
}

Outcome<Operation> Compute::act(const Scope& scope, const std::string& collection, const std::string& name,
                                const std::string& action, const Json& body,
                                std::vector<std::pair<std::string, std::string>> query) {
  Call call{.method = "POST",
            .path = path(scope, collection) + "/" + name + "/" + action,
            .query = std::move(query),
            .body = body,
            .what = base::str(action, " of ", collection, "/", name, where(scope))};
  return mutate(std::move(call));
}

Outcome<Listed<Json>> Compute::list(const Scope& scope, const std::string& collection,
                                    const std::string& filter) {
  Call call{.service = Service::kCompute,
            .path = path(scope, collection),
            .query = {{"returnPartialSuccess", "true"}},
            .what = base::str("the list of ", collection, where(scope))};
  if (!filter.empty()) call.query.emplace_back("filter", filter);
  Listed<Json> listed;
  GOOGLE_TRY(const Json all, api_.pages(call, "items", &listed.unreachable));
  listed.items = all.get<std::vector<Json>>();
  return listed;
}

Outcome<Listed<Json>> Compute::aggregated(const std::string& collection, const std::string& filter) {
  Call call{.service = Service::kCompute,
            .path = base::str(kRoot, "projects/", project_, "/aggregated/", collection),
            .query = {{"returnPartialSuccess", "true"}},
            .what = base::str("the list of all ", collection)};
  if (!filter.empty()) call.query.emplace_back("filter", filter);
  Listed<Json> listed;
  GOOGLE_OK(api_.each_page(call, [&](const Json& page) {
    // {"zones/a": {"disks": […]}, "zones/b": {"warning": {"code": "UNREACHABLE"}}}.
    for (const auto& [scope, part] : at(page, "items").items()) {
      if (text(part, "warning.code") == "UNREACHABLE") listed.unreachable.push_back(last_piece(scope));
      for (const Json& item : elements(part, collection)) listed.items.push_back(item);
    }
    for (const std::string& place : google::items(page, "unreachables"))
      listed.unreachable.push_back(last_piece(place));
  }));
  return listed;
}

Outcome<Json> Compute::serial_output(const std::string& zone, const std::string& instance, double start) {
  const Call call{.service = Service::kCompute,
                  .path = path(Scope::zone(zone), "instances") + "/" + instance + "/serialPort",
                  .query = {{"start", std::to_string(static_cast<long long>(start))}},
                  .what = base::str("the serial port of ", instance, " in ", zone)};
  return api_.call(call);
}

Outcome<std::vector<Json>> Compute::guest_attributes(const std::string& zone, const std::string& instance,
                                                     const std::string& query_path) {
  const Call call{.service = Service::kCompute,
                  .path = path(Scope::zone(zone), "instances") + "/" + instance + "/getGuestAttributes",
                  .query = {{"queryPath", query_path}},
                  .what = base::str("the guest attributes of ", instance, " in ", zone)};
  GOOGLE_TRY(const Json answer, api_.call(call));
  return elements(answer, "queryValue.items");
}

Outcome<Operation> Compute::set_labels(const Scope& scope, const std::string& collection,
                                       const std::string& name, const Texts& labels, const Json& read) {
  return act(scope, collection, name, "setLabels",
             {{"labels", labels}, {"labelFingerprint", text(read, "labelFingerprint")}});
}

Outcome<Json> Compute::project_json() {
  const Call call{.service = Service::kCompute,
                  .path = base::str(kRoot, "projects/", project_),
                  .what = base::str("the project ", project_)};
  return api_.call(call);
}

Outcome<std::vector<Quota>> Compute::region_quotas(const std::string& region) {
  const Call call{.service = Service::kCompute,
                  .path = base::str(kRoot, "projects/", project_, "/regions/", region),
                  .what = base::str("the region ", region)};
  GOOGLE_TRY(const Json json, api_.call(call));
  std::vector<Quota> quotas;
  for (const Json& one : elements(json, "quotas"))
    quotas.push_back({text(one, "metric"), number(one, "limit"), number(one, "usage"), region, true});
  return quotas;
}

Outcome<std::vector<std::string>> Compute::zones(const std::string& region) {
  const Call call{.service = Service::kCompute,
                  .path = base::str(kRoot, "projects/", project_, "/zones"),
                  .what = base::str("the zones")};
  GOOGLE_TRY(const Json all, api_.pages(call, "items", nullptr));
  std::vector<std::string> names;
  for (const Json& zone : all)
    if (region.empty() || region_of_zone(text(zone, "name")) == region) names.push_back(text(zone, "name"));
  return names;
}

}  // namespace sluice::google
