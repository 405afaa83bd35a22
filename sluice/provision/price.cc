#include "sluice/provision/price.h"

#include <cstdio>
#include <regex>

#include "sluice/base/text/number.h"
#include "sluice/estimate/tpu_slice.h"

namespace sluice::provision {
namespace {

// List prices of us-central1 in US dollars, rounded.
struct Family {
  const char* name;
  double core, gib;  // an hour
  double spot;       // spot price as a fraction of the full price
};
constexpr Family kFamilies[] = {
    {"e2", 0.021811, 0.002923, 0.4},  {"n1", 0.031611, 0.004237, 0.21}, {"n2", 0.031611, 0.004237, 0.24},
    {"n2d", 0.027502, 0.003686, 0.3}, {"t2d", 0.027502, 0.003686, 0.3}, {"c2", 0.03398, 0.00455, 0.24},
    {"c3", 0.03398, 0.00456, 0.3},    {"c3d", 0.02956, 0.00396, 0.3},   {"n4", 0.03, 0.0035, 0.4},
};

struct Storage {
  const char* name;
  double gib_month;
};
constexpr Storage kDisks[] = {
    {"pd-standard", 0.04},        {"pd-balanced", 0.10},        {"pd-ssd", 0.17},
    {"pd-extreme", 0.125},        {"hyperdisk-balanced", 0.08}, {"hyperdisk-throughput", 0.005},
    {"hyperdisk-extreme", 0.125}, {"hyperdisk-ml", 0.08}};
constexpr Storage kShares[] = {{"BASIC_HDD", 0.16}, {"STANDARD", 0.16},  {"BASIC_SSD", 0.30},
                               {"PREMIUM", 0.30},   {"ZONAL", 0.25},     {"HIGH_SCALE_SSD", 0.25},
                               {"REGIONAL", 0.45},  {"ENTERPRISE", 0.45}};

template <std::size_t N>
std::optional<double> per_hour(const Storage (&table)[N], const std::string& name, double gib) {
  for (const Storage& row : table)
    if (name == row.name) return row.gib_month * gib / kHoursPerMonth;
  return std::nullopt;
}

// Reads cores and GiB from "n2-standard-16", "e2-custom-4-8192" or "e2-medium".
bool size_of(const std::string& type, double& cores, double& gib) {
  std::smatch match;
  static const std::regex custom("[a-z0-9]+-custom-([0-9]+)-([0-9]+).*");
  static const std::regex standard("([a-z0-9]+)-(standard|highmem|highcpu)-([0-9]+).*");
  if (std::regex_match(type, match, custom)) {
    cores = base::number_of<double>(match[1].str()).value_or(0);
    gib = base::number_of<double>(match[2].str()).value_or(0) / 1024;
    return true;
  }
  if (std::regex_match(type, match, standard)) {
    cores = base::number_of<double>(match[3].str()).value_or(0);
    const std::string kind = match[2];
    const bool first = match[1] == "n1";
    gib = cores * (kind == "standard" ? (first ? 3.75 : 4) : kind == "highmem" ? (first ? 6.5 : 8) : 1);
    return true;
  }
  const std::pair<const char*, double> shared[] = {{"e2-micro", 0.25}, {"e2-small", 0.5}, {"e2-medium", 1}};
  for (const auto& [name, part] : shared) {
    if (type != name) continue;
    cores = part;
    gib = part * 4;
    return true;
  }
  return false;
}

}  // namespace

std::optional<double> tpu_price(const std::string& type, bool spot, int slices) {
  const auto slice = estimate::find_tpu_slice(type);
  if (!slice) return std::nullopt;
  const double chip = spot ? slice->generation->spot : slice->generation->on_demand;
  if (chip <= 0) return std::nullopt;
  return chip * slice->chips * slices;
}

std::optional<double> machine_price(const std::string& type, bool spot) {
  const std::string family = type.substr(0, type.find('-'));
  double cores = 0, gib = 0;
  if (!size_of(type, cores, gib)) return std::nullopt;
  for (const Family& row : kFamilies)
    if (family == row.name) return (row.core * cores + row.gib * gib) * (spot ? row.spot : 1);
  return std::nullopt;
}

std::optional<double> disk_price(const std::string& type, double gib) { return per_hour(kDisks, type, gib); }

std::optional<double> filestore_price(const std::string& tier, double gib) {
  return per_hour(kShares, tier, gib);
}

std::string price_date() { return estimate::kPriceDate; }

std::string dollars(const std::optional<double>& amount) {
  if (!amount) return "?";
  char text[32];
  std::snprintf(text, sizeof text, *amount != 0 && *amount < 0.1 ? "%.4f" : "%.2f", *amount);
  return text;
}

}  // namespace sluice::provision
