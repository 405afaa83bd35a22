// The layers of a profile beside a measurement that knows nothing of it: each convolution of ResNet-50 in a
// training step, from the profile's table, and alone: the same kernel on tensors of the same shapes, with as
// many threads, in a loop.
//
//   bench_layers [BATCH [IMAGE_SIZE [STEPS [ROUNDS]]]]
//
// Prints JSON: milliseconds of each convolution, forward and backward together, in the step and alone; the
// three slowest by both; and whether they are the same. Layers of one shape are equals: those of the step
// must be among the three slowest alone or within a tenth of the third.
#include <ATen/record_function.h>
#include <torch/torch.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <iostream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "sluice/base/clock.h"
#include "sluice/base/files/file.h"
#include "sluice/kernels/test_call.h"
#include "sluice/kernels/threads.h"
#include "sluice/models/models.h"
#include "sluice/session/session.h"
#include "sluice/stablehlo/kernel_library.h"

namespace sluice::bench {
namespace {

using kernels::TestCall;
using nlohmann::json;
using stablehlo::Dims;

struct Convolution {
  Dims x, w, y, stride, padding;
  double in_step = 0, alone = 0;  // milliseconds
};

// What LibTorch's convolutions were called with; the recorder takes a function without a state.
std::vector<std::pair<const void*, Convolution>> called;

std::unique_ptr<at::ObserverContext> note_call(const at::RecordFunction& function) {
  if (std::string_view(function.name()) != "aten::convolution") return nullptr;
  const auto inputs = function.inputs();
  const at::Tensor x = inputs[0].toTensor(), w = inputs[1].toTensor();
  called.push_back(
      {w.data_ptr(),
       {x.sizes().vec(), w.sizes().vec(), {}, inputs[3].toIntVector(), inputs[4].toIntVector()}});
  return nullptr;
}

std::map<std::string, Convolution> convolutions_of(models::Model& model, int64_t batch, int64_t image_size) {
  const torch::NoGradGuard no_grad;
  const auto handle = at::addThreadLocalCallback(
      at::RecordFunctionCallback(note_call).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
  model.forward(torch::zeros({1, 3, image_size, image_size}));
  at::removeCallback(handle);
  std::map<std::string, Convolution> found;
  for (const auto& parameter : model.named_parameters())
    for (auto& [weight, convolution] : called) {
      if (weight != parameter.value().data_ptr()) continue;
      convolution.x[0] = batch;
      convolution.y = {batch, convolution.w[0]};
      for (size_t d = 0; d < 2; ++d)
        convolution.y.push_back((convolution.x[2 + d] + 2 * convolution.padding[d] - convolution.w[2 + d]) /
                                    convolution.stride[d] +
                                1);
      found.emplace(parameter.key().substr(0, parameter.key().rfind('.')), convolution);
    }
  return found;
}

// ---- In a training step ----

json profile_steps(const models::ModelPtr& model, int64_t batch, int64_t image_size, int64_t steps) {
  const auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  Options options;
  options.device = "xla";
  options.xla.plugin = "cpu";
  Session session = start(options);
  model->to(session.device());
  session.name(*model);
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.01).momentum(0.9));
  const torch::Tensor x = torch::randn({batch, 3, image_size, image_size}).to(session.device());
  const torch::Tensor y = torch::randint(1000, {batch}, torch::kLong).to(session.device());
  constexpr int64_t kWarmUp = 4;
  session.profile(kWarmUp + 1, kWarmUp + steps + 1, folder.path());
  for (int64_t i = 0; i < kWarmUp + steps; ++i) {
    optimizer.zero_grad();
    torch::nn::functional::cross_entropy(model->forward(x), y).backward();
    session.step(optimizer);
  }
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path()))
    if (std::string(entry.path()).ends_with(".layers.json"))
      return json::parse(base::value_or_throw(base::read_file(entry.path())));
  throw_error(Code::kNotFound, "the profile has no table by layer: are there kernels for this CPU?");
}

// ---- Alone ----

// Threads that take what kernels give away, as those of the plugin do.
class Pool {
 public:
  Pool() {
    for (int i = 1; i < kernels::threads_of_a_call(); ++i) threads_.emplace_back([this] { work(); });
  }
  ~Pool() {
    {
      const std::scoped_lock lock(mutex_);
      ended_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  bool schedule(void (*task)(void*), void* data) {
    {
      const std::scoped_lock lock(mutex_);
      tasks_.emplace_back(task, data);
    }
    wake_.notify_one();
    return true;
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return ended_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      const auto [task, data] = tasks_.front();
      tasks_.pop_front();
      lock.unlock();
      task(data);
      lock.lock();
    }
  }
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::pair<void (*)(void*), void*>> tasks_;
  bool ended_ = false;
  std::vector<std::thread> threads_;
};

// The median of some rounds, in milliseconds.
double time_call(const TestCall& call, Pool& pool, int rounds) {
  const kernels::TestFrame frame(call);
  const auto row =
      std::find_if(kernels::registry().begin(), kernels::registry().end(),
                   [&](const kernels::Row& candidate) { return candidate.target == call.target; });
  const pjrt::CustomCall made = frame.call();
  const kernels::UseThreads threads(
      [&pool](void (*task)(void*), void* data) { return pool.schedule(task, data); });
  std::vector<double> times;
  for (int round = 0; round <= rounds; ++round) {
    const base::Stopwatch watch;
    base::value_or_throw(row->handler(kernels::Call(row->target, row->attributes, made)));
    if (round > 0) times.push_back(watch.seconds() * 1e3);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

double time_alone(const Convolution& c, bool first, Pool& pool, int rounds) {
  using Kind = stablehlo::ConvolutionCall::Kind;
  const auto call = [&](Kind kind, std::initializer_list<Dims> operands,
                        std::initializer_list<Dims> results) {
    TestCall made{.target = "sluice_convolution", .operands = {}, .results = {}};
    for (const Dims& dims : operands) made.operands.push_back({dims});
    for (const Dims& dims : results) made.results.push_back({dims});
    made.attributes = {{"kind", static_cast<int64_t>(kind)},
                       {"stride", c.stride},
                       {"padding", c.padding},
                       {"dilation", Dims{1, 1}},
                       {"groups", int64_t{1}},
                       {"channels_first", int64_t{0}}};
    return time_call(made, pool, rounds);
  };
  // The images need no gradient.
  return call(Kind::kForward, {c.x, c.w}, {c.y}) + (first
                                                        ? call(Kind::kWeights, {c.x, c.y}, {c.w})
                                                        : call(Kind::kBackward, {c.x, c.w, c.y}, {c.x, c.w}));
}

// ---- Together ----

std::vector<std::string> slowest(const std::map<std::string, Convolution>& all, double Convolution::*time) {
  std::vector<std::string> names;
  for (const auto& [name, convolution] : all) names.push_back(name);
  std::stable_sort(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
    return all.at(a).*time > all.at(b).*time;
  });
  names.resize(std::min<size_t>(names.size(), 3));
  return names;
}

int run(int64_t batch, int64_t image_size, int64_t steps, int rounds) {
  torch::manual_seed(1);
  const models::ModelPtr model = models::resnet50();
  auto all = convolutions_of(*model, batch, image_size);
  const json page = profile_steps(model, batch, image_size, steps);
  for (const json& row : page.at("rows"))
    if (const auto found = all.find(row.at("name")); found != all.end())
      found->second.in_step += row.at("ms").get<double>();
  Pool pool;
  for (auto& [name, convolution] : all)
    convolution.alone = time_alone(convolution, name == "conv1", pool, rounds);
  const auto in_step = slowest(all, &Convolution::in_step), alone = slowest(all, &Convolution::alone);
  const double third = all.at(alone.back()).alone;
  const bool agree = std::all_of(in_step.begin(), in_step.end(),
                                 [&](const std::string& name) { return all.at(name).alone >= 0.9 * third; });
  json result = {{"model", "resnet50"},
                 {"batch_size", batch},
                 {"image_size", image_size},
                 {"step_ms", page.at("ms")},
                 {"layers_ms", page.at("layers_ms")},
                 {"compiled_ms", page.at("compiled_ms")},
                 {"no_program_ms", page.at("no_program_ms")},
                 {"slowest_in_step", in_step},
                 {"slowest_alone", alone},
                 {"agree", agree}};
  for (const auto& [name, convolution] : all)
    result["convolutions"][name] = {{"in_step_ms", convolution.in_step}, {"alone_ms", convolution.alone}};
  std::cout << result.dump(1) << "\n";
  return agree ? 0 : 1;
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  const auto number = [&](int i, int64_t otherwise) { return argc > i ? std::atoll(argv[i]) : otherwise; };
  try {
    return sluice::bench::run(number(1, 16), number(2, 224), number(3, 5), static_cast<int>(number(4, 5)));
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
