// Every case compiled and run by XLA's CPU plugin, and its numbers compared.
//
// The plugin is looked for as the program looks for it; SLUICE_PLUGIN names another one. Without it the test
// fails.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "case.h"
#include "sluice/collectives/host_collectives.h"
#include "sluice/pjrt/client.h"
#include "sluice/stablehlo/literal.h"

namespace sluice::stablehlo::testing {
namespace {

std::string bytes_of(const Input& input) {
  const size_t size = dtype_size(input.type.dtype);
  std::string bytes;
  for (double value : input.values) {
    const uint64_t bits = literal::encode(value, input.type.dtype);
    bytes.append(reinterpret_cast<const char*>(&bits), size);
  }
  return bytes;
}

template <typename Number>
Number read(const char* at) {
  Number value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

double number_at(const char* at, DType dtype) {
  switch (dtype) {
    case DType::kPred:
    case DType::kU8:
      return read<uint8_t>(at);
    case DType::kS8:
      return read<int8_t>(at);
    case DType::kS16:
      return read<int16_t>(at);
    case DType::kS32:
      return read<int32_t>(at);
    case DType::kS64:
      return static_cast<double>(read<int64_t>(at));
    case DType::kU16:
      return read<uint16_t>(at);
    case DType::kU32:
      return read<uint32_t>(at);
    case DType::kU64:
      return static_cast<double>(read<uint64_t>(at));
    case DType::kBF16:
      return std::bit_cast<float>(static_cast<uint32_t>(read<uint16_t>(at)) << 16);
    case DType::kF32:
      return read<float>(at);
    case DType::kF64:
      return read<double>(at);
    case DType::kC64:
    case DType::kC128:
      throw std::logic_error("a case gives the parts of complex numbers");
    case DType::kF8E4M3FN:
    case DType::kF8E5M2:
      throw std::logic_error("a case converts float8");
    case DType::kF16:
      break;
  }
  const auto bits = read<uint16_t>(at);
  const int exponent = (bits >> 10) & 31;
  const double fraction = bits & 1023;
  const double size = exponent == 31  ? (fraction == 0 ? HUGE_VAL : std::nan(""))
                      : exponent == 0 ? std::ldexp(fraction, -24)
                                      : std::ldexp(1024 + fraction, exponent - 25);
  return (bits & 0x8000) != 0 ? -size : size;
}

std::vector<double> numbers_of(const pjrt::Buffer& buffer) {
  const Type& type = buffer.type();
  std::string bytes(type.bytes(), '\0');
  if (!bytes.empty()) base::value_or_throw(buffer.read(bytes.data(), bytes.size()));
  std::vector<double> numbers;
  for (size_t at = 0; at < bytes.size(); at += dtype_size(type.dtype)) {
    numbers.push_back(number_at(bytes.data() + at, type.dtype));
  }
  return numbers;
}

bool agree(double got, double expected, double tolerance) {
  if (std::isnan(expected)) return std::isnan(got);
  if (tolerance == 0 && expected == 0 && std::signbit(got) != std::signbit(expected)) return false;
  return got == expected || std::abs(got - expected) <= tolerance * (1 + std::abs(expected));
}

pjrt::Client& client() {
  static const auto made = [] {
    pjrt::ClientOptions options;
    options.cpu_device_count = 4;
    options.cache_dir = "";
    const auto plugin = base::value_or_throw(pjrt::Plugin::load("cpu"));
    auto& host = collectives::HostCollectives::get();
    base::value_or_throw(host.install(*plugin));
    base::value_or_throw(host.configure({.device_ids = {0, 1, 2, 3}}));
    return base::value_or_throw(pjrt::Client::create(plugin, options));
  }();
  return *made;
}

class Execute : public ::testing::TestWithParam<Case> {};

TEST_P(Execute, NumbersAreRight) {
  const Case& c = GetParam();
  pjrt::CompileOptions options;
  options.num_replicas = c.replicas;
  options.name = c.name;
  for (const Input& input : c.inputs) options.argument_types.push_back(input.type);
  const auto executable = base::value_or_throw(client().compile(program_of(c), options));

  std::vector<std::vector<pjrt::Buffer>> buffers;
  std::vector<std::vector<pjrt::Buffer*>> arguments;
  for (pjrt::Device* device : executable->devices()) {
    std::vector<pjrt::Buffer>& row = buffers.emplace_back();
    for (const Input& input : c.inputs) {
      row.push_back(base::value_or_throw(client().put(bytes_of(input).data(), input.type, *device)));
    }
    std::vector<pjrt::Buffer*>& pointers = arguments.emplace_back();
    for (pjrt::Buffer& buffer : row) pointers.push_back(&buffer);
  }
  const auto launch = base::value_or_throw(executable->execute(arguments));

  std::vector<std::vector<double>> got;
  for (size_t r = 0; r < launch.done.size(); ++r) {
    for (const auto& output : launch.outputs) got.push_back(numbers_of(output[r]));
  }
  ASSERT_EQ(got.size(), c.expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].size(), c.expected[i].size()) << "result " << i;
    for (size_t k = 0; k < got[i].size(); ++k) {
      EXPECT_TRUE(agree(got[i][k], c.expected[i][k], c.tolerance))
          << "result " << i << ", element " << k << ": " << got[i][k] << ", expected " << c.expected[i][k];
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, Execute, ::testing::ValuesIn(all_cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace sluice::stablehlo::testing
