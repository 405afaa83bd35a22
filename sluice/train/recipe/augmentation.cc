#include "sluice/train/recipe/sections.h"

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/train/recipe/reasons.h"

namespace sluice::train {
namespace recipe_augmentation_detail {

void check_jitter(const std::vector<double>& jitter) {
  bool senseless = !jitter.empty() && jitter.size() != 4;
  for (size_t i = 0; i < jitter.size(); ++i)
    senseless |= !(jitter[i] >= 0 && (i == 3 ? jitter[i] <= 0.5 : jitter[i] < 1e6));
  if (senseless)
    throw_error(
        Code::kInvalidArgument,
        base::str("--color-jitter takes four numbers of 0 or more, brightness,contrast,saturation,hue, and ",
                  "a hue of at most 0.5, such as 0.4,0.4,0.4,0.1, not ", base::join(jitter, ",")));
}

void check_rand_augment(const std::vector<int64_t>& augment) {
  if (!augment.empty() &&
      (augment.size() != 2 || augment[0] < 1 || augment[0] > 100 || augment[1] < 0 || augment[1] > 30))
    throw_error(
        Code::kInvalidArgument,
        base::str("--rand-augment takes 1 to 100 operations and a magnitude of 0 to 30, such as 2,9, not ",
                  base::join(augment, ",")));
}

}  // namespace recipe_augmentation_detail

// clang-format off
std::vector<base::Flag> augmentation_rows(TrainOptions& o) {
  using base::Flag;
  using namespace recipe_augmentation_detail;
  return {
      Flag{"Data", "--exif-rotation", &o.exif_rotation, "", "Rotate images as the camera was held (JPEG, PNG, WebP, TIFF, AVIF); off: as they are stored"}
          .idle(without_images(o)).idle(without_shards(o)),
      Flag{"Data", "--resize", &o.resize, "pixels", "Resize the shorter side of an image to this; 0: keep its size"}
          .at_least(0).idle(without_images(o)).idle(without_shards(o)),
      Flag{"Data", "--crop", &o.crop, "pixels", "Crop at random in training and at the centre in a test, to this side; 0: no crop"}
          .at_least(0).idle(without_images(o)).idle(without_shards(o)).setting(ranks::kImages),
      Flag{"Data", "--crop-padding", &o.crop_padding, "pixels", "Add a border of zeros of this width before the random crop"}
          .at_least(0).idle(without_images(o)).idle(without_shards(o)).idle(o.crop == 0, {"--crop"}, "it requires --crop"),
      Flag{"Data", "--mixup", &o.mixup, "", "Mix training images by mixup with this alpha, such as 0.2; 0: no mixup"}
          .idle(without_images(o)).setting(ranks::kMixing),
      Flag{"Data", "--cutmix", &o.cutmix, "", "Mix training images by CutMix with this alpha, such as 1.0; 0: no CutMix"}
          .idle(without_images(o)).setting(ranks::kMixing),
      Flag{"Data", "--random-resized-crop", &o.random_resized_crop, "pixels", "Resize a random part to this side in training, and the middle in a test; 0: off"}
          .at_least(0).idle(without_images(o)).idle(without_shards(o)).setting(ranks::kImages),
      Flag{"Data", "--flip", &o.flip, "", "Mirror half of the training images"}
          .idle(without_images(o)).idle(without_shards(o)).setting(ranks::kImages),
      Flag{"Data", "--color-jitter", &o.color_jitter, "", "Change the colours of training images at random: brightness,contrast,saturation,hue, such as 0.4,0.4,0.4,0.1; empty: no"}
          .checked([&o] { check_jitter(o.color_jitter); }).idle(without_images(o)).idle(without_shards(o)),
      Flag{"Data", "--rand-augment", &o.rand_augment, "", "Apply RandAugment to training images: operations,magnitude (0 to 30), such as 2,9; empty: none"}
          .checked([&o] { check_rand_augment(o.rand_augment); }).idle(without_images(o)).idle(without_shards(o)),
      Flag{"Data", "--auto-contrast", &o.auto_contrast, "", "Stretch the channels of this share of the training images to 0…255; 0: none"}
          .within(base::from_to(0, 1), "takes a share of 0 to 1").idle(without_images(o)).idle(without_shards(o)),
      Flag{"Data", "--mean", &o.mean, "", "Subtract these means of the channels, in 0…1, such as 0.49,0.48,0.45; empty: 0.5 each"}
          .within(base::from_to(0, 1), "takes numbers of 0 to 1, of pixels in 0…1").idle(without_images(o)).idle(without_shards(o)),
      Flag{"Data", "--std", &o.deviation, "", "Divide by these standard deviations of the channels, in 0…1; empty: 0.25 each"}
          .within(base::above_to(0, 1), "takes numbers above 0 and up to 1, of pixels in 0…1").idle(without_images(o)).idle(without_shards(o)),
  };
}
// clang-format on

void check_augmentation(const TrainOptions& o) {
  const bool mixes = o.mixup != 0 || o.cutmix != 0;
  if (!(o.mixup >= 0 && o.cutmix >= 0) || (mixes && o.fake_data))
    throw_error(Code::kInvalidArgument,
                "--mixup and --cutmix take a number above 0, such as 0.2, and need shards (no --fake-data)");
  if (o.random_resized_crop > 0 && (o.crop > 0 || o.resize > 0))
    throw_error(Code::kInvalidArgument,
                "--random-resized-crop stands for --resize and --crop: leave those out");
  for (const auto* numbers : {&o.mean, &o.deviation})
    if (!numbers->empty() && static_cast<int64_t>(numbers->size()) != o.channels)
      throw_error(Code::kInvalidArgument, base::str("--mean and --std take one number for each of the ",
                                                    o.channels, " channels, not ", numbers->size()));
}

}  // namespace sluice::train
