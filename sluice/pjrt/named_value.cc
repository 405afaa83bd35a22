#include "sluice/pjrt/named_value.h"

#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"

namespace sluice::pjrt {
namespace {

// Sets the type, value and size of `out` from an option.
struct FillValue {
  c::PJRT_NamedValue& out;
  void operator()(const std::string& text) const {
    out.type = c::kString;
    out.string_value = text.data();
    out.value_size = text.size();
  }
  void operator()(int64_t number) const {
    out.type = c::kInt64;
    out.int64_value = number;
    out.value_size = 1;
  }
  void operator()(const std::vector<int64_t>& numbers) const {
    out.type = c::kInt64List;
    out.int64_array_value = numbers.data();
    out.value_size = numbers.size();
  }
  void operator()(float number) const {
    out.type = c::kFloat;
    out.float_value = number;
    out.value_size = 1;
  }
  void operator()(bool flag) const {
    out.type = c::kBool;
    out.bool_value = flag;
    out.value_size = 1;
  }
};

}  // namespace

std::vector<c::PJRT_NamedValue> to_named_values(const Options& options) {
  std::vector<c::PJRT_NamedValue> values;
  for (const auto& [name, option] : options) {
    auto value = c::make<c::PJRT_NamedValue>();
    value.name = name.data();
    value.name_size = name.size();
    std::visit(FillValue{value}, option);
    values.push_back(value);
  }
  return values;
}

std::string value_text(const c::PJRT_NamedValue& value) {
  switch (value.type) {
    case c::kString:
      return std::string(value.string_value, value.value_size);
    case c::kInt64:
      return std::to_string(value.int64_value);
    case c::kFloat:
      return base::str(value.float_value);
    case c::kBool:
      return value.bool_value ? "true" : "false";
    case c::kInt64List: {
      const std::vector<int64_t> numbers(value.int64_array_value, value.int64_array_value + value.value_size);
      const bool version = base::ends_with(std::string_view(value.name, value.name_size), "_version");
      return version ? base::join(numbers, ".") : base::str("[", base::join(numbers, ", "), "]");
    }
  }
  return "?";
}

std::map<std::string, std::string> to_texts(const c::PJRT_NamedValue* values, size_t count) {
  std::map<std::string, std::string> texts;
  for (size_t i = 0; i < count; ++i) {
    texts[std::string(values[i].name, values[i].name_size)] = value_text(values[i]);
  }
  return texts;
}

}  // namespace sluice::pjrt
