// The inside of a Session.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "sluice/replica/sameness.h"
#include "sluice/train/backend.h"
#include "sluice/train/heartbeat.h"
#include "sluice/train/rate.h"
#include "sluice/train/session.h"

namespace sluice {

struct Session::State {
  explicit State(const Options& options);
  ~State();

  // Values on their way to the host, and what is done with them when all are there.
  struct Delivery {
    std::vector<train::Pending> values;
    std::function<void(std::vector<at::Tensor>)> function;
  };
  // Runs what is due, in order. With `wait`, everything.
  void deliver(bool wait);

  // The optimizer's parameters stay equal from now on, and so do these tensors begin.
  void hold_equal(torch::optim::Optimizer& optimizer, const replica::NamedTensors& others, bool from_leader);
  // The replicas' values as one, over all processes.
  at::Tensor combine(const std::vector<at::Tensor>& parts, bool global);

  std::shared_ptr<replica::Processes> processes;  // null when there is one
  std::shared_ptr<const train::Backend> backend;
  train::Heartbeat heartbeat;
  int64_t stop_calls = 0;
  int64_t steps = 0;
  int accumulating = 0;
  std::deque<Delivery> deliveries;
  std::set<const torch::optim::Optimizer*> prepared;
  bool reduced = false;  // gradients were averaged since the last step
  bool warned_of_equal_gradients = false;
  std::map<const void*, int64_t> epochs;  // of the datasets fed so far, by their place in memory
  int64_t epoch = 0;                      // of the last feed
  train::RateTracker rate;
};

}  // namespace sluice
