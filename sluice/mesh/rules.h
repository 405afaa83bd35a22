// Which parameter of a model lies how over a mesh.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/base/export.h"
#include "sluice/mesh/layout.h"

SLUICE_API_BEGIN
namespace sluice {

// The parameters whose names match `pattern` ('*' is any text) have dimension `dim` over `axis`; they also
// lie over fsdp along another dimension. Without an axis, they stay whole on every device.
struct ShardRule {
  std::string pattern;
  std::string axis = {};
  int64_t dim = 0;  // negative: counted from the end
};

struct NamedShape {
  std::string name;
  std::vector<int64_t> dims;
};

struct ParameterLayouts {
  std::vector<Layout> layouts;     // [parameter], with axes of the mesh alone
  std::vector<std::string> whole;  // the large parameters that stay whole without a rule, and why
};

// A parameter with more elements than this lies over fsdp along its largest dimension that fsdp divides (the
// first of equal ones).
constexpr int64_t kWholeElements = int64_t{1} << 16;

// Returns the layout of each parameter. Throws kInvalidArgument for a rule that matches no parameter (with
// the nearest name), for a parameter that two rules match, and for a dimension that does not exist or that
// its axis does not divide.
ParameterLayouts parameter_layouts(const Mesh& mesh, const std::vector<NamedShape>& parameters,
                                   const std::vector<ShardRule>& rules = {});

}  // namespace sluice
SLUICE_API_END
