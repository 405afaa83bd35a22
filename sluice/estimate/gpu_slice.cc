#include "sluice/estimate/gpu_slice.h"

#include "sluice/base/text/join.h"
#include "sluice/base/text/lower_case.h"
#include "sluice/base/text/strings.h"

namespace sluice::estimate {
namespace {

// The figures of a GPU that XLA's compiler needs: from NVIDIA's data sheets, the CUDA programming guide's
// table of compute capabilities, and the driver.
struct GpuModel {
  TpuGeneration generation;
  const char* kind;  // the driver's name
  int major;         // of the compute capability
  const char* features;
  int multiprocessors, fpus;                                        // and the f32 units of each
  int64_t shared_memory, shared_memory_of_block, l2_cache, memory;  // bytes
  double clock_ghz;
};

const std::vector<GpuModel>& gpu_models() {
  const auto generation = [](const char* name, double gib, double tflops, double gb_per_second) {
    return TpuGeneration{name, name, false, 1, 1, gib, tflops, gb_per_second, 0, 0, {1, 2, 4, 8}, ""};
  };
  static const auto& all = *new std::vector<GpuModel>{
      {generation("a100", 79.25, 312, 2039), "NVIDIA A100-SXM4-80GB", 8, "NONE", 108, 64, 167936, 166912,
       41943040, 85100068864, 1.41},
      {generation("h100", 79.1, 989.4, 3352), "NVIDIA H100 80GB HBM3", 9, "ACCELERATED_FEATURES", 132, 128,
       233472, 232448, 52428800, 84942979072, 1.98},
      {generation("h200", 141, 989.4, 4800), "NVIDIA H200", 9, "ACCELERATED_FEATURES", 132, 128, 233472,
       232448, 62914560, 151397597184, 1.98},
  };
  return all;
}

// Returns XLA's message GpuTargetConfigProto as text. CUDA and cuDNN: the versions of PyTorch 2.11.
std::string target_config(const GpuModel& gpu) {
  const std::string memory =
      base::str("memory_bandwidth: ", static_cast<int64_t>(gpu.generation.memory_gb_per_second * 1e9),
                " device_memory_size: ", gpu.memory, " l2_cache_size: ", gpu.l2_cache,
                " shared_memory_per_core: ", gpu.shared_memory,
                " shared_memory_per_block_optin: ", gpu.shared_memory_of_block,
                " shared_memory_per_block: 49152 registers_per_core_limit: 65536"
                " registers_per_block_limit: 65536 ");
  const std::string threads = base::str(
      "core_count: ", gpu.multiprocessors, " fpus_per_core: ", gpu.fpus, " clock_rate_ghz: ", gpu.clock_ghz,
      " threads_per_warp: 32 threads_per_block_limit: 1024 threads_per_core_limit: 2048"
      " thread_dim_limit_x: 1024 thread_dim_limit_y: 1024 thread_dim_limit_z: 64"
      " block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535 ");
  const std::string versions = base::str(
      "cuda_compute_capability { major: ", gpu.major, " feature_extension: ", gpu.features,
      " } driver_version: \"13.0.0\" runtime_version: \"13.0.0\" compile_time_toolkit_version: \"13.0.0\""
      " dnn_version: \"9.19.0\" device_vendor: \"NVIDIA Corporation\" name: \"",
      gpu.kind, "\" ");
  return base::str(
      "gpu_device_info { ", memory, threads, versions,
      "} platform_name: \"CUDA\" dnn_version_info { major: 9 minor: 19 } device_description_str: \"",
      gpu.kind, "\"");
}

TpuSlice make_slice(const GpuModel& gpu, int count) {
  TpuSlice slice;
  slice.name = base::str(gpu.generation.name, "-", count);
  slice.generation = &gpu.generation;
  slice.bounds = {count};
  slice.chips = slice.devices = count;
  slice.hosts = 1;
  slice.plugin = "cuda";
  slice.topology = base::str("1x1x", count);  // slices × hosts × devices
  slice.options = {{"topology", slice.topology}, {"target_config", target_config(gpu)}};
  return slice;
}

const GpuModel* find_model(const std::string& name) {
  for (const GpuModel& gpu : gpu_models())
    if (gpu.generation.name == name) return &gpu;
  return nullptr;
}

// Splits "H100-8" into {"h100", "8"}.
std::pair<std::string, std::string> parts_of(const std::string& name) {
  const std::string text = base::lower_case(base::trim(name));
  const size_t dash = text.rfind('-');
  if (dash == std::string::npos) return {text, "1"};
  return {text.substr(0, dash), text.substr(dash + 1)};
}

}  // namespace

base::Result<TpuSlice> find_gpu_slice(const std::string& name) {
  const auto [model, number] = parts_of(name);
  if (const GpuModel* gpu = find_model(model)) {
    for (const int count : gpu->generation.sizes)
      if (number == std::to_string(count)) return make_slice(*gpu, count);
  }
  return base::fail(Code::kInvalidArgument, "unknown GPUs '", name,
                    "'; known: ", base::join(gpu_slice_names(), ", "));
}

std::vector<std::string> gpu_slice_names() {
  std::vector<std::string> names;
  for (const GpuModel& gpu : gpu_models())
    for (const int count : gpu.generation.sizes) names.push_back(base::str(gpu.generation.name, "-", count));
  return names;
}

base::Result<TpuSlice> find_slice(const std::string& name) {
  return find_model(parts_of(name).first) != nullptr ? find_gpu_slice(name) : find_tpu_slices(name);
}

}  // namespace sluice::estimate
