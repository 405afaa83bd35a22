// Collectives between processes, and processes that die in one.
#include "sluice/replica/transport/socket_transport.h"

#include <gmock/gmock.h>

#include <iostream>

#include "sluice/collectives/host_collectives.h"
#include "sluice/pjrt/testing/collective_programs.h"
#include "sluice/replica/testing/crew.h"
#include "sluice/replica/transport/sockets.h"
#include "sluice/replica/transport/transport.h"

namespace sluice::replica {
namespace transport_testing {

using collectives::HostSpan;
using collectives::Reduction;
using stablehlo::DType;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::my_placement;
using testing::run_part;

struct Connected {
  std::shared_ptr<Processes> processes = base::value_or_throw(Processes::join(my_placement()));
  std::shared_ptr<collectives::Transport> transport = base::value_or_throw(make_socket_transport(processes));
};

template <typename T>
T value(int process, size_t span, size_t k) {
  return static_cast<T>((process + 2) * 3 + static_cast<int>((span * 5 + k) % 11));
}

// Spans of many sizes: empty, small, around the limits of the bucket, larger than it.
template <typename T>
void reduce_and_compare(Connected& all, DType dtype, Reduction reduction, const std::vector<size_t>& sizes) {
  std::vector<std::vector<T>> data;
  std::vector<HostSpan> spans;
  for (size_t s = 0; s < sizes.size(); ++s) {
    data.emplace_back(sizes[s]);
    for (size_t k = 0; k < sizes[s]; ++k) data[s][k] = value<T>(all.processes->index(), s, k);
  }
  for (auto& span : data) spans.push_back({span.data(), span.size()});
  const auto status = all.transport->all_reduce(spans, dtype, reduction);
  ASSERT_TRUE(status) << status.error().what();
  for (size_t s = 0; s < sizes.size(); ++s) {
    for (size_t k = 0; k < sizes[s]; ++k) {
      T expected = value<T>(0, s, k);
      for (int p = 1; p < all.processes->count(); ++p) {
        const T next = value<T>(p, s, k);
        expected = reduction == Reduction::kSum   ? static_cast<T>(expected + next)
                   : reduction == Reduction::kMax ? std::max(expected, next)
                                                  : std::min(expected, next);
      }
      ASSERT_EQ(data[s][k], expected) << "span " << s << ", element " << k;
    }
  }
}

SLUICE_PART(Values) {
  Connected all;
  const std::vector<size_t> sizes = {0, 1, 100, 300'000, 1'500'000, 7'000'000, 500'000, 7};
  reduce_and_compare<float>(all, DType::kF32, Reduction::kSum, sizes);
  const std::vector<size_t> few = {3, 0, 5000};
  for (Reduction reduction : {Reduction::kSum, Reduction::kMax, Reduction::kMin}) {
    reduce_and_compare<float>(all, DType::kF32, reduction, few);
    reduce_and_compare<double>(all, DType::kF64, reduction, few);
    reduce_and_compare<int8_t>(all, DType::kS8, reduction, few);
    reduce_and_compare<int16_t>(all, DType::kS16, reduction, few);
    reduce_and_compare<int32_t>(all, DType::kS32, reduction, few);
    reduce_and_compare<int64_t>(all, DType::kS64, reduction, few);
    reduce_and_compare<uint8_t>(all, DType::kU8, reduction, few);
    reduce_and_compare<uint16_t>(all, DType::kU16, reduction, few);
    reduce_and_compare<uint32_t>(all, DType::kU32, reduction, few);
    reduce_and_compare<uint64_t>(all, DType::kU64, reduction, few);
  }
  reduce_and_compare<uint8_t>(all, DType::kU8, Reduction::kMax, {9'000'000});
  // Halves: 1, 2, 4 … have one bit each, so their sums are exact.
  for (const auto& [dtype, one] :
       {std::pair{DType::kBF16, uint16_t{0x3F80}}, {DType::kF16, uint16_t{0x3C00}}}) {
    std::vector<uint16_t> halves(1000, one);
    const HostSpan span{halves.data(), halves.size()};
    ASSERT_TRUE(all.transport->all_reduce({&span, 1}, dtype, Reduction::kSum));
    uint16_t expected = one;
    const void* input = &one;
    void* output = &expected;
    const std::vector<const void*> inputs(static_cast<size_t>(all.processes->count()), input);
    collectives::reduce(dtype, Reduction::kSum, inputs, {&output, 1}, 1);
    EXPECT_EQ(halves, std::vector<uint16_t>(1000, expected));
  }
}

SLUICE_PART(Gathers) {
  Connected all;
  const auto parts = all.transport->exchange(base::str("process ", all.processes->index()));
  ASSERT_TRUE(parts) << parts.error().what();
  for (int p = 0; p < all.processes->count(); ++p) {
    EXPECT_EQ((*parts)[static_cast<size_t>(p)], base::str("process ", p));
  }
}

TEST(Transport, HowLongACollectiveWaits) {
  ::unsetenv("SLUICE_COLLECTIVE_TIMEOUT");
  EXPECT_EQ(collective_timeout(), std::chrono::minutes(30));
  for (const auto& [text, expected] : {std::pair("60", 60'000),
                                       {"0.5", 500},
                                       {"0", 1'800'000},
                                       {"-1", 1'800'000},
                                       {"soon", 1'800'000},
                                       {"5s", 1'800'000}}) {
    ::setenv("SLUICE_COLLECTIVE_TIMEOUT", text, 1);
    EXPECT_EQ(collective_timeout(), std::chrono::milliseconds(expected)) << text;
  }
  ::unsetenv("SLUICE_COLLECTIVE_TIMEOUT");
}

TEST(SocketTransport, Values) {
  run_part("Values", 1);
  run_part("Values", 2);
  run_part("Values", 4);
  run_part("Gathers", 4);
}

TEST(SocketTransport, ValuesByIpv6) {
  if (!listen_at("::1", 0, true)) GTEST_SKIP() << "this machine has no IPv6";
  run_part("Values", 3, {}, {}, "::1");
}

// Two replicas in each process, through a program on XLA's CPU plugin.
pjrt::testing::Prepared prepare_program(Connected& all, pjrt::Client& client, int64_t site) {
  auto& host = collectives::HostCollectives::get();
  base::value_or_throw(host.install(*client.plugin()));
  collectives::HostCollectivesConfig config;
  config.device_ids = {0, 1};
  config.process_index = all.processes->index();
  config.processes = all.processes->count();
  config.transport = all.transport;
  base::value_or_throw(host.configure(config));
  const pjrt::testing::Types types = {pjrt::testing::f32({40'000}), pjrt::testing::f32({3})};
  std::vector<pjrt::testing::Arrays> arguments;
  for (int r = 0; r < 2; ++r) {
    const auto number = static_cast<float>(1 << (2 * all.processes->index() + r));
    arguments.push_back({pjrt::testing::bytes_of(std::vector<float>(40'000, number)),
                         pjrt::testing::bytes_of(std::vector<float>(3, number))});
  }
  const pjrt::testing::CollectiveText call = {
      .attributes = base::str("op = \"sum\", program = 5 : i64, site =  ", site, " : i64")};
  return pjrt::testing::prepare(client, pjrt::testing::collective_program(types, types, call), types,
                                arguments);
}

SLUICE_PART(Programs) {
  Connected all;
  const auto client = pjrt::testing::cpu_client(2);
  auto run = prepare_program(all, *client, 0);
  const float expected = static_cast<float>((1 << (2 * all.processes->count())) - 1);
  for (int i = 0; i < 20; ++i) {
    for (const auto& replica : pjrt::testing::results_of(base::value_or_throw(run.launch()))) {
      EXPECT_EQ(pjrt::testing::numbers_of<float>(replica[0]), std::vector<float>(40'000, expected));
      EXPECT_EQ(pjrt::testing::numbers_of<float>(replica[1]), std::vector<float>(3, expected));
    }
  }
}

TEST(SocketTransport, ProgramsOfTwoReplicas) {
  run_part("Programs", 2);
  run_part("Programs", 4);
}

SLUICE_PART(DifferentPrograms) {
  Connected all;
  const auto client = pjrt::testing::cpu_client(2);
  auto run = prepare_program(all, *client, all.processes->index());
  for (const std::string& error : pjrt::testing::errors_of(base::value_or_throw(run.launch()))) {
    EXPECT_THAT(error,
                AllOf(HasSubstr("process 0 is at sluice_all_reduce at site 0 of program 0000000000000005"),
                      HasSubstr("process 1 is at sluice_all_reduce at site 1")));
  }
}

TEST(SocketTransport, DifferentProgramsAreNamedInBothProcesses) { run_part("DifferentPrograms", 2); }

// Goes on until the others are gone: process 1 is killed in the middle.
SLUICE_PART(Killed) {
  Connected all;
  std::vector<float> numbers(100'000, 1);
  const HostSpan span{numbers.data(), numbers.size()};
  for (int i = 0;; ++i) {
    const auto status = all.transport->all_reduce({&span, 1}, DType::kF32, Reduction::kSum);
    if (!status) {
      EXPECT_EQ(status.error().code(), Code::kUnavailable);
      EXPECT_THAT(status.error().what(), HasSubstr("lost process 1 of"));
      std::cout << "error: " << status.error().what() << std::endl;
      const auto again = all.transport->all_reduce({&span, 1}, DType::kF32, Reduction::kSum);
      EXPECT_FALSE(again);
      return;
    }
    if (i == 20) std::cout << "under way" << std::endl;
  }
}

TEST(SocketTransport, AKilledProcessIsNamed) {
  for (int processes : {2, 4}) {
    run_part("Killed", processes, {1}, [](testing::Members& members) {
      EXPECT_TRUE(testing::wait_until([&] { return members[1]->has_said("under way"); }));
      members[1]->kill();
      const auto start = std::chrono::steady_clock::now();
      testing::wait_until([&] { return members[0]->has_said("error:") || members[0]->ended(); });
      const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - start;
      RecordProperty("seconds_until_the_error", base::str(waited.count()));
      std::cout << "error after " << waited.count() << " s" << std::endl;
    });
  }
}

// One that is stopped closes no connection: only its pulse stands still. Gone on, it too learns that it was
// lost.
void until_lost(collectives::Transport& transport) {
  std::vector<float> numbers(5'000'000, 1);
  const HostSpan span{numbers.data(), numbers.size()};
  base::Status status;
  for (int i = 0; status; ++i) {
    status = transport.all_reduce({&span, 1}, DType::kF32, Reduction::kSum);
    if (i == 3) std::cout << "under way" << std::endl;
  }
  std::cout << "error: " << status.error().what() << std::endl;
  EXPECT_FALSE(transport.exchange("x"));
}

SLUICE_PART(StoppedSockets) {
  const auto processes =
      base::value_or_throw(Processes::join(my_placement(), {.lost = std::chrono::seconds(5)}));
  until_lost(*base::value_or_throw(make_socket_transport(processes)));
}

SLUICE_PART(StoppedShared) {
  const auto processes =
      base::value_or_throw(Processes::join(my_placement(), {.lost = std::chrono::seconds(5)}));
  until_lost(*base::value_or_throw(make_transport(processes)));
}

TEST(Transport, AStoppedProcessIsNamed) {
  for (int stopped : {1, 0}) {
    testing::run_and_stop("StoppedSockets", 3, stopped);
    testing::run_and_stop("StoppedShared", 3, stopped);
  }
}

// One that stops of its own accord says why.
SLUICE_PART(Stops) {
  Connected all;
  if (all.processes->index() == 1) {
    all.transport->abort("replica 3 did not come");
    return;
  }
  std::vector<float> numbers(100, 1);
  const HostSpan span{numbers.data(), numbers.size()};
  const auto status = all.transport->all_reduce({&span, 1}, DType::kF32, Reduction::kSum);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().what(), HasSubstr("another process ended: process 1: replica 3 did not come"));
}

TEST(SocketTransport, OneThatStopsSaysWhy) { run_part("Stops", 3); }

}  // namespace transport_testing
}  // namespace sluice::replica
