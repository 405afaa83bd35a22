// Where a bucket is, and what it costs to read it from here.
#include <cctype>
#include <nlohmann/json.hpp>

#include "sluice/base/log.h"
#include "sluice/cloud/metadata.h"
#include "sluice/cloud/storage.h"

namespace sluice::cloud {
namespace {

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

// "us", "europe", "asia", … of a region's or a bucket's location.
std::string continent(const std::string& location) {
  const std::string name = upper(location);
  if (base::starts_with(name, "US") || base::starts_with(name, "NORTHAMERICA") ||
      base::starts_with(name, "NAM"))
    return "northamerica";
  if (base::starts_with(name, "EU")) return "europe";
  if (base::starts_with(name, "ASIA")) return "asia";
  return name.substr(0, name.find('-'));
}

}  // namespace

bool is_near(const std::string& region, const std::string& location) {
  if (region.empty()) return true;
  const std::string here = upper(region), there = upper(location);
  if (here == there) return true;
  // Multi-regions and predefined dual regions; for the latter the continent is all that is compared.
  const bool several = there == "US" || there == "EU" || there == "ASIA" ||
                       (there.find('-') == std::string::npos && !there.empty() &&
                        std::isdigit(static_cast<unsigned char>(there.back())) != 0);
  return several && continent(region) == continent(location);
}

void Storage::warn_of_region(const std::string& bucket) const {
  {
    const std::lock_guard lock(mutex_);
    if (!regions_asked_.emplace(bucket, true).second) return;
  }
  const auto region = own_region(*access_.http);
  if (!region) return;
  HttpRequest request;
  request.url = endpoint_ + "/storage/v1/b/" + percent_encode(bucket) + "?fields=location";
  request.total_timeout = 5;
  request.direct = access_.direct;
  const auto response = access_.once(std::move(request));
  if (!response || response->status != 200) return;  // the right to ask is often not given
  const auto json = nlohmann::json::parse(response->body, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("location") || !json["location"].is_string()) return;
  const std::string location = json["location"];
  if (is_near(*region, location)) return;
  const bool same = continent(*region) == continent(location);
  base::warn("gs://", bucket, " is in ", location, ", this machine in ", *region,
             ": every TB that is read costs about ",
             same ? "20 $ (within a continent)" : "50 to 140 $ (between continents)",
             ", by the list prices of 2025, and reading is slower; a bucket in ", *region,
             " costs nothing to read");
}

}  // namespace sluice::cloud
