#include "tests/conformance/sample.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>

namespace sluice::conformance {
namespace {

const std::vector<std::string> kDTypes = {"f32", "f64", "f16",  "bf16", "i64",  "i32",      "i16",
                                          "i8",  "u8",  "bool", "c64",  "c128", "f8e4m3fn", "f8e5m2"};

bool is_dtype(std::string_view text) {
  return std::find(kDTypes.begin(), kDTypes.end(), text) != kDTypes.end();
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  return text;
}

[[noreturn]] void bad(std::string_view expected, std::string_view found) {
  throw SampleError("expected " + std::string(expected) + ", found '" + std::string(found) + "'");
}

// The pieces between separators that stand outside of brackets and quotes.
std::vector<std::string_view> pieces(std::string_view text, char separator) {
  std::vector<std::string_view> result;
  int depth = 0;
  bool quoted = false;
  size_t start = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '\'') quoted = !quoted;
    if (quoted) continue;
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
    if (c == separator && depth == 0) {
      result.push_back(trimmed(text.substr(start, i - start)));
      start = i + 1;
    }
  }
  if (depth != 0 || quoted) bad("closed brackets and quotes", text);
  result.push_back(trimmed(text.substr(start)));
  return result;
}

double parse_number(std::string_view text) {
  std::string copy(text);
  char* end = nullptr;
  double value = std::strtod(copy.c_str(), &end);
  if (copy.empty() || *end != '\0') bad("a number", text);
  return value;
}

int64_t parse_integer(std::string_view text) {
  std::string copy(text);
  char* end = nullptr;
  long long value = std::strtoll(copy.c_str(), &end, 10);
  if (copy.empty() || *end != '\0') bad("an integer", text);
  return value;
}

bool is_whole(std::string_view text) {
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) text.remove_prefix(1);
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c); });
}

double parse_list_item(std::string_view text) {
  if (text == "true") return 1;
  if (text == "false") return 0;
  return parse_number(text);
}

// f[3,5], i[4]{0..9}, f[2]{1,nan}, b[3]:bool …
TensorSpec parse_tensor(std::string_view text) {
  TensorSpec spec;
  spec.kind = text[0];
  size_t close = text.find(']');
  if (close == std::string_view::npos) bad("']' after the dimensions", text);
  std::string_view dims = trimmed(text.substr(2, close - 2));
  if (!dims.empty()) {
    for (std::string_view dim : pieces(dims, ',')) spec.dims.push_back(parse_integer(dim));
  }
  std::string_view rest = text.substr(close + 1);
  if (!rest.empty() && rest.front() == '{') {
    size_t end = rest.find('}');
    if (end == std::string_view::npos) bad("'}'", text);
    std::string_view inside = trimmed(rest.substr(1, end - 1));
    if (size_t dots = inside.find(".."); dots != std::string_view::npos) {
      if (spec.kind != 'i') bad("a range only after i[…]", text);
      spec.low = parse_integer(trimmed(inside.substr(0, dots)));
      spec.high = parse_integer(trimmed(inside.substr(dots + 2)));
      if (spec.low > spec.high) bad("a range from low to high", text);
    } else {
      for (std::string_view value : pieces(inside, ',')) spec.values.push_back(parse_list_item(value));
    }
    rest = rest.substr(end + 1);
  }
  if (!rest.empty()) {
    if (rest.front() != ':' || !is_dtype(rest.substr(1))) bad("':' and an element type", rest);
    spec.dtype = rest.substr(1);
  }
  return spec;
}

Value parse_value(std::string_view text);

Value parse_tensors(std::string_view text) {
  Value value;
  value.kind = Value::Kind::kTensors;
  std::string_view inside = trimmed(text.substr(1, text.size() - 2));
  if (inside.empty()) return value;
  for (std::string_view piece : pieces(inside, ';')) {
    Value item = parse_value(piece);
    if (item.kind != Value::Kind::kTensor && item.kind != Value::Kind::kNone) bad("a tensor or none", piece);
    value.items.push_back(std::move(item));
  }
  return value;
}

Value parse_value(std::string_view text) {
  Value value;
  if (text.empty()) bad("a value", text);
  if (text == "none") return value;
  if (text == "true" || text == "false") {
    value.kind = Value::Kind::kBool;
    value.integer = text == "true";
  } else if (is_dtype(text) || text == "float") {
    value.kind = Value::Kind::kDType;
    value.text = text;
  } else if (text.front() == '\'') {
    if (text.size() < 2 || text.back() != '\'') bad("a closed quote", text);
    value.kind = Value::Kind::kText;
    value.text = text.substr(1, text.size() - 2);
  } else if (text.front() == '(') {
    if (text.back() != ')') bad("')'", text);
    value.kind = Value::Kind::kList;
    std::string_view inside = trimmed(text.substr(1, text.size() - 2));
    if (inside.empty()) return value;
    for (std::string_view piece : pieces(inside, ',')) value.list.push_back(parse_list_item(piece));
  } else if (text.front() == '{') {
    if (text.back() != '}') bad("'}'", text);
    value = parse_tensors(text);
  } else if (text.front() == '@') {
    value.kind = Value::Kind::kSame;
    value.integer = parse_integer(text.substr(1));
  } else if (text.size() > 2 && text[1] == '[' &&
             std::string_view("fpuqdibc").find(text[0]) != std::string_view::npos) {
    value.kind = Value::Kind::kTensor;
    value.tensor = parse_tensor(text);
  } else {
    value.kind = Value::Kind::kNumber;
    value.number = parse_number(text);
    value.whole = is_whole(text);
    if (value.whole) value.integer = parse_integer(text);
  }
  return value;
}

// "alpha=2" or a bare value.
Argument parse_argument(std::string_view text) {
  Argument argument;
  size_t equals = text.find('=');
  if (equals != std::string_view::npos && text.front() != '\'') {
    argument.name = trimmed(text.substr(0, equals));
    text = trimmed(text.substr(equals + 1));
  }
  argument.value = parse_value(text);
  return argument;
}

std::vector<std::string> parse_types(std::string_view text) {
  std::vector<std::string> types;
  for (std::string_view piece : pieces(text, ',')) {
    if (!is_dtype(piece)) bad("an element type", piece);
    types.emplace_back(piece);
  }
  return types;
}

bool parse_flag(Sample& sample, std::string_view word) {
  const std::pair<std::string_view, bool Sample::*> flags[] = {{"bits", &Sample::bits},
                                                               {"nograd", &Sample::nograd},
                                                               {"noinplace", &Sample::noinplace},
                                                               {"noout", &Sample::noout},
                                                               {"noview", &Sample::noview},
                                                               {"random", &Sample::random},
                                                               {"throws", &Sample::throws},
                                                               {"norow", &Sample::norow},
                                                               {"fallback", &Sample::fallback},
                                                               {"gradfallback", &Sample::gradfallback},
                                                               {"anystrides", &Sample::anystrides}};
  for (auto [name, member] : flags) {
    if (word == name) {
      sample.*member = true;
      return true;
    }
  }
  return false;
}

void parse_option(Sample& sample, std::string_view word) {
  if (parse_flag(sample, word)) return;
  size_t equals = word.find('=');
  if (equals == std::string_view::npos) bad("an option (see README.md)", word);
  std::string_view key = word.substr(0, equals), value = word.substr(equals + 1);
  if (key == "dtypes") {
    sample.dtypes = parse_types(value);
  } else if (key == "itypes") {
    sample.itypes = parse_types(value);
  } else if (key == "tol") {
    sample.tolerance = parse_number(value);
  } else if (key.substr(0, 4) == "tol." && is_dtype(key.substr(4))) {
    sample.tolerance_of[std::string(key.substr(4))] = parse_number(value);
  } else if (key == "gradtol") {
    sample.gradient_factor = parse_number(value);
  } else if (key == "results") {
    for (std::string_view piece : pieces(value, ',')) sample.results.push_back(parse_integer(piece));
  } else if (key == "until" && value.substr(0, 2) == "2.") {
    sample.until = parse_integer(value.substr(2));
  } else if (key == "cpu") {
    sample.reference = value;
  } else if (key.substr(0, 4) == "cpu.") {
    sample.reference_arguments.push_back({std::string(key.substr(4)), parse_value(value)});
  } else {
    bad("an option (see README.md)", word);
  }
}

void parse_into(Sample& sample, std::string_view line) {
  auto parts = pieces(line, '|');
  if (parts.size() < 2 || parts.size() > 3) bad("op | arguments | options", line);
  sample.op = parts[0];
  if (sample.op.find("::") == std::string::npos) bad("an op as aten::name.overload", parts[0]);
  if (!parts[1].empty()) {
    for (std::string_view piece : pieces(parts[1], ';')) {
      sample.arguments.push_back(parse_argument(piece));
      bool named = !sample.arguments.back().name.empty();
      if (!named && sample.arguments.size() > 1 &&
          !sample.arguments[sample.arguments.size() - 2].name.empty()) {
        bad("no argument by position after one by name", piece);
      }
    }
  }
  if (parts.size() == 3) {
    for (std::string_view word : pieces(parts[2], ' ')) {
      if (!word.empty()) parse_option(sample, word);
    }
  }
  if (sample.fallback) sample.norow = true;
  if (sample.random) sample.nograd = true;
}

}  // namespace

double Sample::tolerance_in(const std::string& dtype) const {
  if (auto found = tolerance_of.find(dtype); found != tolerance_of.end()) return found->second;
  double factor = tolerance / 1e-5;
  if (dtype == "f64") return 1e-9 * factor;
  if (dtype == "f16") return std::min(0.5, 5e-3 * factor);
  if (dtype == "bf16") return std::min(0.5, 4e-2 * factor);
  return tolerance;
}

std::string Sample::where() const { return file + ":" + std::to_string(line) + ": " + op; }

Sample parse_sample(std::string_view line, std::string_view file, int number) {
  Sample sample;
  sample.file = file;
  sample.line = number;
  sample.text = trimmed(line);
  try {
    parse_into(sample, trimmed(line));
  } catch (const SampleError& error) {
    throw SampleError(sample.file + ":" + std::to_string(number) + ": " + error.what());
  }
  return sample;
}

std::vector<Sample> read_samples(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw SampleError("cannot read " + path);
  std::string stem = std::filesystem::path(path).stem().string();
  std::vector<Sample> samples;
  std::string line, whole;
  int number = 0, first = 0;
  while (std::getline(in, line)) {
    ++number;
    if (whole.empty()) first = number;
    std::string_view text = trimmed(line);
    if (whole.empty() && (text.empty() || text.front() == '#')) continue;
    bool more = !text.empty() && text.back() == '\\';
    if (more) text.remove_suffix(1);
    whole += std::string(text) + " ";
    if (more) continue;
    samples.push_back(parse_sample(whole, stem, first));
    whole.clear();
  }
  if (!whole.empty())
    throw SampleError(stem + ":" + std::to_string(number) + ": a line after '\\' is missing");
  return samples;
}

}  // namespace sluice::conformance
