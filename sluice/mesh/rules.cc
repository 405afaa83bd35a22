#include "sluice/mesh/rules.h"

#include <optional>

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/mesh/rule_names.h"

namespace sluice {
namespace {

int64_t elements(const std::vector<int64_t>& dims) {
  int64_t product = 1;
  for (const int64_t dim : dims) product *= dim;
  return product;
}

// Returns the rule's dimension of the parameter.
size_t dim_of(const ShardRule& rule, const NamedShape& parameter) {
  const auto rank = static_cast<int64_t>(parameter.dims.size());
  const int64_t dim = rule.dim < 0 ? rule.dim + rank : rule.dim;
  if (dim < 0 || dim >= rank)
    throw_error(Code::kInvalidArgument,
                base::str("the rule \"", rule.pattern, "\" lays out dimension ", rule.dim, " of ",
                          parameter.name, ", which has ", rank, rank == 1 ? " dimension" : " dimensions"));
  return static_cast<size_t>(dim);
}

// Returns why the rule's axis cannot cut this dimension; "" if it can.
std::string misfit_of(const Mesh& mesh, const ShardRule& rule, const NamedShape& parameter, size_t dim) {
  const int64_t size = mesh.size(rule.axis), length = parameter.dims[dim];
  const bool cuts_heads = rule.heads > 0 && rule.heads % size != 0;
  const bool divides = length % size == 0 || (rule.padded && rule.heads == 0);
  if (!cuts_heads && divides && (size == 1 || length > 0)) return "";
  return base::str(rule.axis, '=', size, " does not divide the ", cuts_heads ? rule.heads : length,
                   cuts_heads ? " heads" : " elements", " along dimension ", dim, " of [",
                   base::join(parameter.dims, ", "), "]");
}

// Returns the largest dimension that fsdp divides, `spared` only if there is no other; nullopt: there is
// none.
std::optional<size_t> fsdp_dim(const Mesh& mesh, const std::vector<int64_t>& dims,
                               std::optional<size_t> spared) {
  std::optional<size_t> found;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i == spared || dims[i] % mesh.size("fsdp") != 0) continue;
    if (!found || dims[i] > dims[*found]) found = i;
  }
  if (!found && spared && dims[*spared] % mesh.size("fsdp") == 0) return spared;
  return found;
}

// The parameters that a rule of the model does not fit.
struct Unfit {
  std::string first, why;
  int64_t others = 0;
  int64_t held = 0;      // the elements of all of them on one device
  int64_t intended = 0;  // the same if the rule fitted
};

std::string text_of(const Unfit& unfit) {
  return base::str(unfit.first, unfit.others > 0 ? base::str(" and ", unfit.others, " more") : "", ": ",
                   unfit.why, ": each device holds ", unfit.held, " numbers instead of ", unfit.intended,
                   ", and computes their products whole");
}

// Lays out one parameter after the other.
class Planner {
 public:
  // The batch's layout comes first, then the products' (tensor), then the weights' in memory (fsdp): then the
  // weights are gathered for a product, and the activations stay where they are.
  explicit Planner(const Mesh& mesh) : mesh_(mesh), fsdp_priority_(mesh.size("tensor") > 1 ? 2 : 1) {}

  // `rule`: null for none. A rule of the model is a wish.
  void add(const NamedShape& parameter, const ShardRule* rule, bool of_model) {
    std::vector<LayoutDim> dims(parameter.dims.size());
    std::optional<size_t> dim;
    std::string misfit;
    if (rule != nullptr && !rule->axis.empty()) {
      dim = dim_of(*rule, parameter);
      misfit = misfit_of(mesh_, *rule, parameter, *dim);
      if (!misfit.empty() && !of_model)
        throw_error(Code::kInvalidArgument, base::str("the rule \"", rule->pattern, "\" does not fit ",
                                                      parameter.name, ": ", misfit));
      if (misfit.empty())
        dims[*dim] = {{rule->axis}, priority(rule->axis), parameter.dims[*dim] % mesh_.size(rule->axis) != 0};
    }
    const bool stays = rule != nullptr && rule->axis.empty();
    const bool has_fsdp = dim && rule->axis == "fsdp" && misfit.empty();
    if (!stays && !has_fsdp) lie_over_fsdp(parameter, dim, dims);
    result_.layouts.push_back(Layout(std::move(dims)).on(mesh_));
    if (!misfit.empty() && rule->axis != "fsdp") note(*rule, parameter, misfit);
  }
  ParameterLayouts result() {
    for (const auto& [rule, unfit] : unfit_) result_.unfit.push_back(text_of(unfit));
    return std::move(result_);
  }

 private:
  int priority(const std::string& axis) const { return axis == "fsdp" ? fsdp_priority_ : 1; }

  // `taken`: the dimension that a rule gives to another axis. fsdp may have it only if the mesh does not cut
  // it.
  void lie_over_fsdp(const NamedShape& parameter, std::optional<size_t> taken, std::vector<LayoutDim>& dims) {
    if (mesh_.size("fsdp") == 1 || elements(parameter.dims) <= kWholeElements) return;
    const auto found = fsdp_dim(mesh_, parameter.dims, taken);
    const bool is_free = found && Layout(dims).parts(mesh_, *found) == 1;
    if (is_free)
      dims[*found] = {{"fsdp"}, fsdp_priority_};
    else
      result_.whole.push_back(base::str(parameter.name, ": fsdp=", mesh_.size("fsdp"),
                                        " divides no free dimension of [", base::join(parameter.dims, ", "),
                                        "]"));
  }

  // All parameters of one rule and one reason are one line.
  void note(const ShardRule& rule, const NamedShape& parameter, const std::string& why) {
    Unfit* found = nullptr;
    for (auto& [other, unfit] : unfit_)
      if (other == &rule && unfit.why == why) found = &unfit;
    if (found == nullptr) {
      unfit_.emplace_back(&rule, Unfit{.first = parameter.name, .why = why});
      found = &unfit_.back().second;
    } else {
      ++found->others;
    }
    const Layout& layout = result_.layouts.back();
    int64_t held = elements(parameter.dims);
    for (size_t i = 0; i < layout.rank(); ++i) held /= layout.parts(mesh_, i);
    found->held += held;
    found->intended += held / mesh_.size(rule.axis);
  }

  const Mesh& mesh_;
  const int fsdp_priority_;
  ParameterLayouts result_;
  std::vector<std::pair<const ShardRule*, Unfit>> unfit_;
};

}  // namespace

ParameterLayouts parameter_layouts(const Mesh& mesh, const std::vector<NamedShape>& parameters,
                                   const std::vector<ShardRule>& rules,
                                   const std::vector<ShardRule>& model_rules) {
  std::vector<std::string> names;
  names.reserve(parameters.size());
  for (const NamedShape& parameter : parameters) names.push_back(parameter.name);
  const std::vector<const ShardRule*> own = rules_by_name(names, rules);
  const std::vector<const ShardRule*> models = model_rules_by_name(names, model_rules);
  Planner planner(mesh);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const bool has_own = own[i] != nullptr || elements(parameters[i].dims) <= kWholeElements;
    planner.add(parameters[i], has_own ? own[i] : models[i], /*of_model=*/!has_own);
  }
  return planner.result();
}

std::string tensor_apart(const Mesh& mesh, const std::vector<int64_t>& place_of, const char* places) {
  const int64_t size = mesh.size("tensor");
  // Devices of a group along the last axis are neighbours.
  for (size_t first = 0; first + static_cast<size_t>(size) <= place_of.size();
       first += static_cast<size_t>(size))
    for (size_t i = first + 1; i < first + static_cast<size_t>(size); ++i)
      if (place_of[i] != place_of[first])
        return base::str("tensor=", size, " of the mesh ", mesh.str(), " spans ", places, ": devices ", first,
                         " and ", i, " exchange activations in each layer over the links between ", places,
                         "; let fsdp or data span them, and take a tensor that divides the devices of one");
  return "";
}

}  // namespace sluice
