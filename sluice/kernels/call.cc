#include "sluice/kernels/call.h"

#include <algorithm>

#include "sluice/base/check.h"

namespace sluice::kernels {
namespace {

constexpr std::string_view kOperand = "operand", kResult = "result";

// Returns the type as text: "f32[2,?,3]".
std::string text_of(stablehlo::DType dtype, std::span<const int64_t> dims) {
  std::string text = base::str(stablehlo::dtype_name(dtype), "[");
  for (size_t i = 0; i < dims.size(); ++i)
    text += base::str(i == 0 ? "" : ",", dims[i] == kAny ? std::string("?") : std::to_string(dims[i]));
  return text + "]";
}
std::string text_of(const Tensor& tensor) { return text_of(stablehlo::DType::kF32, tensor.dims); }

// Describes the expected value: "an i64 from 0 to 1".
std::string expected(const Attribute& attribute) {
  if (attribute.type == Attribute::Type::kReal) return "an f64";
  return base::str(attribute.type == Attribute::Type::kList ? "an array<i64> of entries" : "an i64", " from ",
                   attribute.min, " to ", attribute.max);
}

// Returns the type of the attribute of that name, as MLIR writes it.
const char* found_type(const pjrt::CustomCall& call, std::string_view name) {
  if (call.number(name)) return "an i64";
  if (call.real(name)) return "an f64";
  if (call.text(name)) return "a string";
  return call.numbers(name) ? "an array<i64>" : "of a type that no kernel reads";
}

}  // namespace

size_t Tensor::elements() const {
  size_t count = 1;
  for (const int64_t dim : dims) count *= static_cast<size_t>(dim);
  return count;
}

base::Status Call::takes(std::initializer_list<Arity> any_of) const {
  std::string allowed;
  for (const auto& [operands, results] : any_of) {
    if (num_operands() == operands && num_results() == results) return {};
    allowed += base::str(allowed.empty() ? "" : " or ", operands, " operands with ", results, " results");
  }
  return refuse("expected ", allowed, ", found ", num_operands(), " with ", num_results());
}

base::Status Call::takes_at_least(const Arity& arity) const {
  if (num_operands() >= arity.operands && num_results() == arity.results) return {};
  return refuse("expected ", arity.operands, " operands or more with ", arity.results, " results, found ",
                num_operands(), " with ", num_results());
}

const Attribute& Call::declared(std::string_view name, Attribute::Type type) const {
  const auto found = std::find_if(attributes_.begin(), attributes_.end(),
                                  [&](const Attribute& attribute) { return attribute.name == name; });
  SLUICE_CHECK(found != attributes_.end() && found->type == type, target_, " declares no attribute ", name);
  return *found;
}

tl::unexpected<Error> Call::wrong_type(const Attribute& attribute) const {
  return refuse("attribute ", attribute.name, " is ", found_type(call_, attribute.name), ", expected ",
                expected(attribute));
}

base::Status Call::check_range(const Attribute& attribute, int64_t number,
                               std::optional<size_t> entry) const {
  if (number >= attribute.min && number <= attribute.max) return {};
  return refuse("attribute ", attribute.name, entry ? base::str("[", *entry, "]") : "", " is ", number,
                ", expected ", expected(attribute));
}

base::Result<int64_t> Call::number(std::string_view name) const {
  const Attribute& attribute = declared(name, Attribute::Type::kNumber);
  const auto found = call_.number(name);
  if (!found) return wrong_type(attribute);
  const std::optional<int64_t> value = *found ? *found : attribute.missing;
  if (!value) return refuse("attribute ", name, " is missing, expected ", expected(attribute));
  SLUICE_OK(check_range(attribute, *value));
  return *value;
}

base::Result<bool> Call::flag(std::string_view name) const {
  SLUICE_TRY(const int64_t value, number(name));
  return value != 0;
}

base::Result<double> Call::real(std::string_view name) const {
  const Attribute& attribute = declared(name, Attribute::Type::kReal);
  const auto found = call_.real(name);
  if (!found) return wrong_type(attribute);
  if (!*found) return refuse("attribute ", name, " is missing, expected ", expected(attribute));
  return **found;
}

base::Result<stablehlo::Dims> Call::list(std::string_view name, std::optional<size_t> entries) const {
  const Attribute& attribute = declared(name, Attribute::Type::kList);
  const auto found = call_.numbers(name);
  if (!found) return wrong_type(attribute);
  if (!*found) return refuse("attribute ", name, " is missing, expected ", expected(attribute));
  const std::span<const int64_t> list = **found;
  if (entries && list.size() != *entries)
    return refuse("attribute ", name, " has ", list.size(), " entries, expected ", *entries);
  for (size_t i = 0; i < list.size(); ++i) SLUICE_OK(check_range(attribute, list[i], i));
  return stablehlo::Dims(list.begin(), list.end());
}

base::Result<Tensor> Call::tensor(std::string_view kind, size_t i, std::string_view name) const {
  const auto found = kind == kOperand ? call_.operand(i) : call_.result(i);
  if (!found) return refuse(kind, " ", i, " (", name, "): ", found.error().what());
  if (found->dtype != stablehlo::DType::kF32)
    return refuse(kind, " ", i, " (", name, ") is ", text_of(found->dtype, found->dims), ", expected f32");
  return Tensor{found->dims, static_cast<float*>(found->data)};
}

base::Result<Tensor> Call::of_dims(std::string_view kind, size_t i, std::string_view name,
                                   std::span<const int64_t> dims) const {
  SLUICE_TRY(const Tensor found, tensor(kind, i, name));
  const bool fits = std::equal(dims.begin(), dims.end(), found.dims.begin(), found.dims.end(),
                               [](int64_t wanted, int64_t dim) { return wanted == kAny || wanted == dim; });
  if (fits) return found;
  return refuse(kind, " ", i, " (", name, ") is ", text_of(found), ", expected ",
                text_of(stablehlo::DType::kF32, dims));
}

base::Result<Tensor> Call::filled(std::string_view kind, size_t i, std::string_view name, size_t min_rank,
                                  size_t max_rank) const {
  SLUICE_TRY(const Tensor found, tensor(kind, i, name));
  if (found.rank() < min_rank || found.rank() > max_rank)
    return refuse(kind, " ", i, " (", name, ") is ", text_of(found), ", expected ", min_rank,
                  " dimensions or more", max_rank == ~size_t{0} ? "" : base::str(", at most ", max_rank));
  if (found.elements() == 0)
    return refuse(kind, " ", i, " (", name, ") is ", text_of(found), ", expected one element or more");
  return found;
}

base::Result<Tensor> Call::operand(size_t i, std::string_view name) const {
  return tensor(kOperand, i, name);
}
base::Result<Tensor> Call::operand(size_t i, std::string_view name, std::span<const int64_t> dims) const {
  return of_dims(kOperand, i, name, dims);
}
base::Result<Tensor> Call::filled_operand(size_t i, std::string_view name, size_t min_rank,
                                          size_t max_rank) const {
  return filled(kOperand, i, name, min_rank, max_rank);
}
base::Result<Tensor> Call::result(size_t i, std::string_view name) const { return tensor(kResult, i, name); }
base::Result<Tensor> Call::result(size_t i, std::string_view name, std::span<const int64_t> dims) const {
  return of_dims(kResult, i, name, dims);
}
base::Result<Tensor> Call::filled_result(size_t i, std::string_view name, size_t min_rank,
                                         size_t max_rank) const {
  return filled(kResult, i, name, min_rank, max_rank);
}

base::Status Call::in_place(size_t result, size_t operand) const {
  const auto to = call_.result(result), from = call_.operand(operand);
  if (to && from && to->data == from->data && to->dtype == from->dtype &&
      std::ranges::equal(to->dims, from->dims))
    return {};
  return refuse("result ", result, " is another tensor than operand ", operand,
                ", expected its type and its memory (output_operand_aliases)");
}

}  // namespace sluice::kernels
