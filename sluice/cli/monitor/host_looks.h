// Looks at hosts again and again: each has one connection, over which its own `sluice top` tells once a
// second.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sluice/monitor/host_report.h"
#include "sluice/pod/job.h"
#include "sluice/pod/upload.h"

namespace sluice::cli {

constexpr double kAnswerSeconds = 30;  // until a host that says nothing counts as failed

// Threads: one.
class HostLooks {
 public:
  explicit HostLooks(pod::Job job);

  // Takes what comes for so many seconds, or (`all`) until every host has said something or failed. A
  // connection that ended is made again some seconds later.
  void take(double seconds, bool all);
  // What each host said last, in the job's order; one that says nothing any longer, with the reason.
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
