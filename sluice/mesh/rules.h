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
// lie over fsdp along another dimension. Without an axis, they stay whole on every device. A pattern that
// matches no name also stands for the names that differ from it only by prefixes such as "model." or
// "module.".
struct ShardRule {
  std::string pattern;
  std::string axis = {};
  int64_t dim = 0;    // negative: counted from the end
  int64_t heads = 0;  // above 0: the dimension consists of this many heads, and the axis cuts none of them
  // A dimension that the axis does not divide is padded on the devices (layout.h). Not for heads.
  bool padded = false;
};

struct NamedShape {
  std::string name;
  std::vector<int64_t> dims;
};

struct ParameterLayouts {
  std::vector<Layout> layouts;     // [parameter], with axes of the mesh alone
  std::vector<std::string> whole;  // the large parameters that stay whole without a rule, and why
  // One line for each rule of the model that the mesh does not fit: the parameters, why, and what it costs.
  std::vector<std::string> unfit;
};

// A parameter with more elements than this lies over fsdp along its largest dimension that fsdp divides (the
// first of equal ones).
constexpr int64_t kWholeElements = int64_t{1} << 16;

// Returns the layout of each parameter. `rules` are the caller's and come first; then the first of
// `model_rules` counts that matches. Throws kInvalidArgument for a rule of the caller that matches no
// parameter (with the nearest name), for a parameter that two of them match, and for a dimension that does
// not exist or that its axis does not divide and that is not padded. A model's rule may match nothing, and is
// for parameters of more than kWholeElements; what its axis does not divide stays whole over this axis.
ParameterLayouts parameter_layouts(const Mesh& mesh, const std::vector<NamedShape>& parameters,
                                   const std::vector<ShardRule>& rules = {},
                                   const std::vector<ShardRule>& model_rules = {});

// A model that says how its parameters lie: sluice::shard and Session::place use its rules after the
// caller's.
class LaidOutModel {
 public:
  virtual ~LaidOutModel() = default;
  virtual std::vector<ShardRule> shard_rules() const = 0;
};

// Returns a warning if devices that differ only in their place along `tensor` are in different places of
// `place_of` [device] (numbers of hosts, or of slices); "" if not. `places`: "hosts" or "slices".
std::string tensor_apart(const Mesh& mesh, const std::vector<int64_t>& place_of, const char* places);

}  // namespace sluice
SLUICE_API_END
