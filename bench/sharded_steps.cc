// What the host works to record a training step over a mesh, beside the same step on one device: a decoder
// with AdamW, on virtual devices of the CPU. The sides take turns, each opens the device again. Prints JSON:
// processor microseconds of recording a step and of its launch, the ratios of the mesh to one device, and how
// many programs were new after the steps that warm up.
//   bench_sharded_steps [ROUNDS [MESH]]
#include <torch/torch.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "bench/against_eager.h"
#include "sluice/device/sharding/shard.h"
#include "sluice/models/language/language.h"

namespace {

using sluice::bench::median;
using sluice::bench::seconds_of;
using torch::Tensor;

constexpr int kWarmSteps = 4, kSteps = 12;

struct Side {
  std::string mesh;
  std::vector<double> recording = {}, launching = {};
  int64_t programs = 0;  // new ones after the steps that warm up
};

double microseconds() { return seconds_of(CLOCK_PROCESS_CPUTIME_ID) * 1e6; }

// One round of a side: some steps, each recorded while no device works.
void measure(Side& side) {
  if (sluice::is_initialized()) sluice::shutdown();
  sluice::DeviceOptions device;
  device.cpu_kernels = false;  // a mesh has none
  sluice::init(sluice::Mesh::parse(side.mesh), device);
  torch::manual_seed(1);
  auto options = sluice::models::language_preset("gpt2-tiny");
  options.layers = 6;
  const auto model = sluice::models::language_model(options);
  sluice::shard(*model);
  torch::optim::AdamW optimizer(model->parameters(), torch::optim::AdamWOptions(1e-3));
  const Tensor ids = torch::arange(16 * 16).reshape({16, 16}).remainder(options.vocabulary);
  int64_t programs = 0;
  for (int step = 0; step < kWarmSteps + kSteps; ++step) {
    const Tensor x = sluice::shard_batch(ids), y = sluice::shard_batch(ids.roll(-1, 1));
    sluice::sync_and_wait();
    const double begin = microseconds();
    optimizer.zero_grad();
    const Tensor scores = model->forward(x).flatten(0, 1);
    torch::nn::functional::cross_entropy(scores, y.flatten()).backward();
    optimizer.step();
    const double recorded = microseconds();
    sluice::sync();
    const double launched = microseconds();
    sluice::sync_and_wait();
    if (step == kWarmSteps - 1) programs = sluice::counters().programs;
    if (step < kWarmSteps) continue;
    side.recording.push_back(recorded - begin);
    side.launching.push_back(launched - recorded);
  }
  side.programs = std::max(side.programs, sluice::counters().programs - programs);
}

nlohmann::json figures(const Side& side) {
  return {{"mesh", side.mesh},
          {"recording_us", median(side.recording)},
          {"launching_us", median(side.launching)},
          {"new_programs", side.programs}};
}

}  // namespace

int main(int argc, char** argv) {
  torch::set_num_threads(1);
  const int rounds = std::max(1, argc > 1 ? std::atoi(argv[1]) : 5);
  Side one{"fsdp=1"}, mesh{argc > 2 ? argv[2] : "fsdp=8"};
  for (int i = 0; i < rounds; ++i) {
    measure(one);
    measure(mesh);
  }
  sluice::shutdown();
  const nlohmann::json result = {{"one", figures(one)},
                                 {"over_mesh", figures(mesh)},
                                 {"recording_ratio", median(mesh.recording) / median(one.recording)},
                                 {"launching_ratio", median(mesh.launching) / median(one.launching)}};
  std::printf("%s\n", result.dump(2).c_str());
  return 0;
}
