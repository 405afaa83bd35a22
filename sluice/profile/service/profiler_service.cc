#include "sluice/profile/service/profiler_service.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

#include "sluice/base/clock.h"
#include "sluice/base/text/join.h"
#include "sluice/base/thread.h"

namespace sluice::profile {
namespace {

constexpr int kMaxWorkers = 8;
constexpr int64_t kMs = 1'000'000, kSecond = 1000 * kMs;         // nanoseconds
constexpr int64_t kMaxDuration = 600'000, kMaxMonitor = 60'000;  // milliseconds
constexpr int64_t kMaxDelay = 60 * kSecond, kMaxSteps = 10'000;
// How often a worker checks whether its client still waits.
constexpr std::chrono::milliseconds kLook{20};

base::Status check(const ProfileRequest& request) {
  if (request.steps) {
    const auto [first, end] = *request.steps;
    if (first >= 1 && end > first && end - first <= kMaxSteps) return {};
    return base::fail(Code::kInvalidArgument, "the steps of a profile: expected FIRST:END with 1 <= FIRST < ",
                      "END and ", kMaxSteps, " steps at most, found ", first, ":", end);
  }
  if (request.duration_ms < 1 || request.duration_ms > kMaxDuration)
    return base::fail(Code::kInvalidArgument, "the duration of a profile: expected 1 to ", kMaxDuration,
                      " ms, found ", request.duration_ms);
  if (request.start_ns > wall_nanoseconds() + kMaxDelay)
    return base::fail(Code::kInvalidArgument,
                      "a profile can begin within the next minute; look at both machines' clocks");
  return {};
}

bool is_empty(const Captured& captured) {
  return captured.device.empty() &&
         std::all_of(captured.recording.lines.begin(), captured.recording.lines.end(),
                     [](const base::SpanLine& line) { return line.spans.empty(); });
}

std::string fixed(const char* form, double value) {
  char text[64];
  std::snprintf(text, sizeof text, form, value);
  return text;
}

// Returns the figures as readable text, without the unknown ones.
std::string in_words(const Figures& figures, bool timestamp) {
  std::string out;
  if (timestamp) out += base::str("Timestamp: ", base::utc_time(base::wall_seconds(), "%H:%M:%S"), " UTC\n");
  out += base::str("Step: ", figures.step, ", epoch ", figures.epoch, "\n");
  if (figures.step_ms > 0) out += base::str("Step time: ", fixed("%.3f", figures.step_ms), " ms\n");
  if (figures.rate > 0) out += base::str("Examples a second: ", fixed("%.1f", figures.rate), "\n");
  const auto share = [&](const char* name, const std::optional<double>& part) {
    if (part) out += base::str(name, fixed("%.1f", 100 * *part), " %\n");
  };
  share("Device busy: ", figures.device);
  if (figures.device) share("Device idle: ", 1 - *figures.device);
  share("Waiting for input: ", figures.input);
  share("Recording on the host: ", figures.trace);
  return out;
}

}  // namespace

base::Result<std::unique_ptr<ProfilerService>> ProfilerService::start(const cloud::ListenAddress& address,
                                                                      Training training,
                                                                      const GrpcLimits& limits) {
  SLUICE_TRY(auto listener, cloud::Listener::open(address, "the profiler's port"));
  std::unique_ptr<ProfilerService> service(new ProfilerService(std::move(training)));
  service->server_ = std::make_unique<GrpcServer>(
      std::move(listener), [self = service.get()](const Call& call) { self->handle(call); }, limits);
  return service;
}

ProfilerService::~ProfilerService() {
  training_.requests->end();
  {
    std::unique_lock lock(mutex_);
    ends_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return workers_ == 0; });
  }
  server_.reset();  // sends their answers
}

void ProfilerService::handle(const Call& call) {
  if (call->method == kStatusMethod) return call->answer(training_.status());
  if (call->method == kTerminateMethod) return call->answer(terminate(*call));
  if (call->method == kProfileMethod) return work(call, &ProfilerService::profile);
  if (call->method == kMonitorMethod) return work(call, &ProfilerService::monitor);
  call->answer(base::fail(Code::kUnimplemented, "there is no ", call->method.substr(0, 100),
                          " here: Profile, Terminate and Monitor of tensorflow.ProfilerService are"));
}

void ProfilerService::work(const Call& call, Answer (ProfilerService::*what)(const GrpcCall&)) {
  {
    const std::lock_guard lock(mutex_);
    if (ends_) return call->answer(base::fail(Code::kUnavailable, "the training ends"));
    if (workers_ == kMaxWorkers)
      return call->answer(
          base::fail(Code::kResourceExhausted, kMaxWorkers, " requests are at work: try again later"));
    ++workers_;
  }
  std::thread([this, call, what] {
    base::name_thread("sluice-capture");
    call->answer((this->*what)(*call));
    const std::lock_guard lock(mutex_);
    --workers_;
    changed_.notify_all();
  }).detach();
}

ProfilerService::Answer ProfilerService::profile(const GrpcCall& call) {
  SLUICE_TRY(const ProfileRequest request, parse_profile_request(call.message));
  SLUICE_OK(check(request));
  {
    const std::lock_guard lock(mutex_);
    if (capturing_)
      return base::fail(Code::kUnavailable,
                        "a profile of this process is being taken; try again when it is done");
    capturing_ = true;
    terminated_ = false;
    session_ = request.session;
  }
  auto captured = request.steps ? capture_steps(call, request) : capture(call, request);
  {
    const std::lock_guard lock(mutex_);
    capturing_ = false;
  }
  if (!captured) return tl::unexpected<Error>(captured.error());
  SLUICE_TRY(auto files, files_of(*captured, training_.about));
  ProfileResponse response;
  response.empty = is_empty(*captured);
  if (request.emit_xspace)
    response.xspace = std::move(files.front().bytes);
  else
    response.files = std::move(files);
  return text_of(response);
}

base::Result<Captured> ProfilerService::capture(const GrpcCall& call, const ProfileRequest& request) {
  const int64_t delay = request.start_ns == 0 ? 0 : request.start_ns - wall_nanoseconds();
  const int64_t begin = base::span_clock() + std::max<int64_t>(delay, 0);
  wait_until(begin, call, request.session);
  if (base::span_clock() < begin)
    return base::fail(Code::kCancelled,
                      "the training ended before the profile began, or nobody waits for it");
  SLUICE_TRY(Capture capture, Capture::start(training_.plugin));
  wait_until(base::span_clock() + request.duration_ms * kMs, call, request.session);
  if (call.is_cancelled()) return base::fail(Code::kCancelled, "nobody waits for the profile");
  return capture.stop();
}

base::Result<Captured> ProfilerService::capture_steps(const GrpcCall& call, const ProfileRequest& request) {
  SLUICE_TRY(const auto asked, training_.requests->ask(*request.steps));
  auto result = asked->result();
  while (result.wait_for(kLook) != std::future_status::ready) {
    const std::lock_guard lock(mutex_);
    if (!ends_ && !call.is_cancelled() && !is_terminated(request.session)) continue;
    asked->cancel();
    return base::fail(Code::kCancelled,
                      ends_ ? "the training ended with an error" : "nobody waits for the profile");
  }
  return result.get();
}

void ProfilerService::wait_until(int64_t time, const GrpcCall& call, const std::string& session) {
  std::unique_lock lock(mutex_);
  while (!ends_ && !call.is_cancelled() && !is_terminated(session)) {
    const int64_t left = time - base::span_clock();
    if (left <= 0) return;
    changed_.wait_for(lock, std::min<std::chrono::nanoseconds>(std::chrono::nanoseconds(left), kLook));
  }
}

ProfilerService::Answer ProfilerService::terminate(const GrpcCall& call) {
  SLUICE_TRY(const std::string session, parse_terminate_request(call.message));
  const std::lock_guard lock(mutex_);
  if (!capturing_ || session != session_)
    return base::fail(Code::kNotFound, "no profile of the session \"", session.substr(0, 100),
                      "\" is being taken");
  terminated_ = true;
  changed_.notify_all();
  return std::string();
}

ProfilerService::Answer ProfilerService::monitor(const GrpcCall& call) {
  SLUICE_TRY(const MonitorRequest request, parse_monitor_request(call.message));
  if (request.duration_ms < 0 || request.duration_ms > kMaxMonitor)
    return base::fail(Code::kInvalidArgument, "the duration of Monitor: expected at most ", kMaxMonitor,
                      " ms, found ", request.duration_ms);
  const StepRequests::Progress before = training_.requests->progress();
  wait_until(base::span_clock() + request.duration_ms * kMs, call, "");
  const StepRequests::Progress after = training_.requests->progress();
  Figures figures = training_.figures();
  figures.step = after.steps;
  // The mean over the whole requested time, if steps ended in it.
  if (after.steps > before.steps && before.time > 0)
    figures.step_ms =
        static_cast<double>(after.time - before.time) / static_cast<double>(after.steps - before.steps) / kMs;
  return monitor_response(in_words(figures, request.timestamp), figures);
}

}  // namespace sluice::profile
