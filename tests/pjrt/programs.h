// Programs with collectives for the tests of the emulated pod.
#pragma once

#include <string>

#include "sluice/base/text/join.h"

namespace emulated_pod::testing {

using sluice::base::str;

inline std::string vector_type(int size, const char* element = "f32") {
  return str("tensor<", size, "x", element, ">");
}

// "dense<[[0, 1, 2]]> : tensor<1x3xi64>"
inline std::string all_of(int replicas) {
  std::string ids;
  for (int r = 0; r < replicas; ++r) ids += str(r == 0 ? "" : ", ", r);
  return str("dense<[[", ids, "]]> : tensor<1x", replicas, "xi64>");
}

// Each replica to the next, the last to the first.
inline std::string ring_of(int replicas) {
  std::string pairs;
  for (int r = 0; r < replicas; ++r) pairs += str(r == 0 ? "" : ", ", "[", r, ", ", (r + 1) % replicas, "]");
  return str("dense<[", pairs, "]> : tensor<", replicas, "x2xi64>");
}

inline std::string sum_region() {
  return " ({\n    ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
         "      %c = \"stablehlo.add\"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>\n"
         "      \"stablehlo.return\"(%c) : (tensor<f32>) -> ()\n    }) ";
}

// @main(x: one number for each replica) = sum over the replicas, all values one after the other, this
// replica's part of the sum, the value of the replica before, the replica's number. With channels the first
// three have a number each; a permutation with one would be between partitions.
inline std::string collectives_program(int replicas, bool channels) {
  const std::string own = vector_type(replicas), all = vector_type(replicas * replicas), one = vector_type(1);
  const auto channel = [channels](int number) {
    return channels ? str(", channel_handle = #stablehlo.channel_handle<handle = ", number, ", type = 1>")
                    : "";
  };
  const std::string groups = "replica_groups = " + all_of(replicas);
  return str(
      "module @collectives {\n  func.func @main(%x: ", own, ") -> (", own, ", ", all, ", ", one, ", ", own,
      ", tensor<ui32>) {\n    %sum = \"stablehlo.all_reduce\"(%x)", sum_region(), "{", groups, channel(1),
      "} : (", own, ") -> ", own, "\n    %all = \"stablehlo.all_gather\"(%x) {all_gather_dim = 0 : i64, ",
      groups, channel(2), "} : (", own, ") -> ", all, "\n    %part = \"stablehlo.reduce_scatter\"(%x)",
      sum_region(), "{scatter_dimension = 0 : i64, ", groups, channel(3), "} : (", own, ") -> ", one,
      "\n    %before = \"stablehlo.collective_permute\"(%x) {source_target_pairs = ", ring_of(replicas),
      "} : (", own, ") -> ", own,
      "\n    %id = \"stablehlo.replica_id\"() : () -> tensor<ui32>\n"
      "    \"func.return\"(%sum, %all, %part, %before, %id) : (",
      own, ", ", all, ", ", one, ", ", own, ", tensor<ui32>) -> ()\n  }\n}\n");
}

// @main(x) = the sum of x over all replicas, divided by `divisor`; `attributes` go to x.
inline std::string mean_program(int replicas, int size, const std::string& attributes = "", int divisor = 1,
                                const char* name = "mean") {
  const std::string type = vector_type(size);
  return str("module @", name, " {\n  func.func @main(%x: ", type, " ", attributes, ") -> ", type,
             " {\n    %sum = \"stablehlo.all_reduce\"(%x)", sum_region(),
             "{replica_groups = ", all_of(replicas), "} : (", type, ") -> ", type,
             "\n    %n = \"stablehlo.constant\"() {value = dense<", divisor, ".0> : ", type, "} : () -> ",
             type, "\n    %mean = \"stablehlo.divide\"(%sum, %n) : (", type, ", ", type, ") -> ", type,
             "\n    \"func.return\"(%mean) : (", type, ") -> ()\n  }\n}\n");
}

}  // namespace emulated_pod::testing
