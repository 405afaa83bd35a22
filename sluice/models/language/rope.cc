#include "sluice/models/language/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "sluice/device/sharding/upload_equal.h"

namespace sluice::models::language_detail {
namespace {

// Returns the table's rows of the positions: [batch, 1, length, head width]. Without positions the table
// itself.
Rope::Angles at_positions(const Rope::Angles& table, const torch::Tensor& positions) {
  if (!positions.defined()) return table;
  const auto rows = [&positions](const torch::Tensor& all) {
    return all.index_select(0, positions.flatten())
        .view({positions.size(0), 1, positions.size(1), all.size(1)});
  };
  return {rows(table.cosine), rows(table.sine)};
}

}  // namespace

Rope::Rope(const LanguageOptions& options)
    : options_(options.rope),
      width_(options.head_width > 0 ? options.head_width : options.width / options.heads),
      positions_(options.positions) {}

// Blends the whole frequencies (weight 1) into the divided ones (weight 0), between the places in a head
// where a sequence of the first training makes `fast_turns` and `slow_turns`.
torch::Tensor Rope::yarn(const torch::Tensor& plain) const {
  const auto width = static_cast<double>(width_);
  const auto place_of = [&](double turns) {
    return width *
           std::log(static_cast<double>(options_.original_positions) / (turns * 2 * std::numbers::pi)) /
           (2 * std::log(options_.theta));
  };
  double first = place_of(options_.fast_turns), last = place_of(options_.slow_turns);
  if (options_.whole_turns) {
    first = std::floor(first);
    last = std::ceil(last);
  }
  first = std::max(first, 0.0);
  last = std::min(last, width - 1);
  if (first == last) last += 0.001;
  const torch::Tensor divided =
      ((torch::arange(width_ / 2, torch::kFloat) - first) / (last - first)).clamp(0, 1);
  return plain / options_.factor * divided + plain * (1 - divided);
}

double Rope::attention_factor() const {
  if (options_.type != "yarn" && options_.type != "longrope") return 1;
  if (options_.attention_factor > 0) return options_.attention_factor;
  const double factor = options_.factor;
  if (factor <= 1) return 1;
  if (options_.type == "longrope")
    return std::sqrt(1 + std::log(factor) / std::log(static_cast<double>(options_.original_positions)));
  const auto of_scale = [factor](double scale) { return 0.1 * scale * std::log(factor) + 1; };
  if (options_.scale > 0 && options_.scale_all > 0)
    return of_scale(options_.scale) / of_scale(options_.scale_all);
  return of_scale(1);
}

torch::Tensor Rope::frequencies(int64_t length) const {
  double theta = options_.theta;
  const auto width = static_cast<double>(width_);
  if (options_.type == "dynamic") {
    const auto known = static_cast<double>(positions_);
    const double stretch = std::max(static_cast<double>(length), known) / known;
    theta *= std::pow(options_.factor * stretch - (options_.factor - 1), width / (width - 2));
  }
  const torch::Tensor plain = 1.0 / torch::pow(theta, torch::arange(0, width_, 2, torch::kFloat) / width);
  if (options_.type == "linear") return plain / options_.factor;
  if (options_.type == "yarn") return yarn(plain);
  if (options_.type == "longrope")
    return plain / torch::tensor(
                       length > options_.original_positions ? options_.long_factors : options_.short_factors,
                       torch::kFloat);
  if (options_.type != "llama3") return plain;
  const double low = options_.low_frequency_factor, high = options_.high_frequency_factor;
  // The turns in a sequence of the length of the first training.
  const torch::Tensor turns =
      plain * (static_cast<double>(options_.original_positions) / (2 * std::numbers::pi));
  const torch::Tensor kept = ((turns - low) / (high - low)).clamp(0, 1);
  return (1 - kept) * (plain / options_.factor) + kept * plain;
}

Rope::Angles Rope::table(int64_t length, int64_t stretch) const {
  const torch::Tensor half = torch::arange(length, torch::kFloat).unsqueeze(1) * frequencies(stretch);
  const torch::Tensor angles = torch::cat({half, half}, 1);
  return {angles.cos() * attention_factor(), angles.sin() * attention_factor()};
}

Rope::Angles Rope::angles(const LanguageInput& input) {
  torch::NoGradGuard no_grad;
  const int64_t length = input.ids.size(1);
  if (!last_.cosine.defined() || last_.cosine.size(0) != length) last_ = table(length, length);
  // Made on the CPU and copied at every call: all steps then have the same program, and no reference to a
  // device that was closed remains.
  const torch::Device device = input.ids.device();
  return at_positions({device::upload_equal(last_.cosine, device), device::upload_equal(last_.sine, device)},
                      input.positions);
}

Rope::Angles Rope::angles(const LanguageInput& input, LanguageCache& cache) const {
  const bool has_two_tables = options_.type == "longrope";
  if (!cache.cosine.defined()) {
    Angles all = table(cache.capacity, has_two_tables ? options_.original_positions : 0);
    if (has_two_tables) {
      const Angles beyond = table(cache.capacity, options_.original_positions + 1);
      all = {torch::cat({all.cosine, beyond.cosine}), torch::cat({all.sine, beyond.sine})};
    }
    cache.cosine = device::upload_equal(all.cosine, input.ids.device());
    cache.sine = device::upload_equal(all.sine, input.ids.device());
  }
  torch::Tensor rows = input.positions;
  // The length of this step decides, as in transformers: cached keys keep the angles that they were read
  // with. The length is a value on the device, so all steps are one program.
  if (has_two_tables) rows = rows + rows.max().ge(options_.original_positions) * cache.capacity;
  return at_positions({cache.cosine, cache.sine}, rows);
}

torch::Tensor rotate(const torch::Tensor& x, const Rope::Angles& angles) {
  const std::vector<torch::Tensor> halves = x.chunk(2, -1);
  const torch::Tensor rotated = torch::cat({-halves[1], halves[0]}, -1);
  return x * angles.cosine.to(x.scalar_type()) + rotated * angles.sine.to(x.scalar_type());
}

}  // namespace sluice::models::language_detail
