#include "sluice/train/hyper_parameters.h"

#include <algorithm>
#include <type_traits>

#include "sluice/base/text/shown_url.h"
#include "sluice/train/recipe/recipe.h"

namespace sluice::train {
namespace {

// Appends a setting; it has an overload for each kind of value that one may have.
struct Appender {
  const std::string name;
  std::vector<HyperParameter>& all;

  template <typename Value>
  void operator()(Value* value) const {
    if constexpr (std::is_same_v<Value, std::string>)
      all.emplace_back(name, base::shown_urls(*value));
    else if constexpr (std::is_same_v<Value, bool>)
      all.emplace_back(name, *value);
    else if constexpr (std::is_arithmetic_v<Value>)
      all.emplace_back(name, static_cast<double>(*value));
  }
  // The numbers of "betas" are called beta1 and beta2.
  void operator()(std::vector<double>* numbers) const {
    for (size_t i = 0; i < numbers->size(); ++i)
      all.emplace_back(name.substr(0, name.size() - 1) + std::to_string(i + 1), (*numbers)[i]);
  }
  void operator()(const base::ChoiceValue& choice) const { all.emplace_back(name, choice.now); }
  void operator()(const base::LargeNumber& number) const { (*this)(number.value); }
  void operator()(const base::ParsedText& parsed) const {
    if (parsed.now) all.emplace_back(name, *parsed.now);
  }
  template <typename Other>
  void operator()(const Other& /*value*/) const {}
};

}  // namespace

std::vector<HyperParameter> hyper_parameters(const TrainOptions& options, int64_t global_batch) {
  TrainOptions of_run = options;
  of_run.global_batch_size = global_batch;
  std::vector<base::Flag> rows = option_rows(of_run);
  std::erase_if(rows, [](const base::Flag& row) { return !row.is_setting; });
  std::stable_sort(rows.begin(), rows.end(), [](const base::Flag& one, const base::Flag& other) {
    return one.setting_rank < other.setting_rank;
  });
  std::vector<HyperParameter> all;
  for (const base::Flag& row : rows) std::visit(Appender{base::toml_key(row.name), all}, row.value);
  return all;
}

}  // namespace sluice::train
