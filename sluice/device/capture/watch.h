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
#include "sluice/device/trace.h"

namespace sluice::device {

// One call, from its construction to finish(). Nothing is pending when it begins. Belongs to the thread that
// records; what is watched calls it under the trace's lock.
class Watch {
 public:
  // `before`: of the call before it, if there was one, whose optimizers this one will probably step.
  Watch(const std::vector<at::Tensor>& arguments, const Tape* before);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // That of this thread, or none.
  static Watch* current() { return current_; }

  // While it lives, what happens is not the call's.
  class Pause {
   public:
    explicit Pause(Watch* watch) : watch_(watch) { current_ = nullptr; }
    ~Pause() { current_ = watch_; }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    Watch* const watch_;
  };

  // The storage's value is about to be read, or replaced.
  void touch(LazyStorage& storage, bool replaced = false);
  // The storage's value is about to become this data.
  void takes(LazyStorage& storage, const Data& data);
  // A program is about to be launched: `output_of` as from make_plan.
  void cut(const Trace& trace, const Plan& plan, std::shared_ptr<const Program> compiled,
           const std::vector<uint32_t>& output_of, const Scalars& scalars, std::string_view what);
  // The graph is cut where nothing is pending.
  void cut_without_program(std::string_view what);
  // A random operation drew a key; no generator: from the default one.
  void drew(const std::optional<at::Generator>& generator, int64_t key);
  // An optimizer's step begins and ends.
  void begin_step(torch::optim::Optimizer& optimizer);
  void end_step();
  // The call cannot be replayed; the first reason counts.
  void refuse(std::string reason);
  void after(std::function<void()> call) { tape_.after.push_back(std::move(call)); }
  void guard(std::function<int64_t()> now);
  // The storage lived before the call.
  bool outside(const LazyStorage& storage) const { return storage.serial < first_serial_; }

  // The function has returned these, and nothing is pending any more. The arguments must be gone by now.
  Tape finish(const std::vector<at::Tensor>& results);

 private:
  // What is known of a place while the call runs.
  struct Seen {
    uint64_t trace = 0;  // in which it was touched last
    uint64_t data = 0;   // Data::serial that it held when that trace began; 0: none
    std::vector<int64_t> strides;
    bool unknown = false;  // holds a value that came from the host
    bool stored = false;   // a program has given it another value
  };
  // The numbers of an optimizer's step in the current trace.
  struct Window {
    static constexpr uint32_t kConstant = ~uint32_t{0};
    uint64_t trace = 0;
    size_t first = 0, last = 0;          // in Trace::numbers
    std::vector<uint32_t> numbers = {};  // [behind first]: which of the step's, or kConstant
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
  uint64_t trace_ = Trace::get().number;  // that is being recorded
  std::vector<Seen> seen_;                // [place]
  std::unordered_map<const LazyStorage*, uint32_t> places_;
  std::unordered_map<uint64_t, uint32_t> holders_;  // in the current trace: who held a Data::serial
  std::vector<Draw> draws_;
  size_t drawn_ = 0;             // of draws_, those before the current trace
  std::vector<Window> windows_;  // [Tape::steps]
  at::Generator default_began_;  // the default generator when the call began
  std::vector<std::pair<at::Generator, at::Generator>> generators_;  // the others used, and as they were
  // The optimizers of the call before this one when this one began: their state and their options.
  std::map<const torch::optim::Optimizer*, std::pair<std::vector<uint64_t>, std::vector<double>>> began_;
  bool in_step_ = false;
  bool backward_ = false;      // a backward pass was recorded,
  bool other_update_ = false;  // and then a tensor outside written without a known optimizer
};

}  // namespace sluice::device
