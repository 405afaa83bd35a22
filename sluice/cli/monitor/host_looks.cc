#include "sluice/cli/monitor/host_looks.h"

#include <poll.h>

#include <algorithm>
#include <cmath>

#include "sluice/base/clock.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/cli/monitor/host_flags.h"
#include "sluice/pod/ssh/quote.h"
#include "sluice/pod/ssh/ssh.h"

namespace sluice::cli {
namespace {

constexpr double kAgainSeconds = 5, kStaleSeconds = 5;

}  // namespace

void HostLooks::connect(Host& host) {
  const pod::Worker& worker = job_.workers[host.worker];
  auto upload = pod::Upload::start(pod::shell_command(job_, worker),
                                   sluice_script({"top", "--json"}, job_.program.sha256));
  host.again = base::monotonic_seconds() + kAgainSeconds;
  if (upload)
    host.upload.emplace(std::move(*upload));
  else
    host.trouble = upload.error().what();
}

void HostLooks::read(Host& host) {
  host.upload->move();
  while (const auto line = host.upload->take_line()) {
    auto report = monitor::parse_report(*line);
    if (!report) {
      host.trouble = report.error().what();
      continue;
    }
    host.report = std::move(*report);
    host.report->host = job_.workers[host.worker].address;
    host.heard = base::monotonic_seconds();
    host.trouble.clear();
  }
  if (!host.upload->has_ended()) return;
  const std::string messages(base::trim(host.upload->messages()));
  const int status = host.upload->status();
  if (pod::is_ssh_failure(status))
    host.trouble = pod::explain_ssh(job_, job_.workers[host.worker], messages);
  else if (host.trouble.empty())
    host.trouble = base::str("its sluice ended with status ", status,
                             messages.empty() ? "" : ": " + pod::in_quotes(messages));
  host.upload.reset();
}

HostLooks::HostLooks(pod::Job job) : job_(std::move(job)) {
  for (size_t worker = 0; worker < job_.workers.size(); ++worker)
    if (job_.workers[worker].local_index == 0) hosts_.push_back({worker, {}, {}, "", 0, 0});
}

void HostLooks::take(double seconds, bool all) {
  const base::Stopwatch watch;
  for (double left = seconds; left > 0; left = seconds - watch.seconds()) {
    std::vector<pollfd> polled;
    for (Host& host : hosts_) {
      if (!host.upload && base::monotonic_seconds() >= host.again) connect(host);
      if (host.upload) host.upload->add_to(polled);
    }
    ::poll(polled.data(), polled.size(), static_cast<int>(std::min(left, 0.2) * 1000));
    for (Host& host : hosts_)
      if (host.upload) read(host);
    const auto has_said = [](const Host& host) { return host.report.has_value() || !host.trouble.empty(); };
    if (all && std::all_of(hosts_.begin(), hosts_.end(), has_said)) return;
  }
}

std::vector<monitor::HostReport> HostLooks::reports(double now) const {
  std::vector<monitor::HostReport> reports;
  for (const Host& host : hosts_) {
    monitor::HostReport report = host.report.value_or(monitor::HostReport());
    report.host = job_.workers[host.worker].address;
    report.trouble = host.trouble;
    const double silent = now - host.heard;
    if (report.trouble.empty() && !host.report)
      report.trouble = "no answer yet";
    else if (report.trouble.empty() && silent > kStaleSeconds)
      report.trouble = base::str("no answer for ", std::lround(silent), " s");
    reports.push_back(std::move(report));
  }
  return reports;
}

}  // namespace sluice::cli
