// TensorFlow's ProfilerService of a training that runs: TensorBoard's and xprof's "capture" button, and
// `sluice profile`.
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

// Answers whoever reaches its address; there is no authentication. It writes no file: who asks for a profile
// gets it. A request has a thread of its own while it is at work, eight at once.
class ProfilerService {
 public:
  struct Training {
    About about;
    std::shared_ptr<const pjrt::Plugin> plugin;  // may be null
    std::shared_ptr<StepRequests> requests;
    // Called from any thread while the service lives.
    std::function<Figures()> figures;     // of the last second or so
    std::function<std::string()> status;  // in JSON
  };

  // kAlreadyExists: the port is in use.
  static base::Result<std::unique_ptr<ProfilerService>> start(const cloud::ListenAddress& address,
                                                              Training training,
                                                              const GrpcLimits& limits = {});
  // A profile that is being taken ends here, and is handed out with what it has.
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
  // Until this moment of span_clock(), or until the service ends, the call is cancelled or its session is
  // terminated.
  void wait_until(int64_t time, const GrpcCall& call, const std::string& session);
  bool is_terminated(const std::string& session) const { return terminated_ && session == session_; }

  const Training training_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ends_ = false, capturing_ = false, terminated_ = false;
  std::string session_;  // of the profile that is being taken
  int workers_ = 0;
  std::unique_ptr<GrpcServer> server_;
};

}  // namespace sluice::profile
