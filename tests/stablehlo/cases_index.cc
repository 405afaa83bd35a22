#include "case.h"

namespace sluice::stablehlo::testing {

std::vector<Case> index_cases() {
  Case slices{"dynamic_slices",
              {{f32({3, 4}), ramp(12)}, {s32(), {1}}, {s32(), {9}}, {f32({2, 2}), {-1, -2, -3, -4}}},
              {},
              {},
              0,
              1,
              {}};
  slices.build = [](Builder& b, const Values& p) {
    const Value starts[] = {p[1], p[2]};
    return Values{b.dynamic_slice(p[0], starts, {2, 2}), b.dynamic_update_slice(p[0], p[3], starts)};
  };
  // The start 9 is moved back to 2, so that the slice stays inside.
  slices.expected = {{6, 7, 10, 11}, {0, 1, 2, 3, 4, 5, -1, -2, 8, 9, -3, -4}};

  Case gathers{
      "gathers",
      {{f32({3, 4}), ramp(12)}, {s64({2, 1}), {2, 0}}, {s32({2, 2}), {1, 3, 0, 2}}, {s32({3}), {1, 1, 0}}},
      {},
      {},
      0,
      1,
      {}};
  gathers.build = [](Builder& b, const Values& p) {
    GatherDims rows;  // x[indices]
    rows.offset_dims = {1};
    rows.collapsed_slice_dims = {0};
    rows.start_index_map = {0};
    rows.index_vector_dim = 1;
    rows.slice_sizes = {1, 4};
    GatherDims elements;  // x[i, j]
    elements.collapsed_slice_dims = {0, 1};
    elements.start_index_map = {0, 1};
    elements.index_vector_dim = 1;
    elements.slice_sizes = {1, 1};
    GatherDims columns;  // x[:, indices], the index vector implicit
    columns.offset_dims = {0};
    columns.collapsed_slice_dims = {1};
    columns.start_index_map = {1};
    columns.index_vector_dim = 1;
    columns.slice_sizes = {3, 1};
    columns.indices_are_sorted = false;
    GatherDims windows = rows;  // windows of two columns, one an index
    windows.offset_dims = {0, 1};
    windows.collapsed_slice_dims = {};
    windows.index_vector_dim = 0;
    windows.slice_sizes = {2, 2};
    windows.start_index_map = {1};
    return Values{b.gather(p[0], p[1], rows), b.gather(p[0], p[2], elements), b.gather(p[0], p[3], columns),
                  b.gather(p[0], b.slice_dim(p[3], 0, 0, 1), windows)};
  };
  gathers.expected = {{8, 9, 10, 11, 0, 1, 2, 3}, {7, 2}, {1, 1, 0, 5, 5, 4, 9, 9, 8}, {1, 2, 5, 6}};

  Case scatters{"scatters",
                {{f32({3, 2}), {0, 0, 10, 10, 20, 20}},
                 {s64({3, 1}), {2, 0, 2}},
                 {f32({3, 2}), {1, 2, 3, 4, 5, 6}},
                 {s32({2, 2}), {1, 1, 0, 1}},
                 {f32({2}), {-5, -6}}},
                {},
                {},
                0,
                1,
                {}};
  scatters.build = [](Builder& b, const Values& p) {
    ScatterDims rows;
    rows.update_window_dims = {1};
    rows.inserted_window_dims = {0};
    rows.scatter_dims_to_operand_dims = {0};
    rows.index_vector_dim = 1;
    ScatterDims elements;
    elements.inserted_window_dims = {0, 1};
    elements.scatter_dims_to_operand_dims = {0, 1};
    elements.index_vector_dim = 1;
    elements.unique_indices = true;
    return Values{
        b.scatter(p[0], p[1], p[2], rows,
                  [](Builder& b, std::span<const Value> in) { return Values{b.add(in[0], in[1])}; }),
        b.scatter(p[0], p[3], p[4], elements,
                  [](Builder&, std::span<const Value> in) { return Values{in[1]}; })};
  };
  scatters.expected = {{3, 4, 10, 10, 26, 28}, {0, -6, 10, -5, 20, 20}};
  return {slices, gathers, scatters};
}

}  // namespace sluice::stablehlo::testing
