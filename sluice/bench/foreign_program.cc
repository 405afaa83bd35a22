#include "sluice/bench/foreign_program.h"

#include <cstring>
#include <regex>

#include "sluice/base/files/file.h"

namespace sluice::bench {
namespace {

base::Result<stablehlo::DType> dtype_of(const std::string& name) {
  using stablehlo::DType;
  for (int d = 0; d < stablehlo::kDTypeCount; ++d) {
    if (name == stablehlo::dtype_name(static_cast<DType>(d))) return static_cast<DType>(d);
  }
  return base::fail(Code::kInvalidArgument, "expected an element type such as f32, found ", name);
}

// Parses a type such as "128x3x32x32xf32" or "f32".
base::Result<stablehlo::Type> type_of(const std::string& text) {
  stablehlo::Type type;
  size_t at = 0;
  for (size_t x = text.find('x'); x != std::string::npos; x = text.find('x', at)) {
    type.dims.push_back(std::stoll(text.substr(at, x - at)));
    at = x + 1;
  }
  SLUICE_TRY(type.dtype, dtype_of(text.substr(at)));
  return type;
}

// Returns the bytes of numbers between 0.01 and 0.03, or zeros for a type other than f32.
std::vector<float> small_numbers(const stablehlo::Type& type) {
  std::vector<float> numbers((type.bytes() + sizeof(float) - 1) / sizeof(float) + 1, 0.0f);
  if (type.dtype != stablehlo::DType::kF32) return numbers;
  uint32_t state = 12345;
  for (float& number : numbers) {
    state = state * 1664525u + 1013904223u;
    number = 0.01f + 0.02f * static_cast<float>(state >> 8) / 16777216.0f;
  }
  return numbers;
}

}  // namespace

base::Result<ForeignProgram> ForeignProgram::load(const std::string& path,
                                                  std::shared_ptr<pjrt::Client> client) {
  std::string text;
  SLUICE_TRY(text, base::read_file(path));
  const size_t start = text.find("@main(");
  const size_t end = text.find(") -> ", start);
  if (start == std::string::npos || end == std::string::npos) {
    return base::fail(Code::kInvalidArgument, path,
                      ": expected a StableHLO module with a function @main, found none");
  }
  ForeignProgram program;
  program.client_ = client;
  pjrt::CompileOptions options;
  options.name = path;
  const std::string signature = text.substr(start, end - start);
  static const std::regex argument(R"(%arg\d+: tensor<([^>]*)>( \{([^}]*)\})?)");
  for (std::sregex_iterator it(signature.begin(), signature.end(), argument), none; it != none; ++it) {
    stablehlo::Type type;
    SLUICE_TRY(type, type_of((*it)[1].str()));
    options.argument_types.push_back(type);
    std::smatch alias;
    const std::string attributes = (*it)[3].str();
    static const std::regex aliasing(R"(tf\.aliasing_output = (\d+))");
    program.aliases_.push_back(std::regex_search(attributes, alias, aliasing) ? std::stoi(alias[1].str())
                                                                              : -1);
    const std::vector<float> numbers = small_numbers(type);
    pjrt::Buffer buffer;
    SLUICE_TRY(buffer, client->put(numbers.data(), type, *client->devices()[0]));
    program.arguments_.push_back(std::move(buffer));
  }
  SLUICE_TRY(program.executable_, client->compile(text, options));
  return program;
}

base::Status ForeignProgram::run(int times) {
  pjrt::Launch launch;
  for (int run = 0; run < times; ++run) {
    std::vector<std::vector<pjrt::Buffer*>> arguments(1);
    for (pjrt::Buffer& buffer : arguments_) arguments[0].push_back(&buffer);
    SLUICE_TRY(launch, executable_->execute(arguments));
    for (size_t i = 0; i < aliases_.size(); ++i) {
      if (aliases_[i] >= 0) arguments_[i] = std::move(launch.outputs[static_cast<size_t>(aliases_[i])][0]);
    }
  }
  return launch.done.empty() ? base::Status() : launch.done[0].await();
}

}  // namespace sluice::bench
