// Writes docs/ops.md from the table of operations:
//   sluice_ops_page > docs/ops.md
//   sluice_ops_page --check docs/ops.md      fails when the page is not what the table says
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/ops/families.h"

namespace sluice::ops {
namespace {

struct Family {
  const char* title;
  std::span<const Row> (*rows)();
};
const Family kFamilies[] = {
    {"Element-wise arithmetic and functions", pointwise_rows},
    {"Orthogonal polynomials", polynomial_rows},
    {"Activation functions", activation_rows},
    {"Comparisons and logic", compare_rows},
    {"Reductions, scans and sorting", reduce_rows},
    {"Matrix products", matmul_rows},
    {"Linear algebra", linear_algebra_rows},
    {"Complex numbers", complex_rows},
    {"Float8", float8_rows},
    {"Fourier transforms", fft_rows},
    {"Convolutions", convolution_rows},
    {"Pooling", pooling_rows},
    {"Normalization", normalization_rows},
    {"Softmax", softmax_rows},
    {"Attention", attention_rows},
    {"Recurrent layers", recurrent_rows},
    {"The direction of LBFGS", lbfgs_rows},
    {"Losses", loss_rows},
    {"Indexing, gathering and scattering", index_rows},
    {"Distances", distance_rows},
    {"Upsampling and grids", resample_rows},
    {"Patches", patches_rows},
    {"Creation", create_rows},
    {"Shape and layout", shape_rows},
    {"Random numbers", random_rows},
    {"Fake quantization", quantize_rows},
    {"Views and conversions", view_rows},
    {"Across replicas", collective_rows},
};

constexpr std::string_view kAten = "aten::";

const char* kIntroduction =
    "# Operations\n"
    "\n"
    "The operations that have a program on the `xla` device. This page is written by `sluice_ops_page` from "
    "the "
    "rows in [sluice/ops](../sluice/ops); [add_an_op.md](add_an_op.md) adds one.\n"
    "\n"
    "- A row serves the functional form that is named here, its in-place form and its `out` forms.\n"
    "- What LibTorch composes from these operations (`linear`, `matmul`, `cross_entropy`, `layer_norm`'s "
    "wrappers, the optimizers and many more) needs no row. Views, creation without values, copies between "
    "host "
    "and device and `.item()` are the device's own "
    "([sluice/device/operators/without_rows.cc](../sluice/device/operators/without_rows.cc)).\n"
    "- Recurrent layers (`lstm`, `gru`, `rnn_tanh`, `rnn_relu`, of packed sequences too) are a product and a "
    "loop "
    "for each layer and direction ([recurrent.cc](../sluice/ops/layers/recurrent.cc)), so that a program "
    "does not "
    "grow with its sequences; on a CPU the loop is [a kernel](kernels.md) for f32. LibTorch takes an LSTM "
    "with projections apart. A second derivative is an "
    "error.\n"
    "- `scaled_dot_product_attention` is one operation with its mask and its dropout "
    "([attention.cc](../sluice/ops/attention.cc)); on a CPU [a kernel](kernels.md) for f32. A second "
    "derivative is an error; `at::globalContext().setSDPUseFlash(false)` makes LibTorch take it apart, into "
    "operations that have one. So does a mask whose gradient is wanted.\n"
    "- Everything else runs on the CPU, with one warning that names it ([device.md](device.md#fallback)).\n"
    "- A number argument (`Scalar`, `float`) is an input of the program: changing it does not recompile. "
    "Those "
    "listed as constant are part of the program; so are all integers, booleans, lists, texts and element "
    "types. "
    "`constant if 1` means: only when it is exactly 1.\n";

bool is_aten(const Row& row) { return row.name.substr(0, kAten.size()) == kAten; }

std::string quoted(std::string_view words) {
  std::string text;
  while (!words.empty()) {
    const size_t end = std::min(words.find(' '), words.size());
    if (end > 0) text += (text.empty() ? "`" : ", `") + std::string(words.substr(0, end)) + "`";
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return text;
}

// What is special about a row, in words; "" for most.
std::string facts_of(const Row& row) {
  std::string text;
  auto add = [&](const char* what, std::string_view names) {
    if (!names.empty()) text += (text.empty() ? "" : "; ") + std::string(what) + " " + quoted(names);
  };
  add("constant:", row.constants);
  add("constant if 0:", row.constant_if_zero);
  add("constant if 1:", row.constant_if_one);
  add("writes", row.writes);
  if (row.random) text += (text.empty() ? "" : "; ") + std::string("draws random numbers");
  return text;
}

std::string section(const Family& family) {
  std::vector<std::string_view> names;
  for (const Row& row : family.rows()) {
    if (is_aten(row)) names.push_back(row.name.substr(kAten.size()));
  }
  if (names.empty()) return "";
  std::sort(names.begin(), names.end());
  std::string plain, special;
  for (std::string_view name : names) {
    const std::string facts = facts_of(*find_row(std::string(kAten) + std::string(name)));
    if (facts.empty())
      plain += (plain.empty() ? "" : ", ") + quoted(name);
    else
      special += "| " + quoted(name) + " | " + facts + " |\n";
  }
  std::string text = std::string("\n## ") + family.title + "\n";
  if (!plain.empty()) text += "\n" + plain + "\n";
  if (!special.empty()) text += "\n| operation | remarks |\n| --- | --- |\n" + special;
  return text;
}

std::string page() {
  const auto all = rows();
  const auto count = std::count_if(all.begin(), all.end(), is_aten);
  std::string text = kIntroduction;
  text += "\nThere are " + std::to_string(count) + " rows.\n";
  for (const Family& family : kFamilies) text += section(family);
  return text;
}

size_t rows_in_families() {
  size_t count = 0;
  for (const Family& family : kFamilies) count += family.rows().size();
  return count;
}

int run(int argc, char** argv) {
  if (rows_in_families() != rows().size()) {
    std::fprintf(stderr, "ops_page.cc lists %zu rows, the table has %zu: add the missing family\n",
                 rows_in_families(), rows().size());
    return 1;
  }
  const std::string expected = page();
  if (argc == 1) {
    std::fwrite(expected.data(), 1, expected.size(), stdout);
    return 0;
  }
  if (argc != 3 || std::string_view(argv[1]) != "--check") {
    std::fprintf(stderr, "usage: sluice_ops_page [--check PAGE]\n");
    return 2;
  }
  std::ifstream file(argv[2], std::ios::binary);
  const std::string found{std::istreambuf_iterator<char>(file), {}};
  if (found == expected) return 0;
  std::fprintf(stderr, "%s is not what the table of operations says; write it again: %s > %s\n", argv[2],
               argv[0], argv[2]);
  return 1;
}

}  // namespace
}  // namespace sluice::ops

int main(int argc, char** argv) { return sluice::ops::run(argc, argv); }
