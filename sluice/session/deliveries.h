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

// Sends values of the device to the host. Values that differ between the replicas are combined over all
// processes: the mean for floating-point types, the sum for others (counts). A process never waits for the
// others' values unless it is asked to: they may lag, and may need what it does next. Threads: one.
class Deliveries {
 public:
  using Function = std::function<void(std::vector<at::Tensor>)>;

  // `processes` is null if there is only one.
  Deliveries(std::shared_ptr<const Backend> backend, std::shared_ptr<replica::Processes> processes);

  // All processes add the same values, in the same order; `alone`: the values of this process's replicas
  // only, without the other processes.
  void add(const std::vector<at::Tensor>& values, Function function, bool alone = false);
  // Calls the functions that are due, in order; with `wait` all of them, which all processes do at the same
  // place. An error discards the rest; without `wait` it also ends the run for all processes.
  void deliver(bool wait);

 private:
  struct Value {
    at::Tensor tensor;  // equal everywhere, or the sum over this process's replicas, then over all processes
    at::ScalarType dtype;
    bool equal;
  };
  struct Delivery {
    std::vector<Pending> pending;
    Function function;
    bool alone = false;
    std::vector<Value> values;  // filled when they have arrived
    std::optional<replica::Processes::Offer> offer;
  };
  // Whether the values of this process, and of the others if needed, have arrived.
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
