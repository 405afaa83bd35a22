#include "sluice/train/log/tensor_logs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "sluice/base/files/file.h"
#include "sluice/base/text/strings.h"
#include "sluice/models/models.h"
#include "sluice/train/log/histogram.h"
#include "sluice/train/testing/small_training.h"
#include "sluice/train/trainer.h"

namespace sluice::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Histogram, CountsInBucketsOfEqualWidth) {
  std::vector<float> values;
  for (int i = 0; i <= 60; ++i) values.push_back(static_cast<float>(i) / 2);
  values.push_back(NAN);
  values.push_back(INFINITY);
  const auto buckets = histogram_of(values);
  ASSERT_EQ(buckets.size(), 30u);
  EXPECT_EQ(buckets.front(), (HistogramBucket{0, 1, 2}));
  EXPECT_EQ(buckets.back(), (HistogramBucket{29, 30, 3}));  // the largest value, too
}

TEST(Histogram, OfEqualValuesAndOfNone) {
  const std::vector<float> same(5, 2.5F);
  const auto one = histogram_of(same);
  EXPECT_EQ(one.front(), (HistogramBucket{2.5, 2.5, 0}));
  EXPECT_EQ(one.back(), (HistogramBucket{2.5, 2.5, 5}));
  EXPECT_EQ(histogram_of({}), std::vector<HistogramBucket>(30));
}

TEST(TensorLogs, PixelsOfNumbersAndBytes) {
  const torch::Tensor grey = torch::tensor({{0.0F, 0.5F}, {2.0F, -1.0F}});
  const data::Pixels pixels = pixels_of(grey);
  EXPECT_EQ(std::tuple(pixels.height, pixels.width, pixels.channels), std::tuple(2, 2, 1));
  EXPECT_THAT(pixels.bytes, ElementsAre(0, 128, 255, 0));
  torch::Tensor colours = torch::zeros({3, 1, 2}, torch::kByte);
  colours[0][0][1] = 10;
  colours[2][0][0] = 20;
  EXPECT_THAT(pixels_of(colours).bytes, ElementsAre(0, 0, 20, 10, 0, 0));
  EXPECT_THROW(pixels_of(torch::zeros({2, 4, 4})), Error);
  EXPECT_THROW(pixels_of(torch::zeros({4, 4}, torch::kLong)), Error);
}

// Everything that a run has for TensorBoard, as bytes. tests/python/readers.py reads it with TensorBoard.
std::string events_in(const std::string& folder) {
  for (const std::string& name : base::value_or_throw(base::list_directory(folder)))
    if (base::starts_with(name, "events."))
      return base::value_or_throw(base::read_file(base::join_path(folder, name)));
  return "";
}

// [logs]
struct Images : Callback {
  std::string name() const override { return "images"; }
  void after_step(Run& run) override {
    if (run.place().step != 2) return;
    const torch::Tensor weight = run.module().parameters().back();
    run.log_histogram("own/weight", weight);
    run.log_image("own/map", weight.detach().reshape({1, -1}).sigmoid());
    run.log_text("own/text", "**bold**");
    run.log_scalar("own/norm", weight.detach().norm());
    run.log_scalar("own/half", 0.5);
  }
};
// [end]

struct Wrong : Callback {
  explicit Wrong(bool image) : image_(image) {}
  std::string name() const override { return "wrong"; }
  void after_step(Run& run) override {
    if (image_) run.log_image("bad", torch::zeros({2, 2, 2}));
    run.log_scalar("two", torch::zeros({2}));
  }
  bool image_;
};

class TensorLogging : public testing::TestWithParam<DeviceKind> {
 protected:
  TensorLogging() {
    if (is_initialized()) shutdown();
    options_ = GetParam() == DeviceKind::kXla ? small_training_on_xla(folder_.path("run"))
                                              : small_training(folder_.path("run"));
  }
  ~TensorLogging() override {
    if (is_initialized()) shutdown();
  }
  base::TemporaryDirectory folder_ = base::value_or_throw(base::TemporaryDirectory::create());
  TrainOptions options_;
};

TEST_P(TensorLogging, FromFlagsAndFromACallback) {
  options_.histograms = true;
  options_.log_images = 3;
  testing::internal::CaptureStdout();
  {
    Trainer trainer(options_);
    trainer.add(std::make_shared<Images>());
    auto model = models::create(options_.model, {options_.classes, trainer.channels(), trainer.image_size()});
    trainer.fit(model);
  }
  testing::internal::GetCapturedStdout();
  const std::string events = events_in(folder_.path("run"));
  for (const char* part : {"own/weight", "own/map", "own/text", "own/norm", "own/half", "**bold**",
                           "weights/fc.weight", "test/0", "test/2", "test/answers", "\x89PNG"})
    EXPECT_THAT(events, HasSubstr(part));
  EXPECT_THAT(events, testing::Not(HasSubstr("test/3")));
}

TEST_P(TensorLogging, WhatIsNoImageAndNoScalarIsAnError) {
  const auto message = [&](bool image) -> std::string {
    testing::internal::CaptureStdout();
    std::string found;
    try {
      Trainer trainer(options_);
      trainer.add(std::make_shared<Wrong>(image));
      auto model =
          models::create(options_.model, {options_.classes, trainer.channels(), trainer.image_size()});
      trainer.fit(model);
    } catch (const Error& error) {
      found = error.what();
    }
    testing::internal::GetCapturedStdout();
    return found;
  };
  EXPECT_THAT(message(true),
              HasSubstr("callback 'wrong', after_step: the image 'bad' has the shape [2, 2, 2]"));
  EXPECT_THAT(message(false), HasSubstr("the scalar 'two' has the shape [2]: expected one element"));
}

INSTANTIATE_TEST_SUITE_P(Devices, TensorLogging, testing::Values(DeviceKind::kCpu, DeviceKind::kXla),
                         [](const auto& info) { return std::string(name_of(info.param)); });

}  // namespace
}  // namespace sluice::train
