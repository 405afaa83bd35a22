// Session: the parts of a training loop that LibTorch does not have, on one replica or many.
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
// A Session is a handle: copies refer to the same session. Threads: one, which also records. Errors are
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
#include "sluice/data/stream.h"
#include "sluice/device/capture/capture.h"
#include "sluice/device/device.h"
#include "sluice/mesh/mesh.h"
#include "sluice/mesh/rules.h"
#include "sluice/session/feed.h"
#include "sluice/session/rates/step_rates.h"

SLUICE_API_BEGIN

namespace sluice {

namespace sessions {
struct SavePeers;
}

struct Options {
  std::string device = "xla";  // "xla", or "cpu" for LibTorch's own CPU, eager
  DeviceOptions xla;           // options of the device "xla": plugin, number of devices, strict, …
  // The mesh over which the devices share one model (docs/sharding.md); empty: SLUICE_MESH, else replicas.
  Mesh mesh;
  // The processes that train together. The launcher's environment usually sets them (docs/replicas.md). A
  // count above 0 here takes precedence; then process_index is this process, and coordinator the host:port of
  // process 0.
  int process_count = 0;
  int process_index = 0;
  std::string coordinator;
  // The address where the leader answers /status (JSON) and /metrics (Prometheus): a port of the loopback
  // interface, or an address with a port; "": none.
  std::string status_port;
  // The address where each process takes profiles on request (profile.md): a port of the loopback interface,
  // or an address with a port; the second process of a host uses the next port, and so on. "": none.
  std::string profiler_port;
};

struct PrepareOptions {
  bool from_leader = false;  // send process 0's values to the other processes instead of comparing them
};

struct StepOptions {
  double clip_norm = 0;   // above 0: the averaged gradients are scaled down to this norm
  double clip_value = 0;  // above 0: clips each element of the averaged gradients to ± this, before the norm
  bool keep_gradients = false;  // keep .grad after the step: each gradient then costs a copy in memory
  // Called by step() after the update: what it records is part of the step's program.
  std::function<void()> behind_update = {};
};

// A number to log: a tensor of one element, or a number of the host.
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

// The replicas that a value is combined over: of all processes, or only of this one.
enum class Over { kAllReplicas, kLocalReplicas };

// Creates the state of SGD, Adam, AdamW and RMSprop (momentum, averages) that LibTorch creates in the first
// step, if it starts with zeros. The first step is then the same program as all others, which halves the time
// of compiling. A session does this by itself, in `prepare` or in its first step; a loop without a session
// calls it before its first step. Parameters must be on their device. Existing state and other optimizers
// stay as they are.
void create_state(torch::optim::Optimizer& optimizer);

class Session {
 public:
  torch::Device device() const;
  int replicas() const;        // of all processes
  int local_replicas() const;  // of this process
  int first_replica() const;   // the number of this process's first replica among all
  int process_index() const;   // 0 … processes − 1, as the launcher counts
  int processes() const;
  bool is_leader() const;  // the process that prints and saves
  int64_t steps() const;   // the number of steps so far
  // The part of each batch that this process reads, and the number of parts: one for each process. With a
  // mesh, processes whose devices differ only along the axes sequence and tensor read the same part.
  int batch_part() const;
  int batch_parts() const;
  // Returns into how many equal shares the samples of a step are dealt: one for each replica, or with a mesh
  // one for each of batch_parts().
  int shares() const { return batch_parts() * local_replicas(); }

  // Moves a module to the device, laid out over the mesh if there is one: by these rules, then by the model's
  // own (docs/sharding.md). Without rules, a module that sluice::shard has laid out stays as it is.
  void place(torch::nn::Module& module, const std::vector<ShardRule>& rules = {});

  // Returns one epoch of batches on the device: prefetched, split by replica, with images normalised there.
  // With a mesh over several processes, each reads its part of the samples, and a batch has the rows of all
  // parts, one part after the other: parts × dataset.batch_size() rows.
  Feed feed(const data::Dataset& dataset, const FeedOptions& options = {});
  // Feeds any range of host tensors, vectors, pairs or tuples of them, torch::data::Example<> or vectors of
  // these, such as *torch::data::make_data_loader(…); each item is one replica's batch, or this process's
  // rows of the batch with a mesh over several processes. An lvalue range must outlive the feed.
  template <typename Range>
  requires requires(Range& range) { sessions::columns_of(*std::begin(range)); }
  Feed feed(Range&& range, const FeedOptions& options = {}) {
    return feed_source(
        sessions::RangeSource<Range>(std::forward<Range>(range), local_replicas(), options.skip), options);
  }

  // Averages the gradients over all replicas, updates, ends the graph, and releases the gradients.
  void step(torch::optim::Optimizer& optimizer, const StepOptions& options = {});
  void step(const std::vector<torch::optim::Optimizer*>& optimizers, const StepOptions& options = {});
  // Does what step() does, without ending the graph: for optimizers that take turns within a step (a GAN's),
  // where each one computes with what the previous one has changed. step({}) then ends the step.
  void update(torch::optim::Optimizer& optimizer, const StepOptions& options = {});
  // A step for optimizers that evaluate the loss several times (LBFGS). `closure` computes the loss and its
  // gradients.
  torch::Tensor step(torch::optim::Optimizer& optimizer, const std::function<torch::Tensor()>& closure);
  // Averages the gradients over all replicas now; the next step does not average them again.
  void reduce_gradients(const std::vector<torch::Tensor>& parameters);
  // Averages the model's buffers (BatchNorm's statistics, which differ by replica) over all replicas; buffers
  // that are not floating-point get replica 0's value. Call it before an evaluation or a checkpoint.
  void sync_buffers(const torch::nn::Module& model);
  // For finding bugs: compares the bytes of all parameters on all replicas of this process; waits. Throws
  // kInternal, naming the parameter that differs.
  void check_replicas(const torch::nn::Module& model);
  // Ends the graph: what was recorded starts to run. Does not wait. `what` names the boundary in reports.
  void sync(const char* what = "sync");
  // Takes a profile of the steps [first, end), counted from 1 in this session: each process writes to
  // FOLDER/plugins/profile/TIME/ a trace for TensorBoard's profile plugin, one for Perfetto and a page of
  // text (profile.md). FOLDER may be in a bucket (gs://bucket/logs). All processes make the same call, before
  // the first of these steps; the session continues meanwhile.
  void profile(int64_t first, int64_t end, const std::string& folder);
  // Waits until all processes are here and this one's programs have finished.
  void barrier();

  // Every n steps (after step n, 2 n, …) prints one line with the values' means over the replicas. The values
  // are copied while the device continues; the line appears a little later, at the latest when the session
  // ends. Rate and GlobalRate are examples per second of one replica: the moving average from line to line,
  // and the mean since the epoch (the feed) began. Epoch is the number of the feed's epoch, from 1; Step
  // counts the session's steps.
  void log_every(int64_t n, std::initializer_list<std::pair<std::string, LogValue>> values);
  // Returns the rates of the steps since the previous call, as far as they have ended; with `until`, of the
  // steps up to this number, and may wait for them. Leaves out the first step of a session, which compiles.
  StepRates step_rates(std::optional<int64_t> until = {});
  // The peak performance of one replica's device: "118 GFLOP/s f32 (measured on 2 threads)"; "" if it is not
  // known.
  std::string peak_text() const;
  // Calls `function` with the values' host copies, a little later, from one of the session's calls on this
  // thread. Floating-point values are averaged over the replicas, others (counts) are summed: over the
  // replicas of all processes, which all make the same call, or over this process's replicas only.
  void after_step(std::vector<torch::Tensor> values, std::function<void(std::vector<torch::Tensor>)> function,
                  Over over = Over::kAllReplicas);
  // Prints one line on standard output, on the leader only.
  template <typename... Pieces>
  void print(const Pieces&... pieces) {
    std::ostringstream text;
    (text << ... << pieces);
    print_line(text.str());
  }
  // Waits for what runs, and delivers every log line and after_step call that is due.
  void finish();

  // Gives the parameters and buffers their names, for messages, reports and dumped programs.
  void name(const torch::nn::Module& model);
  // Names the model, and marks the optimizer's parameters as equal on all replicas; the first step with an
  // optimizer also marks them. Weights, buffers and the optimizer's state must be equal on all replicas; with
  // several processes they are compared, and a difference is an error that names it.
  void prepare(const torch::nn::Module& model, torch::optim::Optimizer& optimizer,
               const PrepareOptions& options = {});
  void prepare(const torch::nn::Module& model, const std::vector<torch::optim::Optimizer*>& optimizers,
               const PrepareOptions& options = {});

  // Call it before an optimizer ends while the session continues: another one may get its address.
  void release(const torch::optim::Optimizer& optimizer);

  // Returns the bytes that each process gives, in the order of the processes; the same list everywhere. All
  // processes call it with the same `name`.
  std::vector<std::string> gather_on_host(const std::string& name, const std::string& bytes);
  // Returns true on all processes at the same call once one of them has passed true: to stop together after a
  // signal. All processes call it equally often; the answer comes some calls after the wish.
  bool agree_to_stop(bool wish);
  // Agrees on anything else in the same way, once for each `what`; all processes use the same `what`.
  bool agree_to(const std::string& what, bool wish);

  // The parts of feed, upload and read. feed_source feeds from a source of host batches; upload makes one
  // tensor on the device of one host tensor per replica; read returns a device tensor's value on each local
  // replica (waits).
  Feed feed_source(sessions::HostSource source, const FeedOptions& options);
  torch::Tensor upload(const std::vector<torch::Tensor>& one_per_replica);
  std::vector<torch::Tensor> read(const torch::Tensor& tensor);

  struct State;
  explicit Session(std::shared_ptr<State> state) : state_(std::move(state)) {}
  const sessions::Backend& backend() const;
  // The processes that write a checkpoint together (session/pieces/shared_checkpoint.h).
  std::shared_ptr<sessions::SavePeers> save_peers();

 private:
  friend class Accumulate;
  void print_line(const std::string& text) const;
  void before_update(const std::vector<torch::optim::Optimizer*>& optimizers, const StepOptions& options);
  std::shared_ptr<State> state_;
};

// Marks a part of a user's program in profiles, from its construction to its end. It costs a few nanoseconds
// while no profile is taken. `name`: one of a few different names. Threads: any.
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

// Starts a session. A flag takes precedence over its environment variable:
// --sluice-device=xla|cpu (SLUICE_DEVICE), --sluice-plugin=auto|cpu|tpu|cuda|PATH (SLUICE_PLUGIN),
// --sluice-devices=N|all|[5] (SLUICE_DEVICES), --sluice-strict, --sluice-eager.
// Other arguments are the program's own; an unknown --sluice-… flag is an error that names the nearest one.
Session start(int argc, char** argv);
// Starts a session, and removes the --sluice-… flags from the arguments.
Session start(int* argc, char** argv);
Session start(const Options& options);
// Starts a session with the settings of the environment only.
Session start();

// Returns the norm over all gradients; if it is above max_norm, scales the gradients down to it. Unlike
// LibTorch's own function it returns a tensor and waits for nothing.
torch::Tensor clip_grad_norm_(const std::vector<torch::Tensor>& parameters, double max_norm,
                              double norm_type = 2);

// While an Accumulate lives, session.step() ends the graph but neither averages nor updates, and keeps the
// gradients: they add up over several batches. End its life before the last of these batches.
class Accumulate {
 public:
  explicit Accumulate(Session& session);
  ~Accumulate();
  Accumulate(const Accumulate&) = delete;
  Accumulate& operator=(const Accumulate&) = delete;

 private:
  std::shared_ptr<Session::State> state_;
  bool inside_;  // whether it was made inside a captured function, which makes one at each call
};

}  // namespace sluice

SLUICE_API_END
