// What spans cost: a site while no profile is taken, a training step while none and while one is, and the
// bytes of a profile of three steps. Prints JSON; steps are of ResNet-50 on 32×32 images, batch 32.
//   bench_spans [ROUNDS]
#include <torch/torch.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "sluice/base/clock.h"
#include "sluice/base/files/file.h"
#include "sluice/base/result.h"
#include "sluice/base/span.h"
#include "sluice/models/models.h"
#include "sluice/session/session.h"

namespace {

namespace base = sluice::base;
using nlohmann::json;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Nanoseconds that a span takes around nothing, the median of 9 rounds.
double site_nanoseconds() {
  constexpr int kSites = 20'000'000;
  const auto timed = [](auto body) {
    const base::Stopwatch watch;
    for (int i = 0; i < kSites; ++i) {
      body();
      asm volatile("" ::: "memory");
    }
    return watch.seconds() / kSites * 1e9;
  };
  std::vector<double> rounds;
  for (int i = 0; i < 9; ++i) {
    const double empty = timed([] {});
    rounds.push_back(timed([] { const base::Span span("a site"); }) - empty);
  }
  return median(rounds);
}

class Steps {
 public:
  Steps() : model_(sluice::models::resnet50(10)) {
    model_->to(session_.device());
    optimizer_.emplace(model_->parameters(), torch::optim::SGDOptions(0.01).momentum(0.9));
    session_.prepare(*model_, *optimizer_);
    image_ = torch::randn({32, 3, 32, 32}).to(session_.device());
    label_ = torch::randint(10, {32}, torch::kLong).to(session_.device());
    for (int i = 0; i < 3; ++i) step();
    session_.barrier();
  }
  void step() {
    torch::nn::functional::cross_entropy(model_->forward(image_), label_).backward();
    session_.step(*optimizer_);
  }
  // Milliseconds of a step, of four that follow each other.
  double timed() {
    constexpr int kTogether = 4;
    const base::Stopwatch watch;
    for (int i = 0; i < kTogether; ++i) step();
    session_.barrier();
    return watch.seconds() * 1000 / kTogether;
  }
  sluice::Session& session() { return session_; }

 private:
  sluice::Session session_ = sluice::start();
  sluice::models::ModelPtr model_;
  std::optional<torch::optim::SGD> optimizer_;
  torch::Tensor image_, label_;
};

int64_t bytes_in(const std::string& folder) {
  int64_t sum = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder))
    if (file.is_regular_file()) sum += static_cast<int64_t>(file.file_size());
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 20;
  const double site = site_nanoseconds();
  Steps steps;
  std::vector<double> off, on, ratios;
  size_t spans = 0;
  for (int i = 0; i < rounds; ++i) {
    // In turns, and now the one first, now the other.
    const auto record = [&] {
      base::start_spans();
      on.push_back(steps.timed());
      spans = 0;
      for (const base::SpanLine& line : base::stop_spans().lines) spans += line.spans.size();
    };
    if (i % 2 == 0) record();
    off.push_back(steps.timed());
    if (i % 2 == 1) record();
    ratios.push_back(on.back() / off.back());
  }
  const double per_step = static_cast<double>(spans) / 4;
  const auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  steps.session().profile(steps.session().steps() + 1, steps.session().steps() + 4, folder.path());
  for (int i = 0; i < 4; ++i) steps.step();
  steps.session().barrier();
  const json result = {{"site_ns", site},
                       {"spans_a_step", per_step},
                       {"step_ms", median(off)},
                       {"off_percent", 100 * per_step * site / (median(off) * 1e6)},
                       {"on_percent", 100 * (median(ratios) - 1)},
                       {"profile_bytes", bytes_in(folder.path())},
                       {"rounds", rounds}};
  std::printf("%s\n", result.dump(1).c_str());
}
