// One of several processes that load a Llama in bf16 over a mesh; mesh_load.py starts them on an emulated
// pod. Prints one line of JSON:
//   bench_mesh_load MESH FOLDER    a folder of transformers, here or in a bucket
#include <sluice/sluice.h>

#include <algorithm>
#include <string>

#include "bench/mesh_process.h"
#include "sluice/base/clock.h"
#include "sluice/base/test_memory.h"
#include "sluice/models/language/language.h"
#include "sluice/session/files/module_values.h"
#include "sluice/session/pretrained/pretrained.h"

namespace {

nlohmann::json load(const std::string& folder) {
  sluice::base::reset_peak_memory();
  const int64_t before = sluice::base::peak_memory(),
                read_before = sluice::base::process_number("io", "rchar:");
  const sluice::base::Stopwatch watch;
  const sluice::models::LanguageModelPtr model =
      sluice::load_pretrained_over_mesh(folder, {}, torch::kBFloat16);
  sluice::sync_and_wait();
  const double seconds = watch.seconds();
  const int64_t peak = sluice::base::peak_memory() - before;
  const int64_t read = sluice::base::process_number("io", "rchar:") - read_before;
  int64_t largest = 0;
  for (const torch::Tensor& tensor : model->parameters())
    largest = std::max(largest, tensor.numel() * static_cast<int64_t>(tensor.element_size()));
  const int64_t blocks = sluice::bench::bytes_here(sluice::sessions::module_tensors(*model));
  // The mean of a matrix of random bits says little, so the norms' weights, which are all 1, are looked at.
  const auto parameters = model->named_parameters();
  const double norm = parameters["model.norm.weight"].to(torch::kFloat).mean().item<double>();
  return {
      {"blocks_gb", static_cast<double>(blocks) / 1e9},
      {"largest_tensor_gb", static_cast<double>(largest) / 1e9},
      {"above_blocks_in_largest_tensors", static_cast<double>(peak - blocks) / static_cast<double>(largest)},
      {"read_over_blocks", static_cast<double>(read) / static_cast<double>(blocks)},
      {"seconds", seconds},
      {"mean_of_ones", norm}};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  return sluice::bench::run_mesh_process(argv[1], [&](sluice::Session&) { return load(argv[2]); });
}
