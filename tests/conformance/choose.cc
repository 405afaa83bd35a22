#include "tests/conformance/choose.h"

#include <algorithm>
#include <filesystem>
#include <random>
#include <sstream>

namespace sluice::conformance {
namespace {

// "3/12": the third of twelve parts.
void read_part(const std::string& text, Choice& choice) {
  const size_t bar = text.find('/');
  if (bar != std::string::npos) {
    choice.part = std::atoi(text.c_str()) - 1;
    choice.parts = std::atoi(text.c_str() + bar + 1);
  }
  if (bar == std::string::npos || choice.part < 0 || choice.part >= choice.parts)
    throw std::runtime_error("expected --part I/N with 1 <= I <= N, found " + text);
}

}  // namespace

bool holds_part(const std::string& name, const std::string& parts) {
  std::istringstream in(parts);
  for (std::string part; std::getline(in, part, ',');)
    if (name.find(part) != std::string::npos) return true;
  return false;
}

bool Choice::read(const std::string& flag, const std::string& value) {
  if (flag == "--filter") {
    filter = value;
  } else if (flag == "--file") {
    files.push_back(value);
  } else if (flag == "--dtype") {
    dtype = value;
  } else if (flag == "--part") {
    read_part(value, *this);
  } else if (flag == "--seed") {
    seed = std::stoull(value);
  } else {
    return false;
  }
  return true;
}

bool Choice::takes_file(const std::string& name) const {
  return files.empty() || std::find(files.begin(), files.end(), name) != files.end();
}

bool Choice::takes_op(const std::string& name) const { return filter.empty() || holds_part(name, filter); }

std::vector<Sample> read_folder(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".txt") paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Sample> samples;
  for (const std::string& path : paths) {
    for (Sample& sample : read_samples(path)) samples.push_back(std::move(sample));
  }
  return samples;
}

bool has_floats(const Sample& sample) {
  const auto is_float = [](const Value& value) {
    return (value.kind == Value::Kind::kTensor && value.tensor.dtype.empty() && value.tensor.kind != 'i' &&
            value.tensor.kind != 'b') ||
           (value.kind == Value::Kind::kDType && value.text == "float");
  };
  return std::any_of(sample.arguments.begin(), sample.arguments.end(), [&](const Argument& argument) {
    return is_float(argument.value) ||
           std::any_of(argument.value.items.begin(), argument.value.items.end(), is_float);
  });
}

std::vector<const Sample*> chosen_samples(std::vector<Sample>& samples, const Choice& choice) {
  std::vector<const Sample*> chosen;
  for (Sample& sample : samples) {
    if (!choice.takes_file(sample.file) || !choice.takes_op(sample.op)) continue;
    if (!choice.dtype.empty()) {
      const bool has =
          std::find(sample.dtypes.begin(), sample.dtypes.end(), choice.dtype) != sample.dtypes.end();
      if (has_floats(sample) ? !has : choice.dtype != "f32") continue;
      if (has) sample.dtypes = {choice.dtype};
    }
    chosen.push_back(&sample);
  }
  if (choice.seed != 0) {
    std::mt19937_64 random(choice.seed);
    std::shuffle(chosen.begin(), chosen.end(), random);
  }
  std::vector<const Sample*> part;
  for (size_t i = static_cast<size_t>(choice.part); i < chosen.size(); i += static_cast<size_t>(choice.parts))
    part.push_back(chosen[i]);
  return part;
}

}  // namespace sluice::conformance
