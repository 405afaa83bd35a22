// Compiling for TPUs and GPUs that are not here, in a process of its own: libtpu ends its process on some
// inputs, reads the environment and blocks on the metadata server outside of Google's cloud.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/estimate/gpu_slice.h"
#include "sluice/estimate/largest_buffers.h"
#include "sluice/pjrt/program/topology.h"

namespace sluice::estimate {

struct AheadRequest {
  TpuSlice slice;
  std::string text;  // StableHLO
  int replicas = 0;  // 0: one on each device of the slice
  double deadline_seconds = 3600;
  std::string cache = {};   // a folder of compiled programs that gets this one (CompileCache); "": none
  bool partitions = false;  // the devices together run the program, which has a mesh, instead of replicas
};

struct AheadReport {
  bool fits = false;
  pjrt::AheadProgram program;                    // if it fits
  std::optional<pjrt::MemoryShortage> shortage;  // if it does not and the compiler reported the difference
  int64_t memory_limit = 0;                      // bytes that a program may use on each device; 0: not known
  std::string device_kind;                       // "TPU v3", "NVIDIA H100 80GB HBM3"
  std::string plugin_path;
  std::string cached;  // the entry's name in the folder of compiled programs; "": it is not there
  // Filled for a program over a mesh, if it fits and was not compiled for a folder of programs.
  std::vector<LargestBuffer> largest = {};
};

// Runs `worker` (a command line; two paths are appended) and waits for its report. Errors: the compiler's
// refusal (its own text, with line and column of the program), kNotFound if the slice's plugin is not
// installed, kInternal with the last words of a process that the compiler ended, kDeadlineExceeded.
base::Result<AheadReport> compile_in_worker(const std::vector<std::string>& worker,
                                            const AheadRequest& request);

// The worker's side: reads the request, compiles with the slice's plugin, writes the report. Returns the exit
// status. compile_in_worker must have started the process: it sets the environment that libtpu needs.
int run_ahead_worker(const std::string& request_path, const std::string& report_path);

// How to install libtpu, for messages.
inline constexpr const char* kInstallLibtpu =
    "run `scripts/setup --libtpu` (205 MB), or set TPU_LIBRARY_PATH to a libtpu.so";
// The same for the compiler of GPUs, with its assembler.
inline constexpr const char* kInstallCudaCompiler = "run `pip install jax-cuda13-pjrt nvidia-cuda-nvcc`";

}  // namespace sluice::estimate
