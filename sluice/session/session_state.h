// The state of a Session.
#pragma once

#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sluice/monitor/status_server.h"
#include "sluice/profile/service/profiler_service.h"
#include "sluice/replica/sameness.h"
#include "sluice/session/backend.h"
#include "sluice/session/deliveries.h"
#include "sluice/session/feed_state.h"
#include "sluice/session/heartbeat.h"
#include "sluice/session/rates/rates_of.h"
#include "sluice/session/session.h"
#include "sluice/session/status_report.h"
#include "sluice/session/step_meter.h"
#include "sluice/session/step_spans.h"

namespace sluice {

struct Session::State {
  explicit State(const Options& options);
  ~State();

  // Returns the function that counts a feed's batches.
  static Feed::State::OnBatch count_batches(const std::shared_ptr<State>& state, int64_t epoch);
  // Registers what a step recorded in a captured function also does at each call of that function.
  static void count_replays(const std::shared_ptr<State>& state, bool updates);
  // Keeps the optimizer's parameters equal from now on, and makes these tensors equal at the start.
  void hold_equal(torch::optim::Optimizer& optimizer, const replica::NamedTensors& others, bool from_leader);

  // Shows the launcher, and other observers, that the program makes progress; at most once a second.
  void beat();
  // Called when a step has been launched.
  void end_step();
  // Makes the update; the gradients have been averaged.
  void update(const std::vector<torch::optim::Optimizer*>& optimizers, bool keep_gradients);
  StepRates rates(sessions::StepLog::Reader& reader, std::optional<int64_t> until);

  std::shared_ptr<replica::Processes> processes;    // null if there is only one
  std::shared_ptr<sessions::SavePeers> save_peers;  // null until they are asked for
  std::shared_ptr<const sessions::Backend> backend;
  sessions::Deliveries deliveries;
  sessions::Heartbeat heartbeat;
  std::map<std::string, int64_t> agreement_calls;
  const int exceptions = std::uncaught_exceptions();  // when the session began
  int64_t steps = 0;
  int accumulating = 0, accumulating_inside = 0;  // the latter: in a captured function that is recorded
  std::set<const torch::optim::Optimizer*> prepared;
  bool reduced = false;  // gradients were averaged since the last step
  bool warned_of_equal_gradients = false;
  std::map<const void*, int64_t> epochs;  // next epoch of each dataset fed so far, by address
  sessions::StepMeter meter;
  sessions::StepLog step_log;
  sessions::StepLog::Reader lines, calls, records;  // of log_every, step_rates, the status
  std::optional<estimate::Peak> peak;               // of one replica
  std::optional<stablehlo::Flops> flops_before;     // of all programs, when the step began
  int64_t first_compiles = 0;                       // programs compiled in the first step and before
  std::shared_ptr<profile::StepRequests> requests;  // requests at the profiler's port; null without it
  sessions::StepSpans spans;
  sessions::StatusReport status;
  std::unique_ptr<monitor::StatusServer> status_server;  // on the leader, if it is asked for
  std::unique_ptr<profile::ProfilerService> profiler;    // on each process, if it is asked for
};

}  // namespace sluice
