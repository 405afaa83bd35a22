#include "sluice/cli/monitor/profile_capture.h"

#include <poll.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>
#include <vector>

#include "sluice/base/clock.h"
#include "sluice/base/formats/base64.h"
#include "sluice/base/formats/parse_json.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/cli/monitor/host_flags.h"
#include "sluice/cloud/grpc.h"
#include "sluice/pod/ssh/quote.h"
#include "sluice/pod/ssh/ssh.h"
#include "sluice/pod/ssh/upload.h"

namespace sluice::cli {
namespace {

constexpr int kTries = 5;
constexpr double kLead = 0.5, kRemoteLead = 4;  // seconds from the choice of a first step to that step
constexpr int64_t kMinSteps = 3;                // the same in steps; the host runs ahead by two
constexpr double kHour = 3600;                  // limits a whole profile, with the steps before it
constexpr size_t kMaxAnswer = size_t{1} << 30, kLine = 48 << 10;  // bytes

// The request that all processes get.
struct Plan {
  std::optional<profile::StepRange> steps;
  int64_t duration_ms = 0, start_ns = 0;

  std::string what() const {
    if (!steps) return base::str(duration_ms, " ms");
    if (steps->end == steps->first + 1) return base::str("the step ", steps->first);
    return base::str("the steps ", steps->first, " to ", steps->end - 1);
  }
};

// Returns the number of steps in this time; 0 if the time of a step is not known.
int64_t steps_in(double seconds, double step_ms) {
  return step_ms > 0 ? static_cast<int64_t>(std::ceil(1000 * seconds / step_ms)) : 0;
}

Plan plan_for(const ProfileTargets& targets, const ProfileWish& wish, double lead) {
  if (wish.range) return {wish.range, 0, 0};
  if (wish.steps == 0)
    return {std::nullopt, wish.duration_ms,
            wish.start_ns > 0 ? wish.start_ns : profile::wall_nanoseconds() + std::llround(lead * 1e9)};
  int64_t first = 0;
  double step_ms = 0;
  for (const ProfileTarget& target : targets.list()) {
    const double own = target.status.step_ms, age = base::wall_seconds() - target.status.time;
    first = std::max(first, target.status.step + steps_in(std::clamp(age, 0.0, 30.0), own));
    if (own > 0 && (step_ms == 0 || own < step_ms)) step_ms = own;
  }
  first += 1 + std::max(kMinSteps, steps_in(lead, step_ms));
  return {profile::StepRange{first, first + wish.steps}, 0, 0};
}

// All requests of one plan, which run at the same time.
class Attempt {
 public:
  Attempt(ProfileTargets& targets, const Plan& plan) : targets_(targets), plan_(plan) {
    std::map<size_t, std::vector<std::string>> hosts;  // by worker: addresses
    for (const ProfileTarget& target : targets.list()) {
      if (target.worker)
        hosts[*target.worker].push_back(target.address);
      else
        threads_.emplace_back([this, &target] { finish(ask(target)); });
    }
    for (const auto& [worker, addresses] : hosts)
      threads_.emplace_back(
          [this, worker = worker, addresses = addresses] { finish(ask_host(worker, addresses)); });
    left_ = threads_.size();
  }
  ~Attempt() {
    cancelled_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  bool is_done() const { return done_ == left_; }
  // Valid once is_done(). The first error is the one that ended the other requests.
  base::Result<std::map<std::string, std::string>> result() {
    const std::lock_guard lock(mutex_);
    if (error_) return tl::unexpected<Error>(*error_);
    return std::move(files_);
  }

 private:
  using Files = std::map<std::string, std::string>;

  void finish(base::Result<Files> files) {
    {
      const std::lock_guard lock(mutex_);
      if (files)
        files_.merge(*files);
      else if (!error_)
        error_ = files.error();
      if (error_) cancelled_ = true;
    }
    ++done_;
  }

  base::Result<Files> ask(const ProfileTarget& target) {
    const monitor::ProcessIdentity& who = target.status.identity;
    profile::ProfileRequest request;
    request.steps = plan_.steps;
    request.duration_ms = plan_.duration_ms;
    request.start_ns = plan_.start_ns;
    request.session = base::str("sluice-", profile::wall_nanoseconds());
    const auto answer = cloud::call_grpc(targets_.http(), {.address = target.address,
                                                           .method = profile::kProfileMethod,
                                                           .message = text_of(request),
                                                           .timeout = kHour,
                                                           .max_answer = kMaxAnswer,
                                                           .cancelled = &cancelled_});
    if (!answer) return base::fail_at(answer, base::str("process ", who.index, " at ", target.address));
    SLUICE_TRY(auto response, profile::parse_profile_response(*answer));
    // The name comes from another process, so it must not be a path.
    std::string name = profile::file_name(who.host, who.index, who.count);
    std::replace_if(
        name.begin(), name.end(), [](char c) { return c == '/' || static_cast<unsigned char>(c) < ' '; },
        '_');
    if (name.empty() || name[0] == '.') name.insert(0, "_");
    {
      // Two trainings with one process each may run on the same host.
      const std::lock_guard lock(mutex_);
      if (!names_.insert(name).second) name += "-" + target.address.substr(target.address.rfind(':') + 1);
    }
    Files files;
    for (profile::ProfileFile& file : response.files)
      if (std::ranges::find(profile::kFileEndings, file.ending) != profile::kFileEndings.end())
        files[base::str(name, ".", file.ending)] = std::move(file.bytes);
    if (files.empty())
      return base::fail(Code::kDataLoss, "process ", who.index, " at ", target.address, " gave no profile");
    return files;
  }

  // Asks through the host's own `sluice`.
  base::Result<Files> ask_host(size_t worker, const std::vector<std::string>& addresses) {
    std::vector<std::string> words = {"profile", base::join(addresses, ","), "--out", "-"};
    if (plan_.steps)
      words.insert(words.end(), {"--steps", base::str(plan_.steps->first, ":", plan_.steps->end)});
    else
      words.insert(words.end(), {"--duration", base::str(plan_.duration_ms, "ms"), "--start-ns",
                                 std::to_string(plan_.start_ns)});
    const pod::Job& job = *targets_.job();
    SLUICE_TRY(auto child, pod::Upload::start(pod::shell_command(job, job.workers[worker]),
                                              sluice_script(words, job.program.sha256)));
    Files files;
    while (!child.has_ended()) {
      if (cancelled_) return base::fail(Code::kCancelled, "another process failed");
      std::vector<pollfd> polled;
      child.add_to(polled);
      ::poll(polled.data(), polled.size(), 100);
      child.move();
      while (const auto line = child.take_line()) SLUICE_OK(add_line(files, *line));
    }
    const std::string host = job.workers[worker].address, messages(base::trim(child.messages()));
    if (pod::is_ssh_failure(child.status()))
      return base::fail(Code::kUnavailable, pod::explain_ssh(job, job.workers[worker], messages));
    if (child.status() == kBehind)
      return base::fail(Code::kFailedPrecondition, host, ": ", pod::in_quotes(messages));
    if (child.status() != 0) return base::fail(Code::kUnavailable, host, ": ", pod::in_quotes(messages));
    return files;
  }

  ProfileTargets& targets_;
  const Plan plan_;
  std::mutex mutex_;
  Files files_;
  std::set<std::string> names_;
  std::optional<Error> error_;
  std::atomic<bool> cancelled_{false};
  std::atomic<size_t> done_{0};
  size_t left_ = 0;
  std::vector<std::thread> threads_;
};

// Returns the progress of the processes, as one line.
std::string progress_of(ProfileTargets& targets, const Plan& plan) {
  if (!plan.steps) return base::str("taking ", plan.what());
  const ProfileTarget& target = targets.list().front();
  if (target.worker) return base::str("taking ", plan.what());
  const auto answer = cloud::call_grpc(
      targets.http(), {.address = target.address, .method = profile::kStatusMethod, .timeout = 1});
  const auto status = answer ? monitor::parse_status(*answer) : base::fail(Code::kUnavailable, "");
  return base::str("taking ", plan.what(), status ? base::str("; now at ", status->step) : "");
}

// Returns "at step 1200" or "at steps 1200 to 1203".
std::string place_of(const std::vector<ProfileTarget>& targets) {
  const auto [low, high] =
      std::minmax_element(targets.begin(), targets.end(),
                          [](const auto& a, const auto& b) { return a.status.step < b.status.step; });
  if (low->status.step == high->status.step) return base::str("at step ", low->status.step);
  return base::str("at steps ", low->status.step, " to ", high->status.step);
}

}  // namespace

base::Result<ProfileFiles> capture_profile(ProfileTargets& targets, const ProfileWish& wish,
                                           const std::function<void(const std::string&)>& say,
                                           const std::function<void(const std::string&)>& progress) {
  SLUICE_OK(targets.look());
  double lead = targets.job() ? kRemoteLead : kLead;
  for (int tries = 1;; ++tries, lead *= 2) {
    const Plan plan = plan_for(targets, wish, lead);
    const size_t count = targets.list().size();
    say(base::str(count, count == 1 ? " process, " : " processes, ", place_of(targets.list()), "; taking ",
                  plan.what()));
    base::Result<std::map<std::string, std::string>> files = base::fail(Code::kUnknown, "");
    {
      Attempt attempt(targets, plan);
      const base::Stopwatch watch;
      for (double shown = 0; !attempt.is_done(); std::this_thread::sleep_for(std::chrono::milliseconds(20)))
        if (watch.seconds() > shown + 0.5) {
          shown = watch.seconds();
          progress(progress_of(targets, plan));
        }
      files = attempt.result();
    }
    if (files) return ProfileFiles{plan.what(), std::move(*files)};
    // Steps that were chosen here but had already begun are chosen again.
    if (wish.steps == 0 || files.error().code() != Code::kFailedPrecondition || tries == kTries)
      return tl::unexpected<Error>(files.error());
    SLUICE_OK(targets.look());
  }
}

std::string lines_of(const std::map<std::string, std::string>& files) {
  std::string lines;
  for (const auto& [name, bytes] : files) {
    for (size_t at = 0; at < bytes.size(); at += kLine) {
      const std::string_view piece = std::string_view(bytes).substr(at, kLine);
      lines += nlohmann::json({{"file", name}, {"base64", base::base64(piece)}}).dump() + "\n";
    }
  }
  return lines;
}

base::Status add_line(std::map<std::string, std::string>& files, const std::string& line) {
  const auto document = base::parse_json(line);
  const bool fits = document.is_object() && document.contains("file") && document["file"].is_string() &&
                    document.contains("base64") && document["base64"].is_string();
  const auto bytes = fits ? base::bytes_of_base64(document["base64"].get<std::string>()) : std::nullopt;
  const std::string name = fits ? document["file"].get<std::string>() : "";
  if (!bytes || name.empty() || name[0] == '.' || name.find('/') != std::string::npos)
    return base::fail(Code::kDataLoss, "expected a line with a part of a profile, found \"",
                      line.substr(0, 100), "\"");
  files[name] += *bytes;
  return {};
}

}  // namespace sluice::cli
