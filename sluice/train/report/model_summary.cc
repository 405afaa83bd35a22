#include "sluice/train/report/model_summary.h"

#include <algorithm>
#include <unordered_set>
#include <vector>

#include "sluice/base/text/join.h"
#include "sluice/base/text/quantity.h"
#include "sluice/base/text/table.h"

namespace sluice::train {
namespace model_summary_detail {

struct Counts {
  int64_t all = 0, trained = 0, bytes = 0;
};

stablehlo::LayerWork& operator+=(stablehlo::LayerWork& sum, const stablehlo::LayerWork& work) {
  sum.forward += work.forward;
  sum.backward += work.backward;
  sum.bytes += work.bytes;
  return sum;
}

std::string flops_text(const stablehlo::Flops& flops) {
  const std::string text = base::unit_text(flops.sum(), "FLOP");
  return flops.complete() ? text : "> " + text;  // some loops have an unknown length
}
std::string bytes_text(int64_t bytes) { return base::memory_text(static_cast<uint64_t>(bytes)); }

// Returns "Conv2d" for "torch::nn::Conv2dImpl": a demangled name without its namespaces.
std::string type_of(const torch::nn::Module& module) {
  std::string name = module.name();
  if (const size_t end = name.find('<'); end != std::string::npos) name.resize(end);
  if (const size_t colons = name.rfind("::"); colons != std::string::npos) name.erase(0, colons + 2);
  if (name.ends_with("Impl")) name.resize(name.size() - 4);
  return name;
}

// Whether a layer is the module or a part of it.
bool is_of(const std::string& layer, const std::string& module) {
  return layer == module || layer.starts_with(module + ".");
}

class Summary {
 public:
  // `work` may be null.
  Summary(int64_t levels, const stablehlo::Work* work) : levels_(levels), work_(work) {}

  std::string text(const torch::nn::Module& model) {
    rows_.push_back({"layer", "type", "parameters", "trained", "memory"});
    if (work_ != nullptr) rows_.back().insert(rows_.back().end(), {"forward", "backward", "values"});
    const Counts all = add(model, "", 0);
    if (work_ != nullptr) add_others(model);
    rows_.push_back(row_of("total", "", all, [](const std::string&) { return true; }));
    return base::join(base::table_lines(rows_, "llr"), "\n") + "\n";
  }

 private:
  // Adds the rows of the module and of all modules below it; returns their counts.
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
    if (level > 0)
      rows_[at] =
          row_of(name, type_of(module), sum, [&](const std::string& layer) { return is_of(layer, name); });
    if (own.all > 0 && own.all < sum.all && level < levels_)
      rows_.push_back(row_of(name.empty() ? "(the model's own)" : name + " (its own)", "", own,
                             [&](const std::string& layer) { return !name.empty() && layer == name; }));
    return sum;
  }

  // Adds a row for what belongs to no module of the first level: losses, metrics, input, the model's own
  // parameters.
  void add_others(const torch::nn::Module& model) {
    const auto names = model.named_children().keys();
    base::TableRow row = row_of("(no layer)", "", {}, [&](const std::string& layer) {
      return std::none_of(names.begin(), names.end(),
                          [&](const std::string& name) { return is_of(layer, name); });
    });
    for (size_t i = 2; i < 5; ++i) row[i].clear();
    rows_.push_back(std::move(row));
  }

  void count(const torch::Tensor& parameter, Counts& into) {
    if (!parameter.defined() || !counted_.insert(parameter.unsafeGetTensorImpl()).second) return;
    into.all += parameter.numel();
    if (parameter.requires_grad()) into.trained += parameter.numel();
    into.bytes += parameter.numel() * static_cast<int64_t>(parameter.element_size());
  }

  // Returns a row; its work is the sum over the layers that belong to the row.
  template <typename Belongs>
  base::TableRow row_of(const std::string& name, const std::string& type, const Counts& counts,
                        const Belongs& belongs) const {
    base::TableRow row{name, type, base::grouped(counts.all), base::grouped(counts.trained),
                       bytes_text(counts.bytes)};
    if (work_ == nullptr) return row;
    stablehlo::LayerWork sum;
    for (const auto& [layer, work] : work_->layers)
      if (belongs(layer)) sum += work;
    row.insert(row.end(), {flops_text(sum.forward), flops_text(sum.backward), bytes_text(sum.bytes)});
    return row;
  }

  const int64_t levels_;
  const stablehlo::Work* const work_;
  std::vector<base::TableRow> rows_;
  std::unordered_set<const c10::TensorImpl*> counted_;
};

}  // namespace model_summary_detail

std::string model_summary(const torch::nn::Module& model, int64_t levels) {
  return model_summary_detail::Summary(levels, nullptr).text(model);
}

std::string model_summary(const torch::nn::Module& model, int64_t levels, const stablehlo::Work& work) {
  return model_summary_detail::Summary(levels, &work).text(model);
}

}  // namespace sluice::train
