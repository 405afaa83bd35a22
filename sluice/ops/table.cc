#include <string>
#include <unordered_map>
#include <vector>

#include "sluice/ops/families.h"

namespace sluice::ops {
namespace {

std::vector<Row> join_families() {
  std::vector<Row> all;
  for (std::span<const Row> family : {
           pointwise_rows(),   activation_rows(), compare_rows(),        reduce_rows(),   matmul_rows(),
           convolution_rows(), pooling_rows(),    normalization_rows(),  softmax_rows(),  attention_rows(),
           recurrent_rows(),   loss_rows(),       index_rows(),          resample_rows(), patches_rows(),
           create_rows(),      shape_rows(),      random_rows(),         view_rows(),     collective_rows(),
           distance_rows(),    quantize_rows(),   linear_algebra_rows(), complex_rows(),  float8_rows(),
           fft_rows(),         lbfgs_rows(),      polynomial_rows(),
       })
    all.insert(all.end(), family.begin(), family.end());
  return all;
}

const std::unordered_map<std::string_view, const Row*>& rows_by_name() {
  static const auto* by_name = [] {
    auto* map = new std::unordered_map<std::string_view, const Row*>();
    for (const Row& row : rows()) map->emplace(row.name, &row);
    return map;
  }();
  return *by_name;
}

}  // namespace

std::span<const Row> rows() {
  static const auto* all = new std::vector<Row>(join_families());
  return *all;
}

const Row* find_row(std::string_view name) {
  const auto found = rows_by_name().find(name);
  return found == rows_by_name().end() ? nullptr : found->second;
}

}  // namespace sluice::ops
