#include "sluice/monitor/host_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sluice/base/clock.h"
#include "sluice/base/files/trusted_file.h"
#include "sluice/base/formats/json_bytes.h"
#include "sluice/base/formats/json_text.h"
#include "sluice/base/formats/parse_json.h"
#include "sluice/base/text/join.h"
#include "sluice/monitor/optional_json.h"
#include "sluice/monitor/status_json.h"
#include "sluice/pjrt/machine/chip_use.h"

namespace sluice::monitor {
namespace {

using nlohmann::json;

template <typename T>
std::optional<T> optional_of(const json& value) {
  return value.is_null() ? std::nullopt : std::optional(value.get<T>());
}

json to_json(const pjrt::Holder& holder) {
  return {{"process", holder.process}, {"command", holder.command}, {"user", holder.user},
          {"since", holder.since},     {"files", holder.files},     {"text", holder.text()}};
}

json to_json(const ChipMetrics& chip) {
  return {{"device", chip.device},
          {"duty_cycle_percent", optional_json(chip.duty_cycle)},
          {"memory_used_bytes", optional_json(chip.memory_used)},
          {"memory_total_bytes", optional_json(chip.memory_total)}};
}

json to_json(const SeenProcess& seen) {
  json item = base::with_bytes(json::parse(text_of(seen.status)));
  item["state"] = word_of(seen.state);
  item["age_seconds"] = seen.age;
  return item;
}

json to_json(const HostReport& report) {
  json chips = json::array(), holders = json::array(), processes = json::array();
  for (const auto& chip : report.metrics.chips) chips.push_back(to_json(chip));
  for (const auto& holder : report.holders) holders.push_back(to_json(holder));
  for (const auto& seen : report.processes) processes.push_back(to_json(seen));
  return {{"host", report.host},
          {"trouble", report.trouble},
          {"time", report.time},
          {"tpu", {{"chips", report.tpu_chips}, {"text", report.tpu}, {"files", report.tpu_files}}},
          {"tpu_program_running", report.metrics.running},
          {"faults", report.metrics.faults},
          {"chips", std::move(chips)},
          {"holders", std::move(holders)},
          {"processes", std::move(processes)}};
}

pjrt::Holder holder_of(const json& item) {
  pjrt::Holder holder;
  holder.process = item.at("process").get<int>();
  holder.command = item.at("command").get<std::string>();
  holder.user = item.at("user").get<std::string>();
  holder.since = item.at("since").get<double>();
  holder.files = item.at("files").get<std::vector<std::string>>();
  return holder;
}

ChipMetrics chip_of(const json& item) {
  return {item.at("device").get<int>(), optional_of<double>(item.at("duty_cycle_percent")),
          optional_of<uint64_t>(item.at("memory_used_bytes")),
          optional_of<uint64_t>(item.at("memory_total_bytes"))};
}

base::Result<SeenProcess> seen_of(const json& item) {
  SeenProcess seen;
  SLUICE_TRY(seen.status, status_of(item));
  const std::string state = item.at("state").get<std::string>();
  for (const auto known : {SeenProcess::State::kSilent, SeenProcess::State::kGone})
    if (state == word_of(known)) seen.state = known;
  seen.age = item.at("age_seconds").get<double>();
  return seen;
}

base::Result<HostReport> report_of(const json& item) {
  HostReport report;
  report.host = item.at("host").get<std::string>();
  report.trouble = item.at("trouble").get<std::string>();
  report.time = item.at("time").get<double>();
  report.tpu_chips = item.at("tpu").at("chips").get<int>();
  report.tpu = item.at("tpu").at("text").get<std::string>();
  report.tpu_files = item.at("tpu").at("files").get<std::vector<std::string>>();
  report.metrics.running = item.at("tpu_program_running").get<bool>();
  report.metrics.faults = item.at("faults").get<std::vector<std::string>>();
  for (const json& chip : item.at("chips")) report.metrics.chips.push_back(chip_of(chip));
  for (const json& holder : item.at("holders")) report.holders.push_back(holder_of(holder));
  for (const json& process : item.at("processes")) {
    SLUICE_TRY(SeenProcess seen, seen_of(process));
    report.processes.push_back(std::move(seen));
  }
  return report;
}

}  // namespace

HostReport look_at_host(cloud::Http& http) {
  HostReport report;
  report.host = own_identity().host;
  report.time = base::wall_seconds();
  const pjrt::Machine machine = pjrt::find_machine();
  report.tpu_chips = machine.tpu_chips;
  report.tpu = machine.tpu_text();
  report.tpu_files = machine.tpu_files;
  report.holders = pjrt::chip_holders(machine);
  report.metrics = read_runtime_metrics(http, metrics_ports());
  if (const auto folder = status_folder()) {
    report.processes = read_statuses(*folder, report.time);
    const auto own = base::check_private_folder(*folder);
    if (!own && own.error().code() == Code::kPermissionDenied)
      report.metrics.faults.push_back(base::str(own.error().what(), ": nothing there is believed"));
  }
  return report;
}

std::string text_of(const std::vector<HostReport>& reports, int indent) {
  json hosts = json::array();
  for (const HostReport& report : reports) hosts.push_back(to_json(report));
  return base::json_text(json{{"hosts", std::move(hosts)}}, indent);
}

base::Result<HostReport> parse_report(const std::string& text) {
  try {
    return report_of(base::with_bytes(base::parse_json(text)).at("hosts").at(0));
  } catch (const json::exception& error) {
    return base::fail(Code::kDataLoss,
                      "expected what `sluice top --json` of this version prints: ", error.what());
  }
}

const pjrt::Holder* holder_of_chip(const HostReport& report, size_t chip) {
  if (chip >= report.tpu_files.size()) return nullptr;
  for (const pjrt::Holder& holder : report.holders) {
    // A process that only holds libtpu's lock holds all chips.
    const auto& files = holder.files;
    if (files.empty() || std::find(files.begin(), files.end(), report.tpu_files[chip]) != files.end())
      return &holder;
  }
  return nullptr;
}

}  // namespace sluice::monitor
