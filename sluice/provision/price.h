// Hourly prices from dated price lists: never the bill.
#pragma once

#include <optional>
#include <string>

#include "sluice/base/result.h"
#include "sluice/google/json.h"

namespace sluice::provision {

inline constexpr double kHoursPerMonth = 730;

// US dollars an hour. Nothing if there is no list price (tpu7x, unknown machine types).
std::optional<double> tpu_price(const std::string& type, bool spot, int slices = 1);
// The price of a Compute Engine machine type ("n2-standard-16", "e2-custom-4-8192").
std::optional<double> machine_price(const std::string& type, bool spot);
// The price of a disk type ("pd-balanced", "hyperdisk-ml"), and of a Filestore share by its tier.
std::optional<double> disk_price(const std::string& type, double gib);
std::optional<double> filestore_price(const std::string& tier, double gib);

// Returns "2026, us-central1 list".
std::string price_date();
// Returns "64.00" or "0.034"; "?" without a price.
std::string dollars(const std::optional<double>& amount);

}  // namespace sluice::provision
