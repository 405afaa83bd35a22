// Observes hosts: each has one connection, through which its own `sluice top` reports once a second.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sluice/monitor/host_report.h"
#include "sluice/pod/job.h"
#include "sluice/pod/ssh/upload.h"

namespace sluice::cli {

constexpr double kAnswerSeconds = 30;  // after this long a silent host counts as failed

// Threads: one.
class HostLooks {
 public:
  explicit HostLooks(pod::Job job);

  // Reads reports for this number of seconds, or (`all`) until every host has reported or failed. A
  // connection that ended is re-opened some seconds later.
  void take(double seconds, bool all);
  // Returns each host's latest report, in the job's order; a host that has fallen silent has the reason.
  std::vector<monitor::HostReport> reports(double now) const;

 private:
  struct Host {
    size_t worker;
    std::optional<pod::Upload> upload;
    std::optional<monitor::HostReport> report;
    std::string trouble;
    double again = 0, heard = 0;  // monotonic seconds: of the next connection, of the last report
  };
  void connect(Host& host);
  void read(Host& host);

  pod::Job job_;
  std::vector<Host> hosts_;
};

}  // namespace sluice::cli
