// The handlers, called by programs on XLA's CPU plugin.
#include "sluice/collectives/host_collectives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <stdexcept>

#include "sluice/pjrt/testing/collective_programs.h"

namespace sluice::collectives {
namespace {

using pjrt::testing::Array;
using pjrt::testing::Arrays;
using pjrt::testing::bytes_of;
using pjrt::testing::collective_program;
using pjrt::testing::CollectiveText;
using pjrt::testing::errors_of;
using pjrt::testing::f32;
using pjrt::testing::numbers_of;
using pjrt::testing::Prepared;
using pjrt::testing::results_of;
using pjrt::testing::Types;
using stablehlo::DType;
using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Twice as many devices as replicas, so that any number of launches can be in flight (see
// host_collectives.h).
pjrt::Client& client() {
  static const auto made = pjrt::testing::cpu_client(16);
  return *made;
}

void configure(size_t replicas, milliseconds timeout = milliseconds(600'000)) {
  HostCollectivesConfig config;
  for (size_t r = 0; r < replicas; ++r) config.device_ids.push_back(static_cast<int>(r));
  config.timeout = timeout;
  base::value_or_throw(HostCollectives::get().install(*client().plugin()));
  base::value_or_throw(HostCollectives::get().configure(config));
}

// Small whole numbers, so that sums are exact.
std::vector<float> numbers(size_t replica, size_t operand, size_t count) {
  std::vector<float> made(count);
  for (size_t k = 0; k < count; ++k) made[k] = static_cast<float>((replica + 2) * (operand + 1) + k % 13);
  return made;
}

std::vector<Arrays> arguments(const Types& types, size_t replicas) {
  std::vector<Arrays> all(replicas);
  for (size_t r = 0; r < replicas; ++r) {
    for (size_t i = 0; i < types.size(); ++i) {
      all[r].push_back(bytes_of(numbers(r, i, static_cast<size_t>(types[i].numel()))));
    }
  }
  return all;
}

std::vector<float> sum(size_t replicas, size_t operand, size_t count, float factor = 1) {
  std::vector<float> total(count, 0);
  for (size_t r = 0; r < replicas; ++r) {
    const std::vector<float> part = numbers(r, operand, count);
    for (size_t k = 0; k < count; ++k) total[k] += part[k];
  }
  for (float& x : total) x *= factor;
  return total;
}

void expect_sums(const std::vector<Arrays>& results, const Types& types, float factor = 1) {
  for (size_t r = 0; r < results.size(); ++r) {
    for (size_t i = 0; i < types.size(); ++i) {
      const auto count = static_cast<size_t>(types[i].numel());
      ASSERT_EQ(numbers_of<float>(results[r][i]), sum(results.size(), i, count, factor)) << r << ", " << i;
    }
  }
}

class Replicas : public ::testing::TestWithParam<size_t> {};
INSTANTIATE_TEST_SUITE_P(HostCollectives, Replicas, ::testing::Values(1, 2, 4, 8));

TEST_P(Replicas, Sum) {
  configure(GetParam());
  const Types types = {f32({}), f32({3, 5}), f32({0}), f32({70'000})};
  for (bool in_place : {false, true}) {
    const CollectiveText call = {.in_place = in_place};
    for (int i = 0; i < 10; ++i) {
      Prepared run = pjrt::testing::prepare(client(), collective_program(types, types, call), types,
                                            arguments(types, GetParam()));
      const void* before = base::value_or_throw(run.buffers[0][3].host_view()).data();
      const pjrt::Launch launch = base::value_or_throw(run.launch());
      expect_sums(results_of(launch), types);
      const void* after = base::value_or_throw(launch.outputs[3][0].host_view()).data();
      EXPECT_EQ(before == after, in_place);
      if (::testing::Test::HasFailure()) return;
    }
  }
}

TEST_P(Replicas, ManySmallOperandsAtSeveralSites) {
  configure(GetParam());
  Types types;
  for (int64_t i = 0; i < 160; ++i) types.push_back(f32({i % 5 + 1, 3}));
  const CollectiveText call = {.in_place = true, .calls = 3};
  Prepared run = pjrt::testing::prepare(client(), collective_program(types, types, call), types,
                                        arguments(types, GetParam()));
  const auto factor = static_cast<float>(GetParam() * GetParam());
  expect_sums(results_of(base::value_or_throw(run.launch())), types, factor);
}

// Runs that are launched without waiting for the one before.
TEST_P(Replicas, RunsFollowEachOther) {
  configure(GetParam());
  const Types types = {f32({100})};
  Prepared run =
      pjrt::testing::prepare(client(), collective_program(types, types), types, arguments(types, GetParam()));
  std::vector<pjrt::Launch> launches;
  for (int i = 0; i < 50; ++i) launches.push_back(base::value_or_throw(run.launch()));
  for (const pjrt::Launch& launch : launches) expect_sums(results_of(launch), types);
}

TEST_P(Replicas, Gather) {
  configure(GetParam());
  const auto replicas = static_cast<int64_t>(GetParam());
  const Types types = {f32({}), f32({2, 3}), f32({40'000})};
  const Types gathered = {f32({replicas}), f32({replicas, 2, 3}), f32({replicas, 40'000})};
  const CollectiveText call = {"sluice_all_gather", "program = 1 : i64, site = 0 : i64"};
  const auto given = arguments(types, GetParam());
  Prepared run = pjrt::testing::prepare(client(), collective_program(types, gathered, call), types, given);
  for (const Arrays& results : results_of(base::value_or_throw(run.launch()))) {
    for (size_t i = 0; i < types.size(); ++i) {
      Array expected;
      for (const Arrays& replica : given) expected += replica[i];
      EXPECT_EQ(results[i], expected);
    }
  }
}

TEST(HostCollectives, DevicesInAnotherOrder) {
  configure(2);
  HostCollectivesConfig config;
  config.device_ids = {5, 2};
  ASSERT_TRUE(HostCollectives::get().configure(config));
  const Types types = {f32({4})}, gathered = {f32({2, 4})};
  const CollectiveText call = {"sluice_all_gather", "program = 1 : i64, site = 0 : i64"};
  const auto given = arguments(types, 2);
  Prepared run =
      pjrt::testing::prepare(client(), collective_program(types, gathered, call), types, given, {5, 2});
  for (const Arrays& results : results_of(base::value_or_throw(run.launch()))) {
    EXPECT_EQ(results[0], given[0][0] + given[1][0]);
  }
}

TEST(HostCollectives, ElementTypesAndReductions) {
  configure(2);
  struct Row {
    DType dtype;
    Array a, b, sum, max, min;
  };
  const auto of = []<typename T>(DType dtype, T a, T b, T sum) {
    return Row{dtype,
               bytes_of<T>({a}),
               bytes_of<T>({b}),
               bytes_of<T>({sum}),
               bytes_of<T>({std::max(a, b)}),
               bytes_of<T>({std::min(a, b)})};
  };
  const auto u8 = [](uint8_t x) { return bytes_of<uint8_t>({x}); };
  const auto u16 = [](uint16_t x) { return bytes_of<uint16_t>({x}); };
  const std::vector<Row> rows = {
      of(DType::kS8, int8_t{100}, int8_t{-3}, int8_t{97}),
      of(DType::kS16, int16_t{1000}, int16_t{-3}, int16_t{997}),
      of(DType::kS32, int32_t{1} << 30, -7, (int32_t{1} << 30) - 7),
      of(DType::kS64, int64_t{1} << 60, int64_t{-7}, (int64_t{1} << 60) - 7),
      of(DType::kU8, uint8_t{200}, uint8_t{100}, uint8_t{44}),
      of(DType::kU16, uint16_t{60'000}, uint16_t{1}, uint16_t{60'001}),
      of(DType::kU32, 3'000'000'000u, 5u, 3'000'000'005u),
      of(DType::kU64, uint64_t{1} << 63, uint64_t{5}, (uint64_t{1} << 63) + 5),
      of(DType::kF32, 1.5f, -2.0f, -0.5f),
      of(DType::kF64, 1.5, -2.0, -0.5),
      {DType::kBF16, u16(0x3F80), u16(0x4000), u16(0x4040), u16(0x4000), u16(0x3F80)},
      {DType::kF16, u16(0x3C00), u16(0x4000), u16(0x4200), u16(0x4000), u16(0x3C00)},
      {DType::kPred, u8(1), u8(0), u8(1), u8(1), u8(0)}};
  Types types;
  std::vector<Arrays> given(2);
  for (const Row& row : rows) {
    types.push_back({row.dtype, {1}});
    given[0].push_back(row.a);
    given[1].push_back(row.b);
  }
  for (const char* op : {"sum", "max", "min"}) {
    const CollectiveText call = {.attributes =
                                     base::str("op = \"", op, "\", program = 1 : i64, site = 0 : i64")};
    Prepared run = pjrt::testing::prepare(client(), collective_program(types, types, call), types, given);
    for (const Arrays& results : results_of(base::value_or_throw(run.launch()))) {
      for (size_t i = 0; i < rows.size(); ++i) {
        const Row& row = rows[i];
        EXPECT_EQ(results[i], op[0] == 's' ? row.sum : op[1] == 'a' ? row.max : row.min) << op << " " << i;
      }
    }
  }
}

TEST(HostCollectives, Groups) {
  configure(4);
  const Types types = {f32({30'000})};
  const CollectiveText call = {.attributes =
                                   "op = \"sum\", program = 1 : i64, site = 0 : i64, "
                                   "groups = array<i64: 0, 3, 2, 1>, group_size = 2 : i64"};
  Prepared run =
      pjrt::testing::prepare(client(), collective_program(types, types, call), types, arguments(types, 4));
  const std::vector<Arrays> results = results_of(base::value_or_throw(run.launch()));
  for (size_t r = 0; r < 4; ++r) {
    std::vector<float> expected = numbers(r, 0, 30'000);
    const std::vector<float> partner = numbers(3 - r, 0, 30'000);
    for (size_t k = 0; k < expected.size(); ++k) expected[k] += partner[k];
    EXPECT_EQ(numbers_of<float>(results[r][0]), expected);
  }
}

// The errors of all replicas when one program with these attributes runs.
std::vector<std::string> errors_with(const CollectiveText& call, size_t replicas,
                                     const Types& results = {f32({4})}) {
  const Types types = {f32({4})};
  Prepared run = pjrt::testing::prepare(client(), collective_program(types, results, call), types,
                                        arguments(types, replicas));
  const auto launch = run.launch();
  if (!launch) return {launch.error().what()};
  return errors_of(*launch);
}

void expect_all(const std::vector<std::string>& errors, const std::string& text) {
  for (const std::string& error : errors) EXPECT_THAT(error, HasSubstr(text));
}

TEST(HostCollectives, WrongCallsFailOnAllReplicas) {
  const CollectiveText odd_op = {.attributes = "op = \"mean\", program = 1 : i64, site = 0 : i64"},
                       no_site = {.attributes = "op = \"sum\", program = 1 : i64"},
                       uneven = {.attributes =
                                     "op = \"sum\", program = 1 : i64, site = 0 : i64, "
                                     "groups = array<i64: 0, 0>, group_size = 2 : i64"};
  configure(2);
  expect_all(errors_with(odd_op, 2), "must be \"sum\", \"max\" or \"min\", found \"mean\"");
  HostCollectives::get().reset();
  expect_all(errors_with(no_site, 2), "needs the i64 attributes program and site");
  HostCollectives::get().reset();
  expect_all(errors_with(uneven, 2), "each of the 2 replicas once, found [0, 0]");
  HostCollectives::get().reset();
  expect_all(errors_with({}, 2, {f32({5})}), "result 0 must be tensor<4xf32>, found tensor<5xf32>");
  HostCollectives::get().reset();
  // Whether the two that are known meet before the others are refused is a matter of time.
  const std::vector<std::string> errors = errors_with({}, 4);
  EXPECT_THAT(errors[2], HasSubstr("but the replicas' devices are [0, 1]"));
  EXPECT_THAT(errors[3], HasSubstr("but the replicas' devices are [0, 1]"));
}

TEST(HostCollectives, AnErrorStaysUntilTheReset) {
  configure(2);
  const CollectiveText odd_op = {.attributes = "op = \"mean\", program = 1 : i64, site = 0 : i64"};
  expect_all(errors_with(odd_op, 2), "found \"mean\"");
  ASSERT_FALSE(HostCollectives::get().status());
  EXPECT_THAT(HostCollectives::get().status().error().what(), HasSubstr("found \"mean\""));
  expect_all(errors_with({}, 2), "found \"mean\"");
  HostCollectives::get().reset();
  EXPECT_TRUE(HostCollectives::get().status());
  expect_all(errors_with({}, 2), "");
  EXPECT_TRUE(HostCollectives::get().status());
}

// Two programs, each on one of the two replicas' devices.
TEST(HostCollectives, ReplicasAtDifferentSites) {
  configure(2);
  const Types types = {f32({400})};
  const auto start = [&](int site, int device) {
    const CollectiveText call = {.attributes =
                                     base::str("op = \"sum\", program = 7 : i64, site =  ", site, " : i64")};
    return pjrt::testing::prepare(client(), collective_program(types, types, call), types,
                                  arguments(types, 1), {device});
  };
  Prepared a = start(1, 0), b = start(2, 1);
  auto first = std::async(std::launch::async, [&] { return a.launch(); });
  auto second = std::async(std::launch::async, [&] { return b.launch(); });
  const auto text = [](base::Result<pjrt::Launch> launch) {
    return launch ? errors_of(*launch)[0] : std::string(launch.error().what());
  };
  const std::string error = text(first.get());
  EXPECT_THAT(error, AllOf(HasSubstr("the replicas of this process run different programs: replica 0 is at "
                                     "sluice_all_reduce at site 1 of program 0000000000000007"),
                           HasSubstr("replica 1 at sluice_all_reduce at site 2")));
  EXPECT_THAT(text(second.get()), HasSubstr("run different programs"));
}

TEST(HostCollectives, AReplicaThatDoesNotComeIsAnError) {
  configure(2, milliseconds(50));
  const Types types = {f32({400})};
  Prepared alone =
      pjrt::testing::prepare(client(), collective_program(types, types), types, arguments(types, 1), {1});
  const auto launch = alone.launch();
  const std::string error = launch ? errors_of(*launch)[0] : launch.error().what();
  EXPECT_THAT(error, AllOf(HasSubstr("sluice_all_reduce at site 0 of program 00000000000000ab"),
                           HasSubstr("waited 0.05 s for local replica 0 (device 0)")));
  // Who comes late hears the same.
  Prepared late =
      pjrt::testing::prepare(client(), collective_program(types, types), types, arguments(types, 1), {0});
  const auto later = late.launch();
  EXPECT_EQ(later ? errors_of(*later)[0] : later.error().what(), error);
}

class CutTransport : public Transport {
 public:
  base::Result<std::vector<std::string>> exchange(std::string_view bytes) override {
    return std::vector<std::string>(2, std::string(bytes));
  }
  base::Status all_reduce(std::span<const HostSpan>, DType, Reduction) override {
    return base::fail(Code::kUnavailable, "the wire is cut");
  }
  base::Status all_gather(void*, size_t) override { throw std::runtime_error("the wire is gone"); }
  void abort(const std::string& reason) override {
    std::lock_guard lock(mutex_);
    aborted_ = reason;
  }
  std::string aborted() {
    std::lock_guard lock(mutex_);
    return aborted_;
  }

 private:
  std::mutex mutex_;
  std::string aborted_;
};

TEST(HostCollectives, AFailingTransportIsToldAndFailsAllReplicas) {
  configure(1);
  HostCollectivesConfig config;
  config.device_ids = {0, 1, 2};
  config.processes = 2;
  EXPECT_THAT(HostCollectives::get().configure(config).error().what(), HasSubstr("need a transport"));
  const auto transport = std::make_shared<CutTransport>();
  config.transport = transport;
  ASSERT_TRUE(HostCollectives::get().configure(config));
  expect_all(errors_with({}, 3), "the wire is cut");
  EXPECT_THAT(transport->aborted(), HasSubstr("the wire is cut"));
  ASSERT_TRUE(HostCollectives::get().configure(config));
  const CollectiveText gather = {"sluice_all_gather", "program = 1 : i64, site = 0 : i64"};
  expect_all(errors_with(gather, 3, {f32({6, 4})}), "the wire is gone");
}

// Another process's header, too short or too long: whatever the transport brings is a stranger's.
TEST(HostCollectives, AHeaderOfAnotherLengthIsAnError) {
  struct Damaged : CutTransport {
    explicit Damaged(std::string other) : other_(std::move(other)) {}
    base::Result<std::vector<std::string>> exchange(std::string_view bytes) override {
      return std::vector<std::string>{std::string(bytes), other_};
    }
    const std::string other_;
  };
  for (const size_t size : {0u, 1u, 63u, 65u, 100'000u}) {
    configure(1);
    HostCollectivesConfig config;
    config.device_ids = {0, 1, 2};
    config.processes = 2;
    config.transport = std::make_shared<Damaged>(std::string(size, '\xff'));
    ASSERT_TRUE(HostCollectives::get().configure(config));
    expect_all(errors_with({}, 3), base::str("that it describes in ", size, " bytes: expected 64"));
  }
}

TEST(HostCollectives, ConfigurationsThatCannotBe) {
  HostCollectivesConfig config;
  EXPECT_FALSE(HostCollectives::get().configure(config));
  config.device_ids = {1, 1};
  EXPECT_FALSE(HostCollectives::get().configure(config));
  config.device_ids = {1};
  config.process_index = 1;
  EXPECT_FALSE(HostCollectives::get().configure(config));
}

}  // namespace
}  // namespace sluice::collectives
