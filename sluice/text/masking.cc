#include "sluice/text/masking.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sluice/base/random.h"

namespace sluice::text {

std::int64_t predictions_of(const MaskingOptions& options, std::int64_t tokens) {
  return std::max<std::int64_t>(1, std::llround(options.share * static_cast<double>(tokens)));
}

Masking::Masking(const MaskingOptions& options) : options_(options), never_(options.never) {
  std::sort(never_.begin(), never_.end());
}

void Masking::draw(std::uint64_t key, std::int64_t tokens, std::int64_t* ids, std::int64_t count,
                   std::int64_t* places, std::int64_t* targets) {
  choice_.clear();
  for (std::int64_t i = 0; i < tokens; ++i)
    if (!std::binary_search(never_.begin(), never_.end(), static_cast<std::uint32_t>(ids[i])))
      choice_.push_back(i);
  base::Random random(key);
  const auto choices = static_cast<std::int64_t>(choice_.size());
  const std::int64_t drawn = std::min({count, choices, predictions_of(options_, choices)});
  for (std::int64_t i = 0; i < drawn; ++i)
    std::swap(choice_[static_cast<std::size_t>(i)],
              choice_[static_cast<std::size_t>(i) +
                      static_cast<std::size_t>(random.below(static_cast<std::uint64_t>(choices - i)))]);
  std::sort(choice_.begin(), choice_.begin() + drawn);
  std::fill_n(places, count, 0);
  std::fill_n(targets, count, -100);
  for (std::int64_t i = 0; i < drawn; ++i) {
    std::int64_t& id = ids[places[i] = choice_[static_cast<std::size_t>(i)]];
    targets[i] = id;
    const double how = random.uniform();
    if (how < 0.8)
      id = options_.mask;
    else if (how < 0.9)
      id = static_cast<std::int64_t>(random.below(options_.vocabulary));
  }
}

}  // namespace sluice::text
