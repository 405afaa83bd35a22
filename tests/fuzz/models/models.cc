// fuzz_models: random small models on random meshes of CPU devices, beside one device. README.md says what it
// checks; --help how it is called.
#include <torch/torch.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>

#include "sluice/base/clock.h"
#include "sluice/device/device.h"
#include "sluice/device/sharding/shard.h"
#include "tests/common/program.h"
#include "tests/fuzz/models/model.h"

namespace sluice::fuzz {
namespace {

constexpr char kHelp[] = R"(Usage: fuzz_models [--count N] [--seed S] [option]…

Trains random small models for three steps, each on one device and laid out over a random mesh of 4 or 8 devices, and
compares losses, parameters and buffers.

  --count N     make N models (200)
  --seed S      make the models of seed S (1)
  --first N     begin with model N (0)
  --replay S:N  run only model N of seed S
  --seconds N   begin no further mesh after N seconds (0: no limit)
  --verbose     print each model before it runs
  --break       lay one batch out wrongly, which must be seen
  --help        print this text
Exit status: 0 without differences, 1 with some, 2 for a wrong call.
)";

constexpr int kSteps = 3;
// Relative to the largest element. Sums in another order differ by less; what differs by more is trained
// again in f64, where rounding cannot explain it.
constexpr double kTolerance = 1e-5, kTolerance64 = 1e-9;

struct Options {
  int64_t count = 200, first = 0;
  uint64_t seed = 1;
  double seconds = 0;
  bool verbose = false, broken = false, help = false;
};

int64_t whole(const std::string& flag, const std::string& text) {
  char* end = nullptr;
  errno = 0;
  const int64_t value = std::strtoll(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || errno != 0 || value < 0)
    throw std::runtime_error(flag + " needs a whole number of at least 0, found '" + text + "'");
  return value;
}

void set_flag(Options& options, const std::string& flag, const std::string& value) {
  if (flag == "--count") {
    options.count = whole(flag, value);
  } else if (flag == "--seed") {
    options.seed = static_cast<uint64_t>(whole(flag, value));
  } else if (flag == "--first") {
    options.first = whole(flag, value);
  } else if (flag == "--seconds") {
    options.seconds = static_cast<double>(whole(flag, value));
  } else if (flag == "--replay") {
    const size_t colon = value.find(':');
    if (colon == std::string::npos)
      throw std::runtime_error("--replay needs SEED:NUMBER, found '" + value + "'");
    options.seed = static_cast<uint64_t>(whole(flag, value.substr(0, colon)));
    options.first = whole(flag, value.substr(colon + 1));
    options.count = 1;
    options.verbose = true;
  } else {
    throw std::runtime_error("unknown option " + flag + "; --help lists them");
  }
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--verbose") {
      options.verbose = true;
    } else if (flag == "--break") {
      options.broken = true;
    } else if (flag == "--help") {
      options.help = true;
    } else {
      if (i + 1 == argc) throw std::runtime_error("a value is missing after " + flag);
      set_flag(options, flag, argv[++i]);
    }
  }
  return options;
}

struct Trained {
  std::string error;
  std::vector<std::pair<std::string, torch::Tensor>> values;  // losses, parameters, buffers
};

void open_mesh(const std::string& mesh) {
  if (is_initialized()) shutdown();
  DeviceOptions options;
  options.cache = false;
  options.cpu_kernels = false;  // a mesh has none
  init(Mesh::parse(mesh), options);
}

void lay_out(const Plan& plan, ModelImpl& model) {
  if (plan.by_rules) {
    shard(model, rules_of(plan, model));
    return;
  }
  const std::vector<Layout> layouts = layouts_of(plan, model);
  std::vector<torch::Tensor> parameters = model.parameters();
  for (size_t i = 0; i < parameters.size(); ++i) parameters[i].set_data(shard(parameters[i], layouts[i]));
  for (torch::Tensor& buffer : model.buffers())
    buffer.set_data(shard(buffer, Layout::replicated(static_cast<size_t>(buffer.dim()))));
}

std::unique_ptr<torch::optim::Optimizer> optimizer_of(const Plan& plan, ModelImpl& model) {
  if (!plan.adam)
    return std::make_unique<torch::optim::SGD>(model.parameters(),
                                               torch::optim::SGDOptions(0.05).momentum(0.9));
  // A large epsilon: AdamW divides a gradient by itself, which makes rounding errors of small ones large.
  return std::make_unique<torch::optim::AdamW>(model.parameters(),
                                               torch::optim::AdamWOptions(1e-2).eps(1e-3));
}

// Trains the plan's model on the open device.
Trained train(const Plan& plan, torch::ScalarType type, bool broken = false) {
  Trained run;
  torch::manual_seed(plan.seed * 1000 + static_cast<uint64_t>(plan.number));
  Model model(plan);
  model->to(type);
  lay_out(plan, *model);
  const auto optimizer = optimizer_of(plan, *model);
  const Layout layout = layout_of_input(plan);
  std::vector<double> losses;
  for (int step = 0; step < kSteps; ++step) {
    const torch::Tensor rows = torch::arange(plan.batch).unsqueeze(1) * 7 + step * 5;
    // No token comes twice in a row: what is equal may be ordered in any way.
    torch::Tensor tokens = (rows + torch::arange(plan.length) * (2 * step + 1)).remainder(kWords);
    const torch::Tensor labels = (tokens * 5 + rows).remainder(kClasses);
    if (broken) tokens = tokens.roll(1, 0);
    const torch::Tensor x = shard(tokens, layout), y = shard(labels, layout);
    optimizer->zero_grad();
    const torch::Tensor loss =
        torch::nn::functional::cross_entropy(model->forward(x).flatten(0, 1), y.flatten());
    loss.backward();
    optimizer->step();
    sync();
    losses.push_back(loss.item<double>());
  }
  run.values.emplace_back("losses", torch::tensor(losses, torch::kDouble));
  for (const auto& item : model->named_parameters())
    run.values.emplace_back(item.key(), item.value().detach().cpu());
  for (const auto& item : model->named_buffers()) run.values.emplace_back(item.key(), item.value().cpu());
  return run;
}

Trained train_or_say_why(const Plan& plan, torch::ScalarType type, bool broken = false) {
  try {
    return train(plan, type, broken);
  } catch (const std::exception& error) {
    return {error.what(), {}};
  }
}

// "" if the runs agree.
std::string difference(const Trained& found, const Trained& wanted, double tolerance) {
  if (!found.error.empty() || !wanted.error.empty()) {
    const std::string& error = found.error.empty() ? wanted.error : found.error;
    return (found.error.empty() ? "refused on one device: " : "refused: ") +
           error.substr(0, error.find('\n'));
  }
  for (size_t i = 0; i < wanted.values.size(); ++i) {
    const torch::Tensor a = found.values[i].second.to(torch::kDouble);
    const torch::Tensor b = wanted.values[i].second.to(torch::kDouble);
    const double error = ((a - b).abs().max() / b.abs().max().clamp_min(1e-3)).item<double>();
    if (error <= tolerance) continue;
    char text[64];
    std::snprintf(text, sizeof text, " differ by %.3g of the largest", error);
    return wanted.values[i].first + text;
  }
  return "";
}

class Fuzzer {
 public:
  explicit Fuzzer(const Options& options) : options_(options) {}

  int run() {
    std::map<std::string, std::vector<Plan>> plans;
    for (int64_t i = 0; i < options_.count; ++i) {
      const Plan plan = make_plan(options_.seed, options_.first + i);
      plans[plan.mesh].push_back(plan);
    }
    for (const auto& [mesh, on_mesh] : plans) {
      if (options_.seconds > 0 && watch_.seconds() > options_.seconds) {
        std::printf("not begun in time: %zu models on %s\n", on_mesh.size(), mesh.c_str());
        continue;
      }
      run_mesh(mesh, on_mesh);
    }
    if (is_initialized()) shutdown();
    std::printf("%lld models on %zu meshes in %.0f s: %lld differ by rounding alone, differences %lld\n",
                static_cast<long long>(models_), plans.size(), watch_.seconds(),
                static_cast<long long>(rounded_), static_cast<long long>(differences_));
    return differences_ == 0 && models_ > 0 ? 0 : 1;
  }

 private:
  void run_mesh(const std::string& mesh, const std::vector<Plan>& plans) {
    const std::vector<Trained> wanted = train_all("fsdp=1", plans, torch::kFloat, false);
    const std::vector<Trained> found = train_all(mesh, plans, torch::kFloat, options_.broken);
    std::vector<Plan> doubtful;
    for (size_t i = 0; i < plans.size(); ++i)
      if (!difference(found[i], wanted[i], kTolerance).empty()) doubtful.push_back(plans[i]);
    models_ += static_cast<int64_t>(plans.size());
    if (!doubtful.empty()) settle(mesh, doubtful);
  }

  // What f32 computes otherwise, f64 must compute alike.
  void settle(const std::string& mesh, const std::vector<Plan>& plans) {
    const std::vector<Trained> wanted = train_all("fsdp=1", plans, torch::kDouble, false);
    const std::vector<Trained> found = train_all(mesh, plans, torch::kDouble, options_.broken);
    for (size_t i = 0; i < plans.size(); ++i) {
      const std::string message = difference(found[i], wanted[i], kTolerance64);
      if (message.empty()) {
        ++rounded_;
        continue;
      }
      ++differences_;
      std::printf("FAIL --replay %llu:%lld: %s\n  %s\n", static_cast<unsigned long long>(plans[i].seed),
                  static_cast<long long>(plans[i].number), message.c_str(), plans[i].text().c_str());
      print_layouts(plans[i]);
      std::fflush(stdout);
    }
  }

  static void print_layouts(const Plan& plan) {
    Model model(plan);
    const std::vector<Layout> layouts =
        plan.by_rules
            ? parameter_layouts(Mesh::parse(plan.mesh), shapes_of(*model), rules_of(plan, *model)).layouts
            : layouts_of(plan, *model);
    size_t i = 0;
    for (const auto& item : model->named_parameters())
      std::printf("  %s %s\n", item.key().c_str(), layouts[i++].str().c_str());
    std::printf("  input %s\n", layout_of_input(plan).str().c_str());
  }

  static std::vector<NamedShape> shapes_of(const ModelImpl& model) {
    std::vector<NamedShape> shapes;
    for (const auto& item : model.named_parameters())
      shapes.push_back({item.key(), item.value().sizes().vec()});
    return shapes;
  }

  std::vector<Trained> train_all(const std::string& mesh, const std::vector<Plan>& plans,
                                 torch::ScalarType type, bool broken) const {
    open_mesh(mesh);
    std::vector<Trained> runs;
    for (const Plan& plan : plans) {
      if (options_.verbose)
        std::fprintf(stderr, "%llu:%lld on %s: %s\n", static_cast<unsigned long long>(plan.seed),
                     static_cast<long long>(plan.number), mesh.c_str(), plan.text().c_str());
      runs.push_back(train_or_say_why(plan, type, broken));
    }
    return runs;
  }

  const Options& options_;
  const base::Stopwatch watch_;
  int64_t models_ = 0, rounded_ = 0, differences_ = 0;
};

int run(int argc, char** argv) {
  const Options options = parse(argc, argv);
  if (options.help) {
    std::fputs(kHelp, stdout);
    return 0;
  }
  torch::set_num_threads(1);
  return Fuzzer(options).run();
}

}  // namespace
}  // namespace sluice::fuzz

int main(int argc, char** argv) {
  return sluice::tests::run_program("fuzz_models", sluice::fuzz::run, argc, argv);
}
