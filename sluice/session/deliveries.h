// Values of the device on their way to the host, and what is done with them there.
#pragma once

#include <ATen/core/Tensor.h>

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "sluice/replica/processes.h"
#include "sluice/session/backend.h"

namespace sluice::sessions {

// Values that differ between the replicas are put together over all processes: their mean for floating-point
// types, their sum for others (counts). A process whose values are there never waits for the others' unless
// it is asked to: they may be behind it, and what they do next may need it. Threads: one.
class Deliveries {
 public:
  using Function = std::function<void(std::vector<at::Tensor>)>;

  // `processes` is null when there is one.
  Deliveries(std::shared_ptr<const Backend> backend, std::shared_ptr<replica::Processes> processes);

  // The processes add the same, in the same order; `alone`: the values of this process's replicas, of which
  // the others need not know.
  void add(const std::vector<at::Tensor>& values, Function function, bool alone = false);
  // Calls what is due, in order; with `wait` everything, which all processes do at the same place. After an
  // error nothing is left; without `wait` it ends the run for all processes.
  void deliver(bool wait);

 private:
  struct Value {
    at::Tensor tensor;  // equal everywhere, or the sum over this process's replicas, then over all
    at::ScalarType dtype;
    bool equal;
  };
  struct Delivery {
    std::vector<Pending> pending;
    Function function;
    bool alone = false;
    std::vector<Value> values;  // once they are there
    std::optional<replica::Processes::Offer> offer;
  };
  // Whether the values are there, and those of the other processes.
  bool complete(Delivery& delivery, bool wait);
  bool take_values(Delivery& delivery, bool wait);
  void offer_values(Delivery& delivery);
  static void add_up(Delivery& delivery, const std::vector<std::string>& parts);
  std::vector<at::Tensor> results(const Delivery& delivery) const;

  const std::shared_ptr<const Backend> backend_;
  const std::shared_ptr<replica::Processes> processes_;
  std::deque<Delivery> deliveries_;
};

}  // namespace sluice::sessions
