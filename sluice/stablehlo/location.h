// The names that operations carry in a program: "layer1.0.conv1.weight/backward/aten::mm", which is a
// parameter or buffer of the layer, the pass, and the operation that was recorded.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::stablehlo {

// The part of a step in which an operation was recorded. An update is recorded without gradients after a
// backward pass.
enum class Pass : uint8_t { kForward, kBackward, kUpdate };
std::string_view pass_name(Pass pass);  // "forward", "backward", "update"

// The parts of a location.
struct Location {
  std::string layer;  // "layer1.0.conv1", or a parameter of no module; "": not known
  Pass pass = Pass::kForward;
  std::string operation;  // "aten::mm"; "": several
};

// Returns the text of a location. `parameter` may be empty. The forward pass is not written.
std::string location_text(std::string_view parameter, Pass pass, std::string_view operation);
// Splits such a text, or its first whole parts. Any other text is an operation.
Location parse_location(std::string_view text);

// Returns "layer1.0.conv1, aten::relu", for people. An operation carries the name of the parameter or buffer
// that was read last.
std::string layer_text(std::string_view location);

}  // namespace sluice::stablehlo
