#include "sluice/provision/slice_request.h"

#include <algorithm>
#include <cstdio>

#include "sluice/base/text/join.h"
#include "sluice/base/text/number.h"
#include "sluice/base/text/strings.h"
#include "sluice/provision/compute_slices.h"
#include "sluice/provision/guard.h"
#include "sluice/provision/price.h"

namespace sluice::provision {
namespace {

using google::Json;

std::string seconds_text(double seconds) { return base::str(static_cast<long long>(seconds), "s"); }

bool spot(const SliceWish& wish) { return wish.capacity == Capacity::kSpot; }

base::Status check_capacity(const SliceWish& wish) {
  constexpr double kLongestFlex = 7 * 86400;
  if (wish.capacity == Capacity::kReservation && wish.reservation.empty())
    return base::fail(Code::kInvalidArgument, "--reservation needs the reservation's name");
  if (wish.capacity == Capacity::kFlexStart && (wish.flex_duration <= 0 || wish.flex_duration > kLongestFlex))
    return base::fail(Code::kInvalidArgument,
                      "--flex-start needs how long it may run, above 0 and at most 7d");
  if (wish.slices < 1)
    return base::fail(Code::kInvalidArgument, "--slices ", wish.slices, ": expected 1 or more");
  return {};
}

base::Status check_cost(const SliceWish& wish, double now) {
  if (wish.max_cost <= 0) return {};
  const double end = wish.mark.expires > 0                   ? wish.mark.expires
                     : wish.capacity == Capacity::kFlexStart ? now + wish.flex_duration
                                                             : 0;
  if (end == 0)
    return base::fail(Code::kInvalidArgument,
                      "--max-cost needs --ttl: without an end there is no sum to compare with");
  const auto hourly = price_of(wish);
  if (!hourly)
    return base::fail(Code::kInvalidArgument, "--max-cost: there is no list price of ", wish.type,
                      ", so the sum is not known");
  const double hours = (end - now) / 3600, sum = *hourly * hours;
  if (sum <= wish.max_cost) return {};
  char hours_text[32];
  std::snprintf(hours_text, sizeof hours_text, "%.1f", hours);
  return base::fail(Code::kFailedPrecondition, wish.slices > 1 ? base::str(wish.slices, " × ") : "",
                    wish.type, " (", capacity_name(wish.capacity), ") costs $", dollars(hourly),
                    " an hour, $", dollars(sum), " in ", hours_text, " h by list prices (", price_date(),
                    "), more than --max-cost ", dollars(wish.max_cost), ": nothing was asked for");
}

// The line that ends a file within a startup script.
constexpr const char* kEndOfFile = "SLUICE_END_OF_FILE\n";

std::string beginning_of(const std::string& file) {
  return base::str("cat >\"$folder/", file, "\" <<'SLUICE_END_OF_FILE'\n");
}

std::optional<std::string> file_in(const std::string& script, const std::string& name) {
  const std::string beginning = beginning_of(name);
  const size_t at = script.find(beginning);
  if (at == std::string::npos) return std::nullopt;
  const size_t from = at + beginning.size(), end = script.find(base::str("\n", kEndOfFile), from);
  if (end == std::string::npos) return std::nullopt;
  return script.substr(from, end + 1 - from);
}

// Returns the script that each host runs when it starts: the timer if it has to hold a limit, then the user's
// script, each as the unchanged file.
std::string startup_of(const SliceWish& wish, const std::string& project, const std::string& zone) {
  if (wish.idle <= 0) return wish.startup_script;
  const std::string parent = base::str("projects/", project, "/locations/", zone);
  GuardSettings guard;
  guard.node = base::str(parent, "/nodes/", wish.name, wish.slices > 1 ? "-0" : "");
  if (needs_queue(wish)) guard.queued = base::str(parent, "/queuedResources/", wish.name);
  guard.deadline = static_cast<int64_t>(wish.mark.expires);
  guard.idle = static_cast<int64_t>(wish.idle);
  std::string script = "#!/bin/sh\nset -u\nfolder=$(mktemp -d)\n";
  const auto add = [&](const std::string& name, const std::string& text, const std::string& how) {
    script += base::str(beginning_of(name), text, base::ends_with(text, "\n") ? "" : "\n", kEndOfFile,
                        "chmod 700 \"$folder/", name, "\"\n", how, " \"$folder/", name, "\"\n");
  };
  add("guard", guard_startup_script(guard), "");
  if (!wish.startup_script.empty()) add("startup", wish.startup_script, "exec");
  return script;
}

}  // namespace

const char* capacity_name(Capacity capacity) {
  switch (capacity) {
    case Capacity::kOnDemand:
      return "on-demand";
    case Capacity::kSpot:
      return "spot";
    case Capacity::kReservation:
      return "reservation";
    case Capacity::kFlexStart:
      return "flex-start";
  }
  return "?";
}

std::optional<double> price_of(const SliceWish& wish) {
  return tpu_price(wish.type, spot(wish), wish.slices);
}

base::Status check_wish(const SliceWish& wish, double now) {
  // Queue entries and the nodes of several slices have names with a suffix, which must fit too.
  SLUICE_TRY(const estimate::TpuSlice type, estimate::find_tpu_slice(wish.type));
  const bool is_group = is_compute_type(type);  // its name has the prefix sluice-
  SLUICE_OK(check_name(wish.name, "the name", is_group ? 56 : wish.slices > 1 ? 58 : 63));
  if (wish.zones.empty())
    return base::fail(Code::kInvalidArgument,
                      "no zone: --zones a,b in the order to try them, or --zones any");
  SLUICE_OK(check_zones(wish.zones));
  SLUICE_OK(check_capacity(wish));
  if (wish.idle > 0 && is_group)
    return base::fail(Code::kInvalidArgument,
                      "a limit of idle time holds for nodes of the Cloud TPU API, not for ", wish.type,
                      ": give --ttl, which Compute Engine holds");
  if (wish.mark.expires > 0 && wish.mark.expires <= now)
    return base::fail(Code::kInvalidArgument, "it would expire at ",
                      google::time_of_seconds(wish.mark.expires), ", which has passed");
  if (wish.wait_until > 0 && wish.wait_until <= now)
    return base::fail(Code::kInvalidArgument, "--wait-until ", google::time_of_seconds(wish.wait_until),
                      " has passed");
  for (const auto& [name, value] : wish.labels)
    if (label_value(value) != value || label_value(name) != name)
      return base::fail(Code::kInvalidArgument, "label ", name, "=", value,
                        ": lower-case letters, digits, - and _, at most 63 of them");
  // The line would end the file within the script that all hosts run.
  if (base::str("\n", wish.startup_script, "\n").find(base::str("\n", kEndOfFile)) != std::string::npos)
    return base::fail(
        Code::kInvalidArgument,
        "the startup script, or a value in it, has a line SLUICE_END_OF_FILE: change that line");
  return check_cost(wish, now);
}

bool take_guard(SliceWish& wish) {
  const auto guard = file_in(wish.startup_script, "guard");
  if (!guard || !has_guard(*guard)) return false;
  for (const std::string& line : base::split(*guard, '\n'))
    if (line.starts_with("idle=")) wish.idle = base::number_of<double>(line.substr(5)).value_or(0);
  wish.startup_script = file_in(wish.startup_script, "startup").value_or("");
  return true;
}

google::Texts all_labels(const SliceWish& wish) {
  google::Texts labels = wish.labels;
  for (const auto& [name, value] : labels_of(wish.mark)) labels[name] = value;
  return labels;
}

SliceWish completed(SliceWish wish, double now) {
  if (wish.mark.environment.empty()) wish.mark.environment = label_value("tpu-" + wish.name);
  if (wish.mark.owner.empty()) wish.mark.owner = default_owner();
  if (wish.mark.created == 0) wish.mark.created = now;
  return wish;
}

Json node_body(const SliceWish& wish, const estimate::TpuSlice& type, const std::string& project,
               const std::string& zone) {
  Json body = {{"acceleratorType", type.name},
               {"runtimeVersion", wish.runtime.empty() ? type.generation->runtime : wish.runtime},
               {"labels", all_labels(wish)}};
  // This must be set: by default the service gives hosts no external addresses.
  body["networkConfig"] = {{"enableExternalIps", wish.external_ips}};
  if (!wish.network.empty()) body["networkConfig"]["network"] = wish.network;
  if (!wish.subnetwork.empty()) body["networkConfig"]["subnetwork"] = wish.subnetwork;
  if (spot(wish)) body["schedulingConfig"] = {{"spot", true}};
  if (wish.capacity == Capacity::kReservation) body["schedulingConfig"] = {{"reserved", true}};
  google::Texts metadata = wish.metadata;
  if (const std::string startup = startup_of(wish, project, zone); !startup.empty())
    metadata["startup-script"] = startup;
  if (!metadata.empty()) body["metadata"] = metadata;
  const bool default_scopes = wish.scopes == std::vector<std::string>{kCloudPlatform};
  if (!wish.service_account.empty() || !default_scopes) {
    body["serviceAccount"] = {{"scope", wish.scopes}};
    if (!wish.service_account.empty()) body["serviceAccount"]["email"] = wish.service_account;
  }
  if (!wish.tags.empty()) body["tags"] = wish.tags;
  if (!wish.data_disks.empty()) body["dataDisks"] = wish.data_disks;
  return body;
}

bool needs_queue(const SliceWish& wish) {
  return wish.queued || wish.slices > 1 || wish.capacity == Capacity::kFlexStart ||
         wish.capacity == Capacity::kReservation || wish.mark.expires > 0;
}

Json queued_body(const SliceWish& wish, const estimate::TpuSlice& type, const std::string& project,
                 const std::string& zone, bool server_deadline, double now) {
  const std::string parent = base::str("projects/", project, "/locations/", zone);
  Json node = node_body(wish, type, project, zone);
  node.erase("schedulingConfig");  // the queue entry itself has it
  Json spec = {{"parent", parent}, {"node", node}};
  if (wish.slices > 1) {
    spec["multisliceParams"] = {{"nodeCount", wish.slices}, {"nodeIdPrefix", wish.name}};
  } else {
    spec["nodeId"] = wish.name;
  }
  Json body = {{"tpu", {{"nodeSpec", Json::array({spec})}}}};
  if (wish.capacity == Capacity::kSpot) body["spot"] = Json::object();
  if (wish.capacity == Capacity::kReservation) {
    const bool whole = wish.reservation.find('/') != std::string::npos;
    body["reservationName"] = whole ? wish.reservation : parent + "/reservations/" + wish.reservation;
  }
  if (wish.capacity == Capacity::kFlexStart) {
    body["provisioningModel"] = "FLEX_START";
    const double left = wish.mark.expires > 0 ? wish.mark.expires - now : wish.flex_duration;
    body["runDuration"] = {{"maxRunDuration", seconds_text(std::min(left, wish.flex_duration))}};
  } else if (server_deadline) {
    body["runDuration"] = {{"terminationTime", google::time_of_seconds(wish.mark.expires)}};
  }
  if (wish.wait_until > 0)
    body["queueingPolicy"] = {{"validUntilTime", google::time_of_seconds(wish.wait_until)}};
  return body;
}

}  // namespace sluice::provision
