#include <charconv>

#include "sluice/stablehlo/builder/impl.h"

namespace sluice::stablehlo {

void append_number(std::string& text, int64_t value) {
  char digits[24];
  text.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

namespace {

void append_list(std::string& text, std::span<const int64_t> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) text += ", ";
    append_number(text, values[i]);
  }
}

}  // namespace

std::string list_text(std::span<const int64_t> values) {
  std::string text = "[";
  append_list(text, values);
  return text += ']';
}

std::string padding_text(const Padding& padding) {
  std::string text = "[";
  for (size_t i = 0; i < padding.size(); ++i) {
    if (i > 0) text += ", ";
    text += list_text(Dims{padding[i].first, padding[i].second});
  }
  return text += ']';
}

std::string quoted(std::string_view name) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string text = "\"";
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\' || byte < 0x20 || byte >= 0x7F) {
      text += '\\';
      text += kDigits[byte >> 4];
      text += kDigits[byte & 15];
    } else {
      text += c;
    }
  }
  return text += '"';
}

void Attributes::name(std::string_view name) {
  if (!text_.empty()) text_ += ", ";
  text_ += name;
  text_ += " = ";
}

Attributes& Attributes::raw(std::string_view attribute, std::string_view text) {
  name(attribute);
  text_ += text;
  return *this;
}

Attributes& Attributes::number(std::string_view attribute, int64_t value) {
  name(attribute);
  append_number(text_, value);
  text_ += " : i64";
  return *this;
}

Attributes& Attributes::flag(std::string_view attribute, bool value) {
  return raw(attribute, value ? "true" : "false");
}

Attributes& Attributes::ints(std::string_view attribute, std::span<const int64_t> values) {
  name(attribute);
  text_ += values.empty() ? "array<i64" : "array<i64: ";
  append_list(text_, values);
  text_ += '>';
  return note(attribute, Dims(values.begin(), values.end()));
}

Attributes& Attributes::flags(std::string_view attribute, const std::vector<bool>& values) {
  name(attribute);
  text_ += values.empty() ? "array<i1" : "array<i1: ";
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) text_ += ", ";
    text_ += values[i] ? "true" : "false";
  }
  text_ += '>';
  return *this;
}

Attributes& Attributes::table(std::string_view attribute, const std::vector<std::vector<int64_t>>& rows,
                              size_t columns) {
  name(attribute);
  text_ += "dense<";
  if (!rows.empty() && columns > 0) {
    text_ += '[';
    for (size_t i = 0; i < rows.size(); ++i) {
      text_ += i > 0 ? ", [" : "[";
      append_list(text_, rows[i]);
      text_ += ']';
    }
    text_ += ']';
  }
  text_ += "> : tensor<";
  append_number(text_, static_cast<int64_t>(rows.size()));
  text_ += 'x';
  append_number(text_, static_cast<int64_t>(columns));
  text_ += "xi64>";
  return *this;
}

Attributes& Attributes::pairs(std::string_view attribute, const Padding& pairs) {
  name(attribute);
  text_ += "dense<";
  if (!pairs.empty()) text_ += padding_text(pairs);
  text_ += "> : tensor<";
  append_number(text_, static_cast<int64_t>(pairs.size()));
  text_ += "x2xi64>";
  return *this;
}

}  // namespace sluice::stablehlo
