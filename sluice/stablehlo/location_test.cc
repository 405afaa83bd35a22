#include "sluice/stablehlo/location.h"

#include <gtest/gtest.h>

namespace sluice::stablehlo {
namespace {

void expect_parts(std::string_view text, std::string_view layer, Pass pass, std::string_view operation) {
  const Location found = parse_location(text);
  EXPECT_EQ(found.layer, layer) << text;
  EXPECT_EQ(found.pass, pass) << text;
  EXPECT_EQ(found.operation, operation) << text;
}

TEST(Location, IsReadAsItIsWritten) {
  for (const std::string_view parameter : {"", "weight", "layer1.0.conv1.weight"}) {
    const std::string_view layer = parameter.substr(0, parameter.rfind('.'));
    for (const Pass pass : {Pass::kForward, Pass::kBackward, Pass::kUpdate})
      for (const std::string_view operation : {"aten::mm", "sluice::view"})
        expect_parts(location_text(parameter, pass, operation), layer, pass, operation);
  }
  EXPECT_EQ(location_text("fc.weight", Pass::kBackward, "aten::mm"), "fc.weight/backward/aten::mm");
  EXPECT_EQ(location_text("fc.weight", Pass::kForward, "aten::mm"), "fc.weight/aten::mm");
}

// What a compiler leaves of the names of several operations that it made one.
TEST(Location, MayBeABeginning) {
  expect_parts("fc1.weight", "fc1", Pass::kForward, "");
  expect_parts("fc1.weight/backward", "fc1", Pass::kBackward, "");
  expect_parts("update", "", Pass::kUpdate, "");
  expect_parts("", "", Pass::kForward, "");
}

TEST(Location, OfWhatWasNotRecordedIsItsName) {
  expect_parts("update of 3 tensors", "", Pass::kForward, "update of 3 tensors");
  expect_parts("aten::mm", "", Pass::kForward, "aten::mm");
  expect_parts("fusion", "", Pass::kForward, "fusion");
}

TEST(Location, InWords) {
  EXPECT_EQ(layer_text("layer1.0.conv1.weight/aten::relu"), "layer1.0.conv1, aten::relu");
  EXPECT_EQ(layer_text("fc.weight/backward/aten::mm"), "fc, aten::mm (backward)");
  EXPECT_EQ(layer_text("weight/aten::mm"), "weight, aten::mm");
  EXPECT_EQ(layer_text("conv1.weight/backward/aten::convolution_backward"),
            "conv1, aten::convolution_backward");
  EXPECT_EQ(layer_text("aten::mm"), "aten::mm");
}

}  // namespace
}  // namespace sluice::stablehlo
