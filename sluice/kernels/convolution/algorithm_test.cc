#include "sluice/kernels/convolution/algorithm.h"

#include <gtest/gtest.h>

#include "sluice/kernels/lanes.h"
#include "sluice/kernels/onednn.h"
#include "sluice/kernels/threads.h"

namespace sluice::kernels {
namespace {

using stablehlo::ConvolutionCall;
using Kind = ConvolutionCall::Kind;

// Of square images and windows.
struct Shape {
  int64_t images, channels, filters, side, window;
  int64_t stride = 1, padding = 1, groups = 1;
  bool channels_first = false;
};

Algorithm chosen(const Shape& s, Kind kind = Kind::kForward) {
  const int64_t out = (s.side + 2 * s.padding - s.window) / s.stride + 1;
  const UseThreads threads;
  return choose_algorithm({.kind = kind,
                           .x = {s.images, s.channels, s.side, s.side},
                           .w = {s.filters, s.channels / s.groups, s.window, s.window},
                           .y = {s.images, s.filters, out, out},
                           .stride = {s.stride, s.stride},
                           .padding = {s.padding, s.padding},
                           .dilation = {1, 1},
                           .groups = s.groups,
                           .channels_first = s.channels_first});
}

class ChooseAlgorithm : public ::testing::Test {
  void SetUp() override {
    if (!has_lanes8() || !Onednn::open()) GTEST_SKIP() << "no library, or no registers for it";
  }
};

TEST_F(ChooseAlgorithm, WindowsOfOneElementArePointwise) {
  EXPECT_EQ(chosen({8, 64, 128, 14, 1, 1, 0}), Algorithm::kPointwise);
  EXPECT_EQ(chosen({8, 64, 128, 14, 1, 2, 0}), Algorithm::kPointwise);
  EXPECT_EQ(chosen({8, 64, 128, 14, 1, 1, 0, 2}), Algorithm::kDirect);
  EXPECT_EQ(chosen({8, 64, 128, 14, 1, 1, 1}), Algorithm::kDirect) << "padding";
}

TEST_F(ChooseAlgorithm, SmallImagesAreFewPixels) {
  EXPECT_EQ(chosen({128, 256, 256, 2, 3}), Algorithm::kFewPixels);
  EXPECT_EQ(chosen({128, 512, 512, 1, 3}), Algorithm::kFewPixels);
  EXPECT_EQ(chosen({128, 512, 512, 1, 3, 1, 1, 2}), Algorithm::kDirect) << "groups";
  // 16 blocks for 9 taps: the matrix is larger than the weights, which the weights' gradient never fills.
  EXPECT_NE(chosen({31, 256, 256, 2, 3}), Algorithm::kFewPixels);
  EXPECT_EQ(chosen({31, 256, 256, 2, 3}, Kind::kWeights), Algorithm::kFewPixels);
  EXPECT_NE(chosen({128, 256, 256, 3, 3}), Algorithm::kFewPixels) << "81 blocks";
}

TEST_F(ChooseAlgorithm, WinogradNeedsChannels) {
  EXPECT_EQ(chosen({32, 16, 16, 32, 3}), Algorithm::kNarrowWinograd);
  EXPECT_EQ(chosen({32, 32, 32, 32, 3}), Algorithm::kWinograd);
  EXPECT_EQ(chosen({32, 32, 32, 32, 3}, Kind::kWeights), Algorithm::kNarrowWinograd);
  EXPECT_EQ(chosen({32, 64, 64, 32, 3}, Kind::kWeights), Algorithm::kWinograd);
  EXPECT_EQ(chosen({32, 24, 24, 32, 3}), Algorithm::kWinograd);
  EXPECT_EQ(chosen({32, 24, 24, 32, 3}, Kind::kWeights), Algorithm::kDirect);
  EXPECT_EQ(chosen({32, 8, 64, 32, 3}), Algorithm::kDirect);
  EXPECT_EQ(chosen({32, 24, 24, 32, 3, 2}), has_lanes16() ? Algorithm::kDirect : Algorithm::kWinograd);
}

TEST_F(ChooseAlgorithm, WinogradNeedsTilesForItsWeights) {
  EXPECT_EQ(chosen({128, 512, 512, 4, 3}), Algorithm::kWinograd);
  EXPECT_EQ(chosen({31, 512, 512, 4, 3}), Algorithm::kDirect) << "31 tiles for 32 times 8192 weights";
  EXPECT_EQ(chosen({128, 64, 64, 3, 3}), Algorithm::kDirect) << "images smaller than a tile";
  EXPECT_EQ(chosen({32, 64, 64, 32, 5, 1, 2}), Algorithm::kDirect) << "windows of 5×5";
}

TEST_F(ChooseAlgorithm, PlanesAreForFewColumns) {
  EXPECT_EQ(chosen({8, 64, 128, 14, 1, 1, 0, 1, true}), Algorithm::kPlanes);
  EXPECT_EQ(chosen({8, 64, 128, 14, 1, 1, 0, 2, true}), Algorithm::kPlanes);
  EXPECT_EQ(chosen({8, 3, 48, 64, 3, 1, 1, 1, true}), Algorithm::kPlanes) << "27 rows for 51 planes";
  EXPECT_EQ(chosen({8, 16, 16, 64, 4, 4, 0, 1, true}), Algorithm::kPlanes) << "windows that do not overlap";
  EXPECT_EQ(chosen({32, 64, 64, 32, 3, 1, 1, 1, true}), Algorithm::kWinograd) << "576 rows for 128 planes";
  EXPECT_EQ(chosen({8, 64, 128, 2, 1, 1, 0, 1, true}), Algorithm::kPointwise) << "planes of 4 pixels";
}

TEST_F(ChooseAlgorithm, DepthwiseByPlanesNeedsLines) {
  EXPECT_EQ(chosen({8, 96, 96, 28, 5, 2, 2, 96, true}), Algorithm::kDepthwisePlanes);
  EXPECT_EQ(chosen({8, 96, 96, 28, 5, 2, 2, 96}), Algorithm::kDirect) << "channels last";
  EXPECT_NE(chosen({8, 96, 96, 3, 5, 1, 2, 96, true}), Algorithm::kDepthwisePlanes) << "lines of 3 pixels";
  EXPECT_EQ(chosen({8, 96, 96, 28, 3, 2, 1, 96, true}), Algorithm::kDepthwisePlanes);
  EXPECT_NE(chosen({8, 96, 96, 14, 3, 2, 1, 96, true}), Algorithm::kDepthwisePlanes) << "lines of 7 pixels";
  EXPECT_EQ(chosen({8, 96, 96, 14, 5, 2, 2, 96, true}), Algorithm::kDepthwisePlanes) << "and windows of 5×5";
}

}  // namespace
}  // namespace sluice::kernels
