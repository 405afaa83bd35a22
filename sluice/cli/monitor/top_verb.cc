// sluice top
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <thread>

#include "sluice/base/clock.h"
#include "sluice/cli/monitor/host_flags.h"
#include "sluice/cli/monitor/host_looks.h"
#include "sluice/cli/monitor/top_screen.h"
#include "sluice/cli/monitor/top_table.h"
#include "sluice/cli/verbs.h"
#include "sluice/pod/record.h"

namespace sluice::cli {
namespace {

using monitor::HostReport;

struct TopFlags {
  HostFlags where;
  std::string run;
  bool once = false, json = false;
};

// The subject of the view: this machine or hosts, with all processes or one run's.
class View {
 public:
  explicit View(const TopFlags& flags) {
    std::optional<pod::Job> job;
    if (flags.run.empty()) {
      job = hosts_of(flags.where, "top");
    } else {
      if (!flags.where.hosts.empty() || !flags.where.tpu.name.empty())
        throw Usage("--run names a run, which has its hosts: leave --hosts and --tpu out");
      run_ = base::value_or_throw(pod::find_run(flags.run));
      if (!pod::is_local(run_->job)) job = run_->job;
    }
    if (job) looks_.emplace(std::move(*job));
  }

  // The first look waits for all hosts, at most `patience` seconds; a later one takes half a second.
  std::vector<HostReport> look(double patience = 2) {
    std::vector<HostReport> reports;
    if (looks_) {
      looks_->take(looked_ ? 0.5 : patience, /*all=*/!looked_);
      reports = looks_->reports(base::monotonic_seconds());
    } else {
      reports.push_back(monitor::look_at_host(http_));
    }
    looked_ = true;
    if (run_) keep_run(reports);
    return reports;
  }

  std::string title() const {
    return base::str("sluice top  ", base::local_time(), run_ ? "  run " + run_->job.id : "", "   q ends");
  }

 private:
  // Leaves only the run's processes, and reports what they do not: that it is over, or how many are silent.
  void keep_run(std::vector<HostReport>& reports) {
    if (auto now = pod::load(run_->job.id)) run_ = std::move(*now);
    size_t known = 0;
    for (HostReport& report : reports) {
      std::erase_if(report.processes, [&](const monitor::SeenProcess& seen) {
        return seen.status.identity.run != run_->job.id;
      });
      known += report.processes.size();
    }
    if (reports.empty()) return;
    std::string& trouble = reports.front().trouble;
    if (!trouble.empty()) return;
    if (run_->is_over())
      trouble = base::str("the run ", run_->job.id, " is over: ", run_->state,
                          run_->cause.empty() ? "" : ", ", run_->cause);
    else if (known < run_->job.workers.size())
      trouble = base::str(
          known, " of the run's ", run_->job.workers.size(),
          " workers say how far they are; others are not programs of Sluice, or have not begun yet");
  }

  cloud::Http http_;
  std::optional<HostLooks> looks_;
  std::optional<pod::RunRecord> run_;
  bool looked_ = false;
};

void print_json(const std::vector<HostReport>& reports, int indent) {
  std::printf("%s\n", monitor::text_of(reports, indent).c_str());
}

int run_top(const TopFlags& flags) {
  View view(flags);
  if (flags.once) {
    const auto reports = view.look(kAnswerSeconds);
    if (flags.json) {
      print_json(reports, 2);
    } else {
      for (std::string line : top_lines(reports)) {
        if (!line.empty() && line[0] == kHeading) line.erase(0, 1);
        std::printf("%s\n", line.c_str());
      }
    }
    // For a script, a host that does not answer is a failure.
    return std::all_of(reports.begin(), reports.end(),
                       [](const HostReport& report) { return report.time > 0; })
               ? 0
               : 1;
  }
  if (!flags.json) {
    show_screen([&] { return view.title(); }, [&] { return top_lines(view.look()); });
    return 0;
  }
  // Prints a line each second until the reader is gone.
  std::signal(SIGPIPE, SIG_IGN);
  while (true) {
    print_json(view.look(), -1);
    if (std::fflush(stdout) != 0) return 0;
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
}

}  // namespace

Verb top_verb() {
  auto flags = std::make_shared<TopFlags>();
  return {.name = "top",
          .help = "Watch training processes and TPU chips while they work",
          .footer =
              "sluice top                        this machine, each second; q ends\n"
              "sluice top --run NAME             the processes of a run, on all of its hosts\n"
              "sluice top --hosts a,b --once     these hosts, once\n"
              "sluice top --json                 a line of JSON each second",
          .add_flags =
              [flags](CLI::App& app) {
                app.add_option("--run", flags->run, "A run of `sluice run`: its name or the beginning of it")
                    ->group("Where");
                add_host_flags(app, flags->where);
                app.add_flag("--once", flags->once, "Print it once, without filling the screen");
                app.add_flag("--json", flags->json,
                             "As JSON: with --once one object, else one on a line each second");
              },
          .run = [flags] { return run_top(*flags); }};
}

}  // namespace sluice::cli
