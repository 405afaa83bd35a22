// TensorFlow's ProfilerService of a running training, for the "capture" button of TensorBoard and xprof, and
// for `sluice profile`.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "sluice/profile/service/grpc_server.h"
#include "sluice/profile/service/profiler_messages.h"
#include "sluice/profile/service/step_requests.h"

namespace sluice::profile {

// Answers every client that reaches its address; there is no authentication. It writes no file: the client
// gets the profile. Each request has its own thread while it is processed, at most eight at a time.
class ProfilerService {
 public:
  struct Training {
    About about;
    std::shared_ptr<const pjrt::Plugin> plugin;  // may be null
    std::shared_ptr<StepRequests> requests;
    // These are called from any thread while the service lives.
    std::function<Figures()> figures;     // of about the last second
    std::function<std::string()> status;  // in JSON
  };

  // kAlreadyExists: the port is in use.
  static base::Result<std::unique_ptr<ProfilerService>> start(const cloud::ListenAddress& address,
                                                              Training training,
                                                              const GrpcLimits& limits = {});
  // Ends a profile that is being captured; its client gets what was recorded until then.
  ~ProfilerService();
  ProfilerService(const ProfilerService&) = delete;
  ProfilerService& operator=(const ProfilerService&) = delete;

  const cloud::ListenAddress& address() const { return server_->address(); }

 private:
  using Answer = base::Result<std::string>;
  using Call = std::shared_ptr<GrpcCall>;

  explicit ProfilerService(Training training) : training_(std::move(training)) {}
  void handle(const Call& call);
  void work(const Call& call, Answer (ProfilerService::*what)(const GrpcCall&));
  Answer profile(const GrpcCall& call);
  Answer monitor(const GrpcCall& call);
  Answer terminate(const GrpcCall& call);
  base::Result<Captured> capture(const GrpcCall& call, const ProfileRequest& request);
  base::Result<Captured> capture_steps(const GrpcCall& call, const ProfileRequest& request);
  // Waits until this moment of span_clock(), or until the service ends, the call is cancelled or its session
  // is terminated.
  void wait_until(int64_t time, const GrpcCall& call, const std::string& session);
  bool is_terminated(const std::string& session) const { return terminated_ && session == session_; }

  const Training training_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ends_ = false, capturing_ = false, terminated_ = false;
  std::string session_;  // the session of the profile that is being captured
  int workers_ = 0;
  std::unique_ptr<GrpcServer> server_;
};

}  // namespace sluice::profile
