// What the benches share that run as one of several processes over a mesh.
#pragma once

#include <sluice/sluice.h>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>
#include <string>

#include "sluice/device/sharding/blocks.h"
#include "sluice/device/sharding/shard.h"
#include "sluice/session/files/tensor_file.h"

namespace sluice::bench {

// Returns the bytes of the different blocks that this process's devices hold.
inline int64_t bytes_here(const sessions::NamedTensors& tensors) {
  int64_t bytes = 0;
  for (const auto& [name, tensor] : tensors) {
    const auto element = static_cast<int64_t>(tensor.element_size());
    if (!tensor.is_xla()) {
      bytes += tensor.numel() * element;
      continue;
    }
    for (const auto& block : device::blocks_here(layout_of(tensor), tensor.sizes().vec())) {
      int64_t elements = 1;
      for (const int64_t size : block.sizes) elements *= size;
      bytes += elements * element;
    }
  }
  return bytes;
}

// Starts a session over the mesh, and prints the numbers of measure(session) as a line "RESULT {…}" with the
// process's number. Returns the status of the program: 1 after an error, which is printed.
template <typename Measure>
int run_mesh_process(const std::string& mesh, const Measure& measure) {
  torch::set_num_threads(1);
  try {
    Options options;
    options.mesh = Mesh::parse(mesh);
    auto session = start(options);
    nlohmann::json result = measure(session);
    result["process"] = session.process_index();
    session.finish();
    std::printf("RESULT %s\n", result.dump().c_str());
  } catch (const std::exception& error) {
    std::printf("error: %s\n", error.what());
    return 1;
  }
  return 0;
}

}  // namespace sluice::bench
