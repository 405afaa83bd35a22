// Watches a call of a captured function while it is recorded, and makes its tape.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sluice/device/capture/tape.h"
#include "sluice/device/program/trace.h"

namespace sluice::device {

// The watch of one call, from its construction to finish(). Nothing is pending when it begins. Belongs to the
// thread that records; the watched functions call it under the trace's lock.
class Watch {
 public:
  // `before` is the tape of the previous call, or null. This call will probably step the same optimizers.
  Watch(const std::vector<at::Tensor>& arguments, const Tape* before);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // Returns the watch of this thread, or null.
  static Watch* current() { return current_; }

  // A scope whose actions do not belong to the call.
  class Pause {
   public:
    explicit Pause(Watch* watch) : watch_(watch) { current_ = nullptr; }
    ~Pause() { current_ = watch_; }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    Watch* const watch_;
  };

  // Notes that the storage's value is about to be read, or replaced.
  void touch(LazyStorage& storage, bool replaced = false);
  // Notes that the storage's value is about to become this data.
  void takes(LazyStorage& storage, const Data& data);
  // Notes that a program is about to be launched: `output_of` as from make_plan.
  void cut(const Trace& trace, const Plan& plan, std::shared_ptr<const Program> compiled,
           const std::vector<uint32_t>& output_of, const Scalars& scalars, std::string_view what);
  // Notes that the graph is cut while nothing is pending.
  void cut_without_program(std::string_view what);
  // Notes that a random operation drew a key; without a generator, from the default one.
  void drew(const std::optional<at::Generator>& generator, int64_t key);
  // Note that an optimizer's step begins, and that it ends.
  void begin_step(torch::optim::Optimizer& optimizer);
  void end_step();
  // Notes that the call cannot be replayed; only the first reason is kept.
  void refuse(std::string reason);
  void after(std::function<void()> call) { tape_.after.push_back(std::move(call)); }
  void guard(std::function<int64_t()> now);
  // Returns whether the storage lived before the call.
  bool outside(const LazyStorage& storage) const { return storage.serial < first_serial_; }

  // Returns the tape. The function has returned `results`, and nothing is pending any more. The arguments
  // must be gone by now.
  Tape finish(const std::vector<at::Tensor>& results);

 private:
  // The known state of a place while the call runs.
  struct Seen {
    uint64_t trace = 0;  // the trace in which it was touched last
    uint64_t data = 0;   // Data::serial of its value when that trace began; 0: none
    std::vector<int64_t> strides;
    bool unknown = false;  // it holds a value that came from the host
    bool stored = false;   // a program has given it another value
  };
  // The numbers of an optimizer's step in the current trace.
  struct Window {
    static constexpr uint32_t kConstant = ~uint32_t{0};
    uint64_t trace = 0;
    size_t first = 0, last = 0;          // indices in Trace::numbers
    std::vector<uint32_t> numbers = {};  // [number − first]: the number's index in the step, or kConstant
    StepNumbers expected = {};
  };
  struct Draw {
    uint64_t trace;
    int64_t key;
  };

  uint32_t place_of(LazyStorage& storage);
  void add_stores(const std::vector<uint32_t>& output_of, CapturedProgram& program);
  void add_numbers(const Trace& trace, const Plan& plan, CapturedProgram& program);
  void add_result(const at::Tensor& tensor);
  void check_trace();
  void check_kept(const std::vector<at::Tensor>& results);
  void check_generators();
  void check_optimizers();

  static thread_local Watch* current_;
  Tape tape_;
  const uint64_t first_serial_;
  uint64_t trace_ = Trace::get().number;  // the number of the trace that is being recorded
  std::vector<Seen> seen_;                // [place]
  std::unordered_map<const LazyStorage*, uint32_t> places_;
  std::unordered_map<uint64_t, uint32_t> holders_;  // in the current trace: the place that holds a
                                                    // Data::serial
  std::vector<Draw> draws_;
  size_t drawn_ = 0;             // index in draws_ of the first draw of the current trace
  std::vector<Window> windows_;  // [Tape::steps]
  at::Generator default_began_;  // the default generator when the call began
  std::vector<std::pair<at::Generator, at::Generator>> generators_;  // the other generators, and their copies
  // The previous call's optimizers, with their state and their options when this call began.
  std::map<const torch::optim::Optimizer*, std::pair<std::vector<uint64_t>, std::vector<double>>> began_;
  bool in_step_ = false;
  bool backward_ = false;      // a backward pass was recorded,
  bool other_update_ = false;  // after it, a tensor outside was written without a known optimizer
};

}  // namespace sluice::device
