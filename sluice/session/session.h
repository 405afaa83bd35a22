// Session: what a training loop needs around LibTorch, on one replica or many.
//
//   auto session = sluice::start(argc, argv);
//   for (auto& batch : session.feed(train)) {
//     optimizer.zero_grad();
//     auto loss = torch::nn::functional::cross_entropy(model->forward(batch.image), batch.label);
//     loss.backward();
//     session.step(optimizer);
//     session.log_every(20, {{"loss", loss}});
//   }
//
// A Session is a handle: copies mean the same session. Threads: one, which also records. Errors are
// sluice::Error.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "sluice/base/export.h"
#include "sluice/data/dataset.h"
#include "sluice/device/capture/capture.h"
#include "sluice/device/device.h"
#include "sluice/session/feed.h"
#include "sluice/session/rates/step_rates.h"

SLUICE_API_BEGIN

namespace sluice {

struct Options {
  std::string device = "xla";  // "xla", or "cpu" for LibTorch's own CPU, eager
  DeviceOptions xla;           // plugin, number of devices, strict, … of the device "xla"
  // The processes that train together. Usually the launcher's environment says it (docs/replicas.md); a count
  // above 0 here wins: which one this is, and host:port of process 0.
  int process_count = 0;
  int process_index = 0;
  std::string coordinator;
  // Where the leader answers /status (JSON) and /metrics (Prometheus): a port of the loopback interface, or
  // an address with a port; "": nowhere.
  std::string status_port;
  // Where each process takes profiles for whoever asks (profile.md): a port of the loopback interface, or an
  // address with a port; the second process of a host has the port behind it, and so on. "": nowhere.
  std::string profiler_port;
};

struct PrepareOptions {
  bool from_leader = false;  // send process 0's values to the others instead of comparing them
};

struct StepOptions {
  double clip_norm = 0;   // above 0: the averaged gradients' norm is cut to this
  double clip_value = 0;  // above 0: each element of the averaged gradients is cut to ± this, before the norm
  bool keep_gradients = false;  // keep .grad after the step: each one then costs a copy in memory
  // Called by step() behind the update: what it records is part of the step's program.
  std::function<void()> behind_update = {};
};

// A number to log: a tensor of one element, or a host number.
class LogValue {
 public:
  LogValue(const torch::Tensor& tensor)
      : value_(tensor) {}  // NOLINT: a list of values reads best without casts
  template <typename Number>
  requires std::is_arithmetic_v<Number> LogValue(Number number)
      : value_(static_cast<double>(number)) {}  // NOLINT
  const std::variant<torch::Tensor, double>& value() const { return value_; }

 private:
  std::variant<torch::Tensor, double> value_;
};

// The replicas that a value is put together from: of all processes, or of this one.
enum class Over { kAllReplicas, kLocalReplicas };

// Creates the state of SGD, Adam, AdamW and RMSprop (momentum, averages) that LibTorch creates in the first
// step, where it begins with zeros. The first step then is the same program as all others, which halves the
// time of compiling. A session does it by itself, in `prepare` or in its first step; a loop without one calls
// it before its first step. Parameters must be on their device. State that is there already, and other
// optimizers, are left alone.
void create_state(torch::optim::Optimizer& optimizer);

class Session {
 public:
  torch::Device device() const;
  int replicas() const;        // of all processes
  int local_replicas() const;  // of this one
  int first_replica() const;   // the number of this process's first one among all
  int process_index() const;   // 0 … processes − 1, as the launcher counts
  int processes() const;
  bool is_leader() const;  // the process that prints and saves
  int64_t steps() const;   // so far

  // One epoch of batches on the device: prefetched, split by replica, images normalised there.
  Feed feed(const data::Dataset& dataset, const FeedOptions& options = {});
  // Any range of host tensors, vectors, pairs or tuples of them, torch::data::Example<> or vectors of these,
  // such as *torch::data::make_data_loader(…); each item is one replica's batch. An lvalue range must outlive
  // the feed.
  template <typename Range>
  requires requires(Range& range) { sessions::columns_of(*std::begin(range)); }
  Feed feed(Range&& range, const FeedOptions& options = {}) {
    return feed_source(
        sessions::RangeSource<Range>(std::forward<Range>(range), local_replicas(), options.skip), options);
  }

  // The gradients' mean over all replicas, the update, the end of the graph. Releases the gradients.
  void step(torch::optim::Optimizer& optimizer, const StepOptions& options = {});
  void step(const std::vector<torch::optim::Optimizer*>& optimizers, const StepOptions& options = {});
  // The same without the end of the graph: for optimizers that take turns within a step (a GAN's), each of
  // which computes with what the one before has changed. step({}) then ends the step.
  void update(torch::optim::Optimizer& optimizer, const StepOptions& options = {});
  // For optimizers that evaluate the loss several times (LBFGS). `closure` computes the loss and its
  // gradients.
  torch::Tensor step(torch::optim::Optimizer& optimizer, const std::function<torch::Tensor()>& closure);
  // The mean of the gradients over all replicas, now; the next step does not average again.
  void reduce_gradients(const std::vector<torch::Tensor>& parameters);
  // The mean of the model's buffers (BatchNorm's statistics, which differ by replica) over all replicas; of
  // those that are no floating-point numbers replica 0's value. Before an evaluation or a checkpoint.
  void sync_buffers(const torch::nn::Module& model);
  // For finding bugs: compares the bytes of all parameters on all replicas of this process; waits. Throws
  // kInternal, naming the parameter that differs.
  void check_replicas(const torch::nn::Module& model);
  // Ends the graph: what was recorded starts to run. Does not wait. `what` names the boundary in reports.
  void sync(const char* what = "sync");
  // A profile of the steps [first, end), counted from 1 in this session: FOLDER/plugins/profile/TIME/ gets a
  // trace for TensorBoard's profile plugin, one for Perfetto and a page of text from each process
  // (profile.md). FOLDER may be one of a bucket (gs://bucket/logs). All processes call it alike, before the
  // first of these steps; the session goes on meanwhile.
  void profile(int64_t first, int64_t end, const std::string& folder);
  // Until all processes are here and this one's programs have finished.
  void barrier();

  // Every n steps (after step n, 2 n, …) one line with the values' means over the replicas. The values are
  // copied while the device goes on; the line appears a little later. The rest is printed when the session
  // ends. Rate and GlobalRate are examples a second of one replica: the moving average from line to line, and
  // the mean since the epoch (the feed) began. Epoch is the number of the feed's epoch, from 1; Step counts
  // the session's steps.
  void log_every(int64_t n, std::initializer_list<std::pair<std::string, LogValue>> values);
  // How good the steps since the call before were, as far as they have ended; with `until` those up to this
  // number of a step, which may be waited for. The first step of a session, which compiles, is left out.
  StepRates step_rates(std::optional<int64_t> until = {});
  // What one replica's device can do at most: "118 GFLOP/s f32 (measured on 2 threads)"; "" where that is not
  // known.
  std::string peak_text() const;
  // Calls `function` with the values' host copies, a little later, from one of the session's calls on this
  // thread. Floating-point values are the mean over the replicas, others (counts) the sum: over those of all
  // processes, which all make the same call, or over this process's alone.
  void after_step(std::vector<torch::Tensor> values, std::function<void(std::vector<torch::Tensor>)> function,
                  Over over = Over::kAllReplicas);
  // On the leader alone, one line on standard output.
  template <typename... Pieces>
  void print(const Pieces&... pieces) {
    std::ostringstream text;
    (text << ... << pieces);
    print_line(text.str());
  }
  // Waits for what runs and delivers every log line and after_step call that is due.
  void finish();

  // Gives the parameters and buffers their names, for messages, reports and dumped programs.
  void name(const torch::nn::Module& model);
  // Names the model, and marks the optimizer's parameters: they stay equal on all replicas. The first step
  // with an optimizer does the latter by itself.
  // Weights, buffers and the optimizer's state must be equal on all replicas; with several processes they are
  // compared, and a difference is an error that names it.
  void prepare(const torch::nn::Module& model, torch::optim::Optimizer& optimizer,
               const PrepareOptions& options = {});
  void prepare(const torch::nn::Module& model, const std::vector<torch::optim::Optimizer*>& optimizers,
               const PrepareOptions& options = {});

  // Before an optimizer ends while the session goes on: another one may get its address.
  void release(const torch::optim::Optimizer& optimizer);

  // What each process gives, in their order; the same list everywhere. All processes call it with the same
  // `name`.
  std::vector<std::string> gather_on_host(const std::string& name, const std::string& bytes);
  // True on all processes at the same call once one of them has said true: to stop together after a signal.
  // All processes call it equally often; the answer comes some calls later than the wish.
  bool agree_to_stop(bool wish);
  // The same for anything else, once for each `what`, which all processes name alike.
  bool agree_to(const std::string& what, bool wish);

  // The parts that feed, upload and read are made of: a source of host batches; one host tensor a replica as
  // one tensor on the device; a device tensor's value on each local replica (waits).
  Feed feed_source(sessions::HostSource source, const FeedOptions& options);
  torch::Tensor upload(const std::vector<torch::Tensor>& one_per_replica);
  std::vector<torch::Tensor> read(const torch::Tensor& tensor);

  struct State;
  explicit Session(std::shared_ptr<State> state) : state_(std::move(state)) {}
  const sessions::Backend& backend() const;

 private:
  friend class Accumulate;
  void print_line(const std::string& text) const;
  void before_update(const std::vector<torch::optim::Optimizer*>& optimizers, const StepOptions& options);
  std::shared_ptr<State> state_;
};

// A part of a program of one's own in a profile: from its construction to its end. It costs a few nanoseconds
// while no profile is taken. `name`: of a few different ones. Threads: any.
class Span {
 public:
  explicit Span(std::string_view name);
  ~Span();
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

 private:
  const char* name_ = nullptr;
  int64_t begin_ = 0;
};

// Starts a session. Environment variables come first, flags win over them: --sluice-device=xla|cpu
// (SLUICE_DEVICE),
// --sluice-plugin=auto|cpu|tpu|cuda|PATH (SLUICE_PLUGIN), --sluice-devices=N|all|[5] (SLUICE_DEVICES),
// --sluice-strict, --sluice-eager.
// Other arguments are the program's own; an unknown --sluice-… flag is an error that proposes the nearest
// one.
Session start(int argc, char** argv);
// The same, and removes the --sluice-… flags from the arguments.
Session start(int* argc, char** argv);
Session start(const Options& options);
// From the environment alone.
Session start();

// The norm over all gradients; when it is above max_norm the gradients are scaled down to it. Unlike
// LibTorch's own it returns a tensor and waits for nothing.
torch::Tensor clip_grad_norm_(const std::vector<torch::Tensor>& parameters, double max_norm,
                              double norm_type = 2);

// While one lives, session.step() ends the graph but neither averages nor updates, and keeps the gradients:
// they add up over several batches. Let it go before the last of them.
class Accumulate {
 public:
  explicit Accumulate(Session& session);
  ~Accumulate();
  Accumulate(const Accumulate&) = delete;
  Accumulate& operator=(const Accumulate&) = delete;

 private:
  std::shared_ptr<Session::State> state_;
  bool inside_;  // of a captured function, which makes one at each call
};

}  // namespace sluice

SLUICE_API_END
