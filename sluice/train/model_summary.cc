#include "sluice/train/model_summary.h"

#include <algorithm>
#include <array>
#include <unordered_set>
#include <vector>

#include "sluice/base/quantity.h"
#include "sluice/base/strings.h"

namespace sluice::train {
namespace model_summary_detail {

struct Counts {
  int64_t all = 0, trained = 0, bytes = 0;
};

constexpr size_t kColumns = 5;
using Row = std::array<std::string, kColumns>;

// "Conv2d" of "torch::nn::Conv2dImpl"; a demangled name in namespaces of its own loses these.
std::string type_of(const torch::nn::Module& module) {
  std::string name = module.name();
  if (const size_t end = name.find('<'); end != std::string::npos) name.resize(end);
  if (const size_t colons = name.rfind("::"); colons != std::string::npos) name.erase(0, colons + 2);
  if (name.ends_with("Impl")) name.resize(name.size() - 4);
  return name;
}

class Summary {
 public:
  explicit Summary(int64_t levels) : levels_(levels) {}

  std::string text(const torch::nn::Module& model) {
    rows_.push_back({"layer", "type", "parameters", "trained", "memory"});
    const Counts all = add(model, "", 0);
    add_row("total", "", all);
    std::array<size_t, kColumns> widths{};
    for (const Row& row : rows_)
      for (size_t i = 0; i < kColumns; ++i) widths[i] = std::max(widths[i], row[i].size());
    std::string table;
    for (const Row& row : rows_) {
      std::string line;
      for (size_t i = 0; i < kColumns; ++i) {
        const std::string blanks(widths[i] - row[i].size(), ' ');
        line += (i > 0 ? "  " : "") + (i < 2 ? row[i] + blanks : blanks + row[i]);
      }
      table += line + "\n";
    }
    return table;
  }

 private:
  // Of the module and all below it.
  Counts add(const torch::nn::Module& module, const std::string& name, int64_t level) {
    const size_t at = rows_.size();
    if (level > 0) rows_.emplace_back();
    Counts own;
    for (const auto& item : module.named_parameters(/*recurse=*/false)) count(item.value(), own);
    Counts sum = own;
    for (const auto& child : module.named_children()) {
      const std::string of_child = name.empty() ? child.key() : name + "." + child.key();
      Counts below;
      if (level < levels_) {
        below = add(*child.value(), of_child, level + 1);
      } else {
        for (const torch::Tensor& parameter : child.value()->parameters()) count(parameter, below);
      }
      sum.all += below.all;
      sum.trained += below.trained;
      sum.bytes += below.bytes;
    }
    if (level > 0) rows_[at] = row_of(name, type_of(module), sum);
    if (own.all > 0 && own.all < sum.all && level < levels_)
      add_row(name.empty() ? "(the model's own)" : name + " (its own)", "", own);
    return sum;
  }

  void count(const torch::Tensor& parameter, Counts& into) {
    if (!parameter.defined() || !counted_.insert(parameter.unsafeGetTensorImpl()).second) return;
    into.all += parameter.numel();
    if (parameter.requires_grad()) into.trained += parameter.numel();
    into.bytes += parameter.numel() * static_cast<int64_t>(parameter.element_size());
  }

  static Row row_of(const std::string& name, const std::string& type, const Counts& counts) {
    return {name, type, base::grouped(counts.all), base::grouped(counts.trained),
            base::memory_text(static_cast<uint64_t>(counts.bytes))};
  }
  void add_row(const std::string& name, const std::string& type, const Counts& counts) {
    rows_.push_back(row_of(name, type, counts));
  }

  const int64_t levels_;
  std::vector<Row> rows_;
  std::unordered_set<const c10::TensorImpl*> counted_;
};

}  // namespace model_summary_detail

std::string model_summary(const torch::nn::Module& model, int64_t levels) {
  return model_summary_detail::Summary(levels).text(model);
}

}  // namespace sluice::train
