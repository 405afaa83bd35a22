#include "sluice/data/augment/mix.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace sluice::data {
namespace {

constexpr std::uint64_t kMix = 3;  // separates these random numbers from others

// Draws the logarithm of a Gamma(alpha, 1) variable, by Marsaglia and Tsang's rejection; for alpha below 1 it
// draws with alpha + 1 and reduces. A logarithm, because small alphas give numbers too small for double.
double log_gamma_draw(double alpha, base::Random& random) {
  const double reduced = alpha < 1 ? std::log(1 - random.uniform()) / alpha : 0;
  const double d = (alpha < 1 ? alpha + 1 : alpha) - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  while (true) {
    const double radius = std::sqrt(-2 * std::log(1 - random.uniform()));
    const double normal = radius * std::cos(2 * M_PI * random.uniform());
    const double v = std::pow(1 + c * normal, 3);
    if (v <= 0) continue;
    if (std::log(1 - random.uniform()) < normal * normal / 2 + d - d * v + d * std::log(v))
      return std::log(d * v) + reduced;
  }
}

// The rows of a batch's images.
template <typename T>
class ImageRows {
 public:
  explicit ImageRows(Array& images)
      : first_(images.data<T>()),
        channels_(images.shape()[1]),
        height_(images.shape()[2]),
        width_(images.shape()[3]) {}

  T* row(std::int64_t i) const { return first_ + i * size(); }
  std::int64_t size() const { return channels_ * height_ * width_; }

  void mixup(T* own, const T* other, float share) const {
    for (std::int64_t i = 0; i < size(); ++i) {
      const float mixed = share * static_cast<float>(own[i]) + (1 - share) * static_cast<float>(other[i]);
      if constexpr (std::is_same_v<T, std::uint8_t>) {
        own[i] = static_cast<T>(mixed + 0.5F);
      } else {
        own[i] = mixed;
      }
    }
  }
  // Copies a part of the other image, of the area 1 − share, clipped to the image; returns the share left.
  float cutmix(T* own, const T* other, float share, base::Random& random) const {
    const double side = std::sqrt(1 - static_cast<double>(share));
    const auto range = [&](std::int64_t extent) {
      const auto half = static_cast<std::int64_t>(side * static_cast<double>(extent) / 2);
      const auto center = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(extent)));
      return std::pair(std::max<std::int64_t>(0, center - half), std::min(extent, center + half));
    };
    const auto [top, bottom] = range(height_);
    const auto [left, right] = range(width_);
    for (std::int64_t c = 0; c < channels_; ++c)
      for (std::int64_t y = top; y < bottom; ++y)
        std::copy(other + (c * height_ + y) * width_ + left, other + (c * height_ + y) * width_ + right,
                  own + (c * height_ + y) * width_ + left);
    const auto cut = static_cast<double>((bottom - top) * (right - left));
    return static_cast<float>(1 - cut / static_cast<double>(height_ * width_));
  }

 private:
  T* first_;
  std::int64_t channels_, height_, width_;
};

// Returns the rows that are samples, in order.
std::vector<std::int64_t> sample_rows(const Batch& batch) {
  std::vector<std::int64_t> rows;
  for (std::int64_t i = 0; i < batch.size(); ++i)
    if (batch.mask.data<bool>()[i]) rows.push_back(i);
  return rows;
}

// Mixes from the last sample to the first: each needs the one before it unchanged.
template <typename T>
void mix(Batch& batch, const std::vector<std::int64_t>& samples, const MixPlan& plan, std::uint64_t seed,
         std::int64_t epoch) {
  const ImageRows<T> rows(batch.image);
  const auto* labels = batch.label.data<std::int64_t>();
  const std::vector<T> last(rows.row(samples.back()), rows.row(samples.back()) + rows.size());
  for (std::size_t i = samples.size(); i-- > 0;) {
    base::Random random({seed, static_cast<std::uint64_t>(epoch), kMix, base::key(batch.keys[i])});
    const bool cut = plan.mixup <= 0 || (plan.cutmix > 0 && random.chance(0.5));
    auto share = static_cast<float>(draw_beta(cut ? plan.cutmix : plan.mixup, random));
    T* own = rows.row(samples[i]);
    const T* other = i > 0 ? rows.row(samples[i - 1]) : last.data();
    if (cut) {
      share = rows.cutmix(own, other, share, random);
    } else {
      rows.mixup(own, other, share);
    }
    batch.own_share.data<float>()[samples[i]] = share;
    batch.other_label.data<std::int64_t>()[samples[i]] = labels[i > 0 ? samples[i - 1] : samples.back()];
  }
}

}  // namespace

double draw_beta(double alpha, base::Random& random) {
  const double a = log_gamma_draw(alpha, random), b = log_gamma_draw(alpha, random);
  return 1 / (1 + std::exp(b - a));
}

base::Status mix_rows(Batch& batch, const MixPlan& plan, std::uint64_t seed, std::int64_t epoch) {
  const ElementType type = batch.image.type();
  const bool images = batch.image.defined() && batch.image.shape().size() == 4 &&
                      (type == ElementType::kUint8 || type == ElementType::kFloat32);
  if (!images || !batch.label.defined())
    return base::fail(Code::kInvalidArgument,
                      "mixup and CutMix need images (uint8 or float32 [N, C, H, W]) and labels, found ",
                      batch.image.defined() ? batch.image.describe() : "no images", " and ",
                      batch.label.defined() ? "labels" : "no labels");
  batch.other_label = Array(ElementType::kInt64, {batch.size()});
  std::memcpy(batch.other_label.data<void>(), batch.label.data<void>(), batch.label.bytes());
  batch.own_share = Array(ElementType::kFloat32, {batch.size()});
  std::fill_n(batch.own_share.data<float>(), batch.size(), 1.0F);
  const auto samples = sample_rows(batch);
  if (samples.size() != batch.keys.size())
    return base::fail(Code::kInternal, "a batch with ", samples.size(), " samples and ", batch.keys.size(),
                      " keys");
  if (!samples.empty()) {
    if (type == ElementType::kUint8) {
      mix<std::uint8_t>(batch, samples, plan, seed, epoch);
    } else {
      mix<float>(batch, samples, plan, seed, epoch);
    }
  }
  batch.columns.push_back({batch.other_label, {}});
  batch.columns.push_back({batch.own_share, {}});
  return {};
}

}  // namespace sluice::data
