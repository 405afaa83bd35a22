#include "sluice/cli/monitor/profile_targets.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "sluice/base/clock.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/cli/verb.h"
#include "sluice/cloud/grpc.h"
#include "sluice/cloud/listen.h"
#include "sluice/pod/record.h"
#include "sluice/profile/service/profiler_messages.h"

namespace sluice::cli {
namespace {

// Returns the address at which a listener on this machine is reached.
std::string reach(const std::string& address) {
  auto parsed = value_or_usage(cloud::parse_listen_address(address, "the profiler's address"));
  if (parsed.port == 0) throw Usage(base::str(address, ": the port of a training is above 0"));
  if (parsed.host == "0.0.0.0") parsed.host = "127.0.0.1";
  if (parsed.host == "::") parsed.host = "::1";
  return cloud::text_of(parsed);
}

base::Result<monitor::ProcessStatus> ask_status(cloud::Http& http, const std::string& address) {
  const auto answer =
      cloud::call_grpc(http, {.address = address, .method = profile::kStatusMethod, .timeout = 10});
  if (!answer && answer.error().code() == Code::kUnavailable)
    return base::fail(Code::kUnavailable, "nobody takes profiles at ", address,
                      ": does the training run there, and was it started with --profiler-port? (",
                      answer.error().what(), ")");
  if (!answer) return base::fail_at(answer, address);
  return monitor::parse_status(*answer);
}

}  // namespace

ProfileTargets ProfileTargets::at(const std::string& addresses) {
  ProfileTargets targets;
  for (const std::string& part : base::split(addresses, ','))
    targets.targets_.push_back({reach(std::string(base::trim(part))), {}, std::nullopt});
  return targets;
}

ProfileTargets ProfileTargets::of_run(const std::string& name) {
  ProfileTargets targets;
  const pod::RunRecord run = base::value_or_throw(pod::find_run(name));
  if (run.is_over())
    throw_error(Code::kFailedPrecondition, base::str("the run ", run.job.id, " is over: ", run.state,
                                                     run.cause.empty() ? "" : ", ", run.cause));
  targets.run_ = run.job.id;
  targets.workers_ = run.job.workers.size();
  if (!pod::is_local(run.job)) {
    targets.job_ = run.job;
    targets.looks_.emplace(run.job);
  }
  return targets;
}

base::Status ProfileTargets::look() {
  if (!run_.empty()) SLUICE_OK(look_at_run());
  for (ProfileTarget& target : targets_) {
    if (target.worker) continue;
    SLUICE_TRY(target.status, ask_status(*http_, target.address));
  }
  return {};
}

base::Status ProfileTargets::look_at_run() {
  struct Seen {
    monitor::SeenProcess process;
    std::optional<size_t> worker;
  };
  std::vector<Seen> seen;
  if (looks_) {
    looks_->take(kAnswerSeconds, /*all=*/true);
    const auto reports = looks_->reports(base::monotonic_seconds());
    size_t host = 0;
    for (size_t worker = 0; worker < job_->workers.size(); ++worker) {
      if (job_->workers[worker].local_index != 0) continue;
      const monitor::HostReport& report = reports.at(host++);
      if (!report.trouble.empty()) return base::fail(Code::kUnavailable, report.host, ": ", report.trouble);
      for (const auto& process : report.processes) seen.push_back({process, worker});
    }
  } else if (const auto folder = monitor::status_folder()) {
    for (auto& process : monitor::read_statuses(*folder, base::wall_seconds()))
      seen.push_back({std::move(process), std::nullopt});
  }
  std::erase_if(seen, [&](const Seen& one) { return one.process.status.identity.run != run_; });
  targets_.clear();
  for (Seen& one : seen) {
    const monitor::ProcessIdentity& who = one.process.status.identity;
    if (one.process.state == monitor::SeenProcess::State::kGone)
      return base::fail(Code::kUnavailable, "process ", who.index, " of the run ", run_, " was killed");
    if (who.profiler.empty())
      return base::fail(Code::kFailedPrecondition, "process ", who.index, " of the run ", run_,
                        " takes no profiles: start the training with --profiler-port 9012");
    targets_.push_back({reach(who.profiler), std::move(one.process.status), one.worker});
  }
  if (targets_.empty())
    return base::fail(Code::kFailedPrecondition, "not one of the ", workers_, " workers of the run ", run_,
                      " reports its progress: they are not Sluice programs, or have not begun yet");
  return {};
}

}  // namespace sluice::cli
