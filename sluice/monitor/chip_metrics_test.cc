#include "sluice/monitor/chip_metrics.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "sluice/base/text/join.h"

namespace sluice::monitor {
namespace {

std::string field(int number, const std::string& bytes) {
  return base::str(static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size()), bytes);
}
std::string number(int which, int value) {
  return base::str(static_cast<char>(which << 3), static_cast<char>(value));
}

// The answer with one value of a device: its attribute's value, and its gauge.
std::string answer(const std::string& attribute, const std::string& gauge) {
  return field(1, field(1, "name") +
                      field(3, field(1, field(1, "device-id") + field(2, attribute)) + field(3, gauge)));
}

TEST(ChipMetrics, ReadsTheValuesOfAnAnswer) {
  const auto values = parse_metric(answer(number(3, 5), number(2, 100)));
  ASSERT_TRUE(values) << values.error().what();
  ASSERT_EQ(values->size(), 1u);
  EXPECT_EQ((*values)[0].device, 5);
  EXPECT_EQ((*values)[0].value, 100);
  // 12.5 as a double, and the device as text.
  const std::string twelve = std::string("\x09") + std::string("\0\0\0\0\0\0\x29\x40", 8);
  const auto others = parse_metric(answer(field(1, "3"), twelve));
  ASSERT_TRUE(others && others->size() == 1);
  EXPECT_EQ((*others)[0].device, 3);
  EXPECT_EQ((*others)[0].value, 12.5);
  // Zeros are not sent at all.
  const auto zero = parse_metric(answer("", ""));
  ASSERT_TRUE(zero && zero->size() == 1);
  EXPECT_EQ((*zero)[0].value, 0);
  EXPECT_TRUE(parse_metric("")->empty());
}

TEST(ChipMetrics, RefusesWhatIsNoAnswer) {
  const std::string good = answer(number(3, 5), number(2, 100));
  for (size_t size = 1; size < good.size(); ++size)
    EXPECT_FALSE(parse_metric(std::string_view(good).substr(0, size))) << size;
  EXPECT_FALSE(parse_metric("HTTP/1.1 200 OK"));
  EXPECT_FALSE(parse_metric(answer(field(1, "core"), number(2, 1))));
  const std::string not_a_number = std::string("\x09") + std::string("\0\0\0\0\0\0\xf8\x7f", 8);
  EXPECT_FALSE(parse_metric(answer(number(3, 0), not_a_number)));
}

TEST(ChipMetrics, PortsOfTheEnvironment) {
  ::unsetenv("TPU_RUNTIME_METRICS_PORTS");
  EXPECT_EQ(metrics_ports(), std::vector<int>{8431});
  ::setenv("TPU_RUNTIME_METRICS_PORTS", "8431, 8432,x,0,99999", 1);
  EXPECT_EQ(metrics_ports(), (std::vector<int>{8431, 8432}));
  ::unsetenv("TPU_RUNTIME_METRICS_PORTS");
}

}  // namespace
}  // namespace sluice::monitor
