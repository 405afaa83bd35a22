// Clients and small programs for tests.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sluice/pjrt/client.h"

namespace sluice::pjrt::testing {

// Returns a client of XLA's CPU plugin without a cache; throws if the plugin is missing.
inline std::shared_ptr<Client> cpu_client(int devices = 1, const std::string& cache_dir = "") {
  ClientOptions options;
  options.cpu_device_count = devices;
  options.cache_dir = cache_dir;
  return base::value_or_throw(Client::create(base::value_or_throw(Plugin::load("cpu")), options));
}

inline stablehlo::Type f32(stablehlo::Dims dims) { return {stablehlo::DType::kF32, std::move(dims)}; }

template <typename T>
std::vector<T> values(const Buffer& buffer) {
  std::vector<T> host(static_cast<size_t>(buffer.type().numel()));
  base::value_or_throw(buffer.read(host.data(), host.size() * sizeof(T)));
  return host;
}

// Returns @main(x, y) = x + y; `attributes` are x's, for example "{tf.aliasing_output = 0 : i32}".
inline std::string add_program(const std::string& type = "tensor<4xf32>",
                               const std::string& attributes = "") {
  return "module @add {\n  func.func @main(%x: " + type + " " + attributes + ", %y: " + type + ") -> " +
         type + " {\n    %z = \"stablehlo.add\"(%x, %y) : (" + type + ", " + type + ") -> " + type +
         "\n    \"func.return\"(%z) : (" + type + ") -> ()\n  }\n}\n";
}

// Returns @main(x) = the sum of x over all replicas in `groups`, for example "[[0, 1]]" (tensor<1x2xi64>).
inline std::string all_reduce_program(const std::string& groups, const std::string& shape) {
  return "module @sum {\n  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
         "    %s = \"stablehlo.all_reduce\"(%x) ({\n    ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
         "      %c = \"stablehlo.add\"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>\n"
         "      \"stablehlo.return\"(%c) : (tensor<f32>) -> ()\n"
         "    }) {replica_groups = dense<" +
         groups + "> : tensor<" + shape +
         "xi64>} : (tensor<4xf32>) -> tensor<4xf32>\n"
         "    \"func.return\"(%s) : (tensor<4xf32>) -> ()\n  }\n}\n";
}

}  // namespace sluice::pjrt::testing
