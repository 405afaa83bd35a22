// The location of a bucket, and whether it costs money to read it from here.
#include <cctype>
#include <nlohmann/json.hpp>

#include "sluice/base/formats/parse_json.h"
#include "sluice/base/log.h"
#include "sluice/base/text/strings.h"
#include "sluice/cloud/credentials/metadata.h"
#include "sluice/cloud/storage.h"

namespace sluice::cloud {
namespace {

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

// Returns "us", "europe", "asia", … for a region's or a bucket's location.
std::string continent(const std::string& location) {
  const std::string name = upper(location);
  if (base::starts_with(name, "US") || base::starts_with(name, "NORTHAMERICA") ||
      base::starts_with(name, "NAM"))
    return "northamerica";
  if (base::starts_with(name, "EU")) return "europe";
  if (base::starts_with(name, "ASIA")) return "asia";
  return name.substr(0, name.find('-'));
}

// Returns the server's description of a bucket, a JSON object. Tries once, as nothing depends on it.
base::Result<nlohmann::json> describe_bucket(const std::string& bucket, const std::string& what,
                                             const Access& access, const std::string& endpoint) {
  HttpRequest request;
  request.url = endpoint + "/storage/v1/b/" + percent_encode(bucket) + what;
  request.total_timeout = 5;
  request.direct = access.direct;
  SLUICE_TRY(const HttpResponse response, access.once(std::move(request)));
  if (response.status != 200) return tl::unexpected<Error>(explain(response, "gs://" + bucket, access));
  auto json = base::parse_json(response.body);
  if (!json.is_object())
    return base::fail(Code::kUnknown, "gs://", bucket,
                      ": expected a JSON object, the server sent something else");
  return json;
}

}  // namespace

bool is_near(const std::string& region, const std::string& location) {
  if (region.empty()) return true;
  const std::string here = upper(region), there = upper(location);
  if (here == there) return true;
  // Multi-regions and predefined dual regions; for dual regions only the continent is compared.
  const bool several = there == "US" || there == "EU" || there == "ASIA" ||
                       (there.find('-') == std::string::npos && !there.empty() &&
                        std::isdigit(static_cast<unsigned char>(there.back())) != 0);
  return several && continent(region) == continent(location);
}

base::Result<std::string> Storage::location(const std::string& bucket) const {
  SLUICE_TRY(const auto json, describe_bucket(bucket, "?fields=location", access_, endpoint_));
  if (!json.contains("location") || !json["location"].is_string())
    return base::fail(Code::kUnknown, "gs://", bucket, ": the server did not say where it is");
  return json["location"].get<std::string>();
}

base::Result<std::vector<std::string>> Storage::granted(const std::string& bucket,
                                                        const std::vector<std::string>& permissions) const {
  SLUICE_TRY(
      const auto json,
      describe_bucket(bucket, "/iam/testPermissions?permissions=" + base::join(permissions, "&permissions="),
                      access_, endpoint_));
  std::vector<std::string> granted;
  for (const auto& permission : json.value("permissions", nlohmann::json::array()))
    if (permission.is_string()) granted.push_back(permission.get<std::string>());
  return granted;
}

void Storage::warn_of_region(const std::string& bucket) const {
  {
    const std::lock_guard lock(mutex_);
    if (!regions_asked_.emplace(bucket, true).second) return;
  }
  const auto region = own_region(*access_.http);
  if (!region) return;
  const auto place = location(bucket);
  if (!place || is_near(*region, *place)) return;
  const bool same = continent(*region) == continent(*place);
  base::warn("gs://", bucket, " is in ", *place, ", this machine in ", *region,
             ": every TB that is read costs about ",
             same ? "20 $ (within a continent)" : "50 to 140 $ (between continents)",
             ", by the list prices of 2025, and reading is slower; a bucket in ", *region,
             " costs nothing to read");
}

}  // namespace sluice::cloud
