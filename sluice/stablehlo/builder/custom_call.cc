// Calls of functions that the host registered with the plugin.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <numeric>
#include <set>

#include "sluice/stablehlo/builder/impl.h"
#include "sluice/stablehlo/kernel_work.h"

namespace sluice::stablehlo {
namespace {

constexpr std::string_view kOp = "stablehlo.custom_call";

void check_name(const std::string& name) {
  const auto letter = [](unsigned char c) { return std::isalpha(c) != 0 || c == '_'; };
  const bool plain = !name.empty() && letter(static_cast<unsigned char>(name[0])) &&
                     std::all_of(name.begin(), name.end(),
                                 [&](unsigned char c) { return letter(c) || std::isdigit(c) != 0; });
  if (!plain) reject(kOp, "an attribute's name is letters, digits and '_', found \"", name, "\"");
}

std::string f64_text(double value) {
  if (!std::isfinite(value)) reject(kOp, "an attribute's number must be finite, found ", value);
  char digits[40];
  const auto end =
      std::to_chars(digits, digits + sizeof digits, value, std::chars_format::scientific, 17).ptr;
  return std::string(digits, end) + " : f64";
}

void append(Attributes& to, const CallAttribute& attribute) {
  const auto& [name, value] = attribute;
  if (const auto* number = std::get_if<int64_t>(&value)) to.number(name, *number);
  if (const auto* real = std::get_if<double>(&value)) to.raw(name, f64_text(*real));
  if (const auto* flag = std::get_if<bool>(&value)) to.flag(name, *flag);
  if (const auto* text = std::get_if<std::string>(&value)) to.raw(name, quoted(*text));
  if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) to.ints(name, *list);
}

std::string dictionary_text(const CallAttributes& attributes) {
  Attributes made;
  std::set<std::string_view> seen;
  for (const CallAttribute& attribute : attributes) {
    check_name(attribute.name);
    if (!seen.insert(attribute.name).second) reject(kOp, "attribute ", attribute.name, " is given twice");
    append(made, attribute);
  }
  const std::string text = made.text();
  return text.empty() ? "{}" : text.substr(1);
}

// Returns the text that aliases result i to operand i, for the first `count` of all results.
std::string aliases_text(size_t count, size_t results) {
  std::string text = "[";
  for (size_t i = 0; i < count; ++i) {
    text +=
        base::str(i > 0 ? ", " : "", "#stablehlo.output_operand_alias<output_tuple_indices = [",
                  results > 1 ? base::str(i) : "", "], operand_index = ", i, ", operand_tuple_indices = []>");
  }
  return text += ']';
}

// Returns one layout for each value as an index vector, with the fastest dimension first.
std::string layouts_text(const std::vector<Type>& types, const std::vector<Dims>& layouts) {
  if (types.size() != layouts.size())
    reject(kOp, "expected a layout for each of ", types.size(), " values, found ", layouts.size());
  std::string text = "[";
  for (size_t i = 0; i < types.size(); ++i) {
    const Dims& layout = layouts[i];
    Dims sorted = layout, all(static_cast<size_t>(types[i].rank()));
    std::sort(sorted.begin(), sorted.end());
    std::iota(all.begin(), all.end(), 0);
    if (sorted != all)
      reject(kOp, list_text(layout), " is not an order of the dimensions of ", types[i].str());
    text += base::str(i > 0 ? ", " : "", "dense<", layout.empty() ? "" : list_text(layout), "> : tensor<",
                      layout.size(), "xindex>");
  }
  return text += ']';
}

}  // namespace

Values Builder::custom_call(std::string_view target, std::span<const Value> operands,
                            const std::vector<Type>& results, const CallAttributes& attributes,
                            const CallOptions& options) {
  impl_->use(kOp, operands);
  if (target.empty() || results.empty()) reject(kOp, "there must be a target and a result");
  std::vector<const TypeEntry*> types;
  for (const Type& type : results) types.push_back(impl_->intern_checked(kOp, type));
  if (options.in_place > types.size())
    reject(kOp, options.in_place, " results in place, found ", types.size());
  for (size_t i = 0; i < options.in_place; ++i) {
    if (i < operands.size() && impl_->entry(operands[i]) == types[i]) continue;
    reject(kOp, "result ", i, " (", types[i]->text, ") takes the memory of operand ", i,
           ", which must have its type, found ",
           i < operands.size() ? impl_->entry(operands[i])->text : "no such operand");
  }
  CallAttributes written = attributes;
  if (const int64_t id = impl_->locations.back().id; id != 0 && options.pure)
    written.push_back({std::string(kRecordedAttribute), id});
  Attributes made;
  made.raw("call_target_name", quoted(target))
      .raw("api_version", "4 : i32")
      .flag("has_side_effect", !options.pure)
      .raw("backend_config", dictionary_text(written));
  std::vector<Type> operand_types;
  for (const Value& operand : operands) operand_types.push_back(operand.type());
  if (!options.operand_layouts.empty()) {
    made.raw("operand_layouts", layouts_text(operand_types, options.operand_layouts))
        .raw("result_layouts", layouts_text(results, options.result_layouts));
  }
  if (options.in_place > 0) made.raw("output_operand_aliases", aliases_text(options.in_place, types.size()));
  Values values = impl_->add(kOp, operands, {}, made, types);
  impl_->last().target = target;
  impl_->last().call = attributes;
  impl_->last().removable = options.pure;
  return values;
}

}  // namespace sluice::stablehlo
