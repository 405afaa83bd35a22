// Lays a program out over a mesh: XLA's partitioner (Shardy) then makes one program for all devices of it.
#pragma once

#include <cstdint>
#include <optional>
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
// arguments and results; nothing else of it changes but pads and convolutions that XLA's partitioner computes
// wrongly. Compile it with CompileOptions::num_partitions = mesh.devices(). Throws kInvalidArgument for
// another text, a wrong number of layouts, and a layout that does not divide its argument or result.
std::string with_layouts(std::string_view text, const Partitions& partitions);

// An argument or a result of @main.
struct LaidOutValue {
  std::string element;  // "f32"
  std::vector<int64_t> dims;
  Layout layout;
  bool taken = false;  // of an argument: a result takes over its memory

  // Return "tensor<4x5xf32>": of the whole value, and of one device's block.
  std::string type() const;
  std::string block_type(const Mesh& mesh) const;
  // Return the bytes of both.
  int64_t bytes() const;
  int64_t block_bytes(const Mesh& mesh) const;
};

struct LaidOutProgram {
  Mesh mesh;
  std::vector<LaidOutValue> arguments, results;
};

// Returns the signature of a program that with_layouts() wrote; nullopt for a program without
// a mesh, and for one whose mesh or layouts Sluice does not write.
std::optional<LaidOutProgram> read_layouts(std::string_view text);

}  // namespace sluice::stablehlo
