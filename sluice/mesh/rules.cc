#include "sluice/mesh/rules.h"

#include <optional>
#include <string_view>

#include "sluice/base/error.h"
#include "sluice/base/text/strings.h"

namespace sluice {
namespace {

// Returns whether the name matches the pattern. The latest '*' takes one more character at each mismatch, so
// the time is at most the product of the lengths.
bool matches(std::string_view pattern, std::string_view name) {
  size_t p = 0, n = 0, star = std::string_view::npos, taken = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p, ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++taken;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

void check_rules(const std::vector<NamedShape>& parameters, const std::vector<ShardRule>& rules) {
  for (const ShardRule& rule : rules) {
    if (!rule.axis.empty()) check_mesh_axis(rule.axis);
    bool found = false;
    std::vector<std::string> names;
    for (const NamedShape& parameter : parameters) {
      found = found || matches(rule.pattern, parameter.name);
      names.push_back(parameter.name);
    }
    if (found) continue;
    const std::string near = base::nearest(rule.pattern, names);
    throw_error(
        Code::kInvalidArgument,
        base::str("the rule \"", rule.pattern, "\" matches none of the ", parameters.size(), " parameters",
                  near.empty() ? std::string(": use '*' for parts of a name, as in *.q_proj.weight")
                               : base::str(": the nearest name is ", near)));
  }
}

const ShardRule* rule_of(const NamedShape& parameter, const std::vector<ShardRule>& rules) {
  const ShardRule* found = nullptr;
  for (const ShardRule& rule : rules) {
    if (!matches(rule.pattern, parameter.name)) continue;
    if (found != nullptr)
      throw_error(Code::kInvalidArgument,
                  base::str("the rules \"", found->pattern, "\" and \"", rule.pattern, "\" both match ",
                            parameter.name, ": change one so that it does not"));
    found = &rule;
  }
  return found;
}

int64_t elements(const std::vector<int64_t>& dims) {
  int64_t product = 1;
  for (const int64_t dim : dims) product *= dim;
  return product;
}

size_t dim_of(const ShardRule& rule, const NamedShape& parameter) {
  const auto rank = static_cast<int64_t>(parameter.dims.size());
  const int64_t dim = rule.dim < 0 ? rule.dim + rank : rule.dim;
  if (dim < 0 || dim >= rank)
    throw_error(Code::kInvalidArgument,
                base::str("the rule \"", rule.pattern, "\" lays out dimension ", rule.dim, " of ",
                          parameter.name, ", which has ", rank, rank == 1 ? " dimension" : " dimensions"));
  return static_cast<size_t>(dim);
}

// Returns the largest dimension that fsdp divides and that has no axes yet.
std::optional<size_t> fsdp_dim(const Mesh& mesh, const std::vector<int64_t>& dims,
                               const std::vector<LayoutDim>& laid_out) {
  std::optional<size_t> found;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (!laid_out[i].axes.empty() || dims[i] % mesh.size("fsdp") != 0) continue;
    if (!found || dims[i] > dims[*found]) found = i;
  }
  return found;
}

}  // namespace

ParameterLayouts parameter_layouts(const Mesh& mesh, const std::vector<NamedShape>& parameters,
                                   const std::vector<ShardRule>& rules) {
  check_rules(parameters, rules);
  // The batch's layout comes first, then the products' (tensor), then the weights' in memory (fsdp):
  // then the weights are gathered for a product, and the activations stay where they are.
  const int fsdp_priority = mesh.size("tensor") > 1 ? 2 : 1;
  ParameterLayouts result;
  for (const NamedShape& parameter : parameters) {
    std::vector<LayoutDim> dims(parameter.dims.size());
    const ShardRule* const rule = rule_of(parameter, rules);
    const bool stays = rule != nullptr && rule->axis.empty();
    if (rule != nullptr && !stays) {
      dims[dim_of(*rule, parameter)] = {{rule->axis}, rule->axis == "fsdp" ? fsdp_priority : 1};
      const std::string misfit = Layout(dims).misfit(mesh, parameter.dims);
      if (!misfit.empty())
        throw_error(Code::kInvalidArgument, base::str("the rule \"", rule->pattern, "\" does not fit ",
                                                      parameter.name, ": ", misfit));
    }
    const bool has_fsdp = rule != nullptr && rule->axis == "fsdp";
    if (!stays && !has_fsdp && mesh.size("fsdp") > 1 && elements(parameter.dims) > kWholeElements) {
      if (const auto dim = fsdp_dim(mesh, parameter.dims, dims))
        dims[*dim] = {{"fsdp"}, fsdp_priority};
      else
        result.whole.push_back(base::str(parameter.name, ": fsdp=", mesh.size("fsdp"),
                                         " divides no free dimension of [", base::join(parameter.dims, ", "),
                                         "]"));
    }
    result.layouts.push_back(Layout(std::move(dims)).on(mesh));
  }
  return result;
}

}  // namespace sluice
