#include "sluice/cli/monitor/top_table.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "sluice/base/text/join.h"
#include "sluice/base/text/printable.h"
#include "sluice/base/text/table.h"

namespace sluice::cli {
namespace {

using monitor::HostReport;
using Rows = std::vector<std::vector<std::string>>;

std::string number(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string percent(const std::optional<double>& part) {
  return part ? base::str(std::lround(100 * *part), " %") : "-";
}

// Returns a process's state; for a silent one with the time since its last report.
std::string state_of(const monitor::SeenProcess& seen) {
  if (seen.state == monitor::SeenProcess::State::kSilent)
    return base::str("silent ", std::lround(seen.age), " s");
  return word_of(seen.state);
}

// Returns the quantiles of a step's time, or else its mean.
std::string step_text(const monitor::ProcessStatus& status) {
  if (status.step_p50_ms && status.step_p95_ms)
    return base::str(number(*status.step_p50_ms, 1), "/", number(*status.step_p95_ms, 1));
  return status.step_ms > 0 ? number(status.step_ms, 1) : "-";
}

std::string gib(double bytes) { return number(bytes / (1 << 30), 1); }

std::string memory_text(const monitor::ProcessStatus& status) {
  if (!status.memory_in_use) return "-";
  const std::string peak = status.memory_peak ? "/" + gib(static_cast<double>(*status.memory_peak)) : "";
  return base::str(gib(static_cast<double>(*status.memory_in_use)), peak, " GiB");
}

std::vector<std::string> row_of(const HostReport& report, const monitor::SeenProcess& seen) {
  const monitor::ProcessStatus& status = seen.status;
  const bool moves = seen.state == monitor::SeenProcess::State::kRunning;
  const auto share = [&](double monitor::TimeShares::*part) {
    return percent(moves && status.shares ? std::optional((*status.shares).*part) : std::nullopt);
  };
  return {report.host,
          base::str(status.identity.index, "/", status.identity.count,
                    status.identity.slice < 0 ? "" : base::str(" slice ", status.identity.slice)),
          std::to_string(status.identity.process),
          state_of(seen),
          std::to_string(status.epoch),
          std::to_string(status.step),
          moves ? step_text(status) : "-",
          moves && status.rate > 0 ? number(status.rate, 1) : "-",
          percent(moves ? status.mfu : std::nullopt),
          share(&monitor::TimeShares::input),
          share(&monitor::TimeShares::trace),
          share(&monitor::TimeShares::device),
          moves ? memory_text(status) : "-",
          status.identity.run.empty() ? "-" : status.identity.run,
          status.identity.program};
}

std::string memory_text(const monitor::ChipMetrics& chip) {
  if (!chip.memory_used || !chip.memory_total) return "-";
  return base::str(gib(static_cast<double>(*chip.memory_used)), " of ",
                   gib(static_cast<double>(*chip.memory_total)), " GiB");
}

// Adds a row for each device in the metrics; without metrics, for each chip, so that its holder is shown.
void add_chips(const HostReport& report, Rows& rows) {
  const auto holder = [&](size_t chip) {
    const pjrt::Holder* found = monitor::holder_of_chip(report, chip);
    return found == nullptr ? std::string("-") : found->text();
  };
  const auto& devices = report.metrics.chips;
  // On v2 and v3 the devices are cores, two on each chip.
  const size_t cores = report.tpu_files.empty() || devices.size() % report.tpu_files.size() != 0
                           ? 1
                           : std::max<size_t>(1, devices.size() / report.tpu_files.size());
  for (size_t i = 0; i < devices.size(); ++i) {
    const auto& device = devices[i];
    rows.push_back({report.host, std::to_string(device.device),
                    device.duty_cycle ? number(*device.duty_cycle, 1) + " %" : "-", memory_text(device),
                    holder(i / cores)});
  }
  for (size_t i = 0; devices.empty() && i < report.tpu_files.size(); ++i)
    rows.push_back({report.host, std::to_string(i), "-", "-", holder(i)});
}

void add_table(std::vector<std::string>& lines, const Rows& rows, const char* none) {
  if (rows.size() == 1) {
    if (none[0] != '\0') lines.push_back(none);
    return;
  }
  for (std::string& line : base::table_lines(rows)) lines.push_back(std::move(line));
  lines[lines.size() - rows.size()].insert(0, 1, kHeading);
}

}  // namespace

std::vector<std::string> top_lines(const std::vector<HostReport>& reports) {
  Rows processes = {{"HOST", "PROCESS", "PID", "STATE", "EPOCH", "STEP", "STEP MS", "RATE/S", "MFU", "INPUT",
                     "TRACE", "DEVICE", "MEMORY", "RUN", "PROGRAM"}};
  Rows chips = {{"HOST", "CHIP", "DUTY", "HBM", "HELD BY"}};
  std::vector<std::string> remarks;
  const auto remark = [&](const HostReport& report, const std::string& text) {
    remarks.push_back(base::printable_line(report.host + ": " + text));
  };
  for (const HostReport& report : reports) {
    for (const auto& seen : report.processes) processes.push_back(row_of(report, seen));
    add_chips(report, chips);
    if (!report.trouble.empty()) {
      remark(report, report.trouble);
      continue;
    }
    for (const std::string& fault : report.metrics.faults) remark(report, fault);
    if (!report.metrics.running)
      remark(report,
             base::str(report.tpu, report.tpu_chips > 0 ? "; " : ", and ", "no TPU program is running"));
  }
  std::vector<std::string> lines;
  add_table(lines, processes, "no training process of Sluice is known here");
  lines.emplace_back();
  add_table(lines, chips, "");
  if (chips.size() > 1) lines.emplace_back();
  lines.insert(lines.end(), remarks.begin(), remarks.end());
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

}  // namespace sluice::cli
