// Lays a program out over a mesh: XLA's partitioner (Shardy) then makes one program for all devices of it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sluice/mesh/layout.h"
#include "sluice/mesh/mesh.h"

namespace sluice::stablehlo {

struct Partitions {
  Mesh mesh;                      // complete, with one axis or more
  std::vector<Layout> arguments;  // [argument of main]
  std::vector<Layout> results;    // [result of main]
};

// Returns the program that Builder::finish() printed for one replica, with the mesh and the layouts of its
// arguments and results; nothing else of it changes but pads that XLA's partitioner computes wrongly. Compile
// it with CompileOptions::num_partitions = mesh.devices(). Throws kInvalidArgument for another text, a wrong
// number of layouts, and a layout that does not divide its argument or result.
std::string with_layouts(std::string_view text, const Partitions& partitions);

}  // namespace sluice::stablehlo
