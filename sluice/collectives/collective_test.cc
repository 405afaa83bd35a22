// Collectives of several processes, which are threads here, over a transport in memory.
#include "sluice/collectives/collective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <barrier>
#include <cstring>
#include <functional>
#include <thread>

namespace sluice::collectives {
namespace {

using stablehlo::DType;
using ::testing::AllOf;
using ::testing::HasSubstr;

// What the processes of a test share.
struct Meeting {
  explicit Meeting(int processes) : texts(processes), memory(processes), together(processes) {}
  std::vector<std::string> texts;
  std::vector<void*> memory;
  std::barrier<> together;
};

class MemoryTransport : public Transport {
 public:
  MemoryTransport(Meeting& meeting, int index) : meeting_(meeting), index_(static_cast<size_t>(index)) {}

  base::Result<std::vector<std::string>> exchange(std::string_view bytes) override {
    meeting_.texts[index_] = bytes;
    meeting_.together.arrive_and_wait();
    const std::vector<std::string> all = meeting_.texts;
    meeting_.together.arrive_and_wait();
    return all;
  }
  base::Status all_reduce(std::span<const HostSpan> spans, DType dtype, Reduction reduction) override {
    if (fails) return base::fail(Code::kUnavailable, "the wire is cut");
    for (const HostSpan& span : spans) {
      if (span.elements == 0) continue;
      meeting_.memory[index_] = span.data;
      meeting_.together.arrive_and_wait();
      std::vector<const void*> inputs(meeting_.memory.begin(), meeting_.memory.end());
      std::vector<char> made(span.elements * stablehlo::dtype_size(dtype));
      void* output = made.data();
      reduce(dtype, reduction, inputs, {&output, 1}, span.elements);
      meeting_.together.arrive_and_wait();
      std::memcpy(span.data, made.data(), made.size());
      meeting_.together.arrive_and_wait();
    }
    return {};
  }
  base::Status all_gather(void* all, size_t bytes) override {
    meeting_.memory[index_] = all;
    meeting_.together.arrive_and_wait();
    for (size_t p = 0; p < meeting_.memory.size(); ++p) {
      if (p == index_) continue;
      std::memcpy(static_cast<char*>(all) + p * bytes, static_cast<char*>(meeting_.memory[p]) + p * bytes,
                  bytes);
    }
    meeting_.together.arrive_and_wait();
    return {};
  }
  void abort(const std::string&) override {}

  bool fails = false;

 private:
  Meeting& meeting_;
  const size_t index_;
};

// P processes of R replicas; operands[replica][i] are f32 with these many elements each.
struct Scenario {
  Scenario(int processes, int replicas, std::vector<int64_t> sizes = {3}, bool in_place = false)
      : processes(processes), replicas(replicas), sizes(std::move(sizes)), in_place(in_place) {}

  const int processes, replicas;
  const std::vector<int64_t> sizes;
  const bool in_place;
  Contribution like;
  std::function<void(int process, Contribution&, MemoryTransport&)> change = [](int, Contribution&,
                                                                                MemoryTransport&) {};

  static float value(size_t replica, size_t operand, size_t k) {
    return static_cast<float>((replica + 1) * 100 + operand * 10 + k % 7);
  }

  std::vector<std::string> errors;                      // by global replica
  std::vector<std::vector<std::vector<float>>> values;  // by global replica and operand

  void go() {
    const auto total = static_cast<size_t>(processes * replicas);
    const bool gathers = like.kind == Contribution::Kind::kAllGather;
    std::vector<std::vector<std::vector<float>>> inputs(total);
    values.assign(total, {});
    errors.assign(total, "");
    dims_.clear();
    for (int64_t size : sizes) {
      dims_.push_back({size});
      gathered_dims_.push_back({static_cast<int64_t>(total), size});
    }
    std::vector<Contribution> calls(total, like);
    for (size_t r = 0; r < total; ++r) {
      for (size_t i = 0; i < sizes.size(); ++i) {
        const auto n = static_cast<size_t>(sizes[i]);
        inputs[r].emplace_back(n);
        for (size_t k = 0; k < n; ++k) inputs[r][i][k] = value(r, i, k);
        values[r].emplace_back(gathers ? n * total : n);
      }
      for (size_t i = 0; i < sizes.size(); ++i) {
        if (in_place) values[r][i] = inputs[r][i];
        calls[r].operands.push_back(
            {DType::kF32, dims_[i], in_place ? values[r][i].data() : inputs[r][i].data()});
        calls[r].results.push_back(
            {DType::kF32, gathers ? gathered_dims_[i] : dims_[i], values[r][i].data()});
      }
    }
    run_threads(calls);
  }

 private:
  void run_threads(std::vector<Contribution>& calls) {
    Meeting meeting(processes);
    std::vector<std::unique_ptr<Collective>> collectives;
    for (int p = 0; p < processes; ++p) {
      auto transport = std::make_shared<MemoryTransport>(meeting, p);
      std::vector<const Contribution*> mine;
      for (int r = 0; r < replicas; ++r) {
        Contribution& call = calls[static_cast<size_t>(p * replicas + r)];
        change(p, call, *transport);
        mine.push_back(&call);
      }
      collectives.push_back(std::make_unique<Collective>(mine, CollectiveWorld{p, processes, transport}, 0));
      const auto fits = collectives.back()->check();
      ASSERT_TRUE(fits) << fits.error().what();
    }
    std::vector<std::thread> threads;
    for (size_t g = 0; g < calls.size(); ++g) {
      threads.emplace_back([&, g] {
        const auto local = static_cast<size_t>(replicas);
        const base::Status status = collectives[g / local]->run(g % local);
        if (!status) errors[g] = status.error().what();
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  std::vector<std::vector<int64_t>> dims_, gathered_dims_;
};

void expect_sums(const Scenario& run, const std::function<std::vector<size_t>(size_t replica)>& members) {
  for (size_t r = 0; r < run.values.size(); ++r) {
    EXPECT_EQ(run.errors[r], "");
    for (size_t i = 0; i < run.sizes.size(); ++i) {
      for (size_t k = 0; k < run.values[r][i].size(); ++k) {
        float expected = 0;
        for (size_t member : members(r)) expected += Scenario::value(member, i, k);
        ASSERT_EQ(run.values[r][i][k], expected) << "replica " << r << ", result " << i << ", element " << k;
      }
    }
  }
}

std::vector<size_t> first_n(size_t n) {
  std::vector<size_t> all(n);
  for (size_t i = 0; i < n; ++i) all[i] = i;
  return all;
}

TEST(Collective, SumsOverProcessesAndReplicas) {
  for (const auto& [processes, replicas] : {std::pair{1, 1}, {1, 4}, {2, 1}, {2, 2}, {4, 1}, {3, 2}}) {
    for (bool in_place : {false, true}) {
      Scenario run(processes, replicas, {3, 0, 70'000, 1}, in_place);
      run.go();
      expect_sums(run, [&](size_t) { return first_n(static_cast<size_t>(processes * replicas)); });
    }
  }
}

TEST(Collective, GathersInTheOrderOfTheReplicas) {
  for (const auto& [processes, replicas] : {std::pair{1, 3}, {2, 1}, {2, 2}, {3, 2}}) {
    Scenario run(processes, replicas, {5, 40'000});
    run.like.kind = Contribution::Kind::kAllGather;
    run.go();
    const auto total = static_cast<size_t>(processes * replicas);
    for (size_t r = 0; r < total; ++r) {
      EXPECT_EQ(run.errors[r], "");
      for (size_t i = 0; i < run.sizes.size(); ++i) {
        const auto n = static_cast<size_t>(run.sizes[i]);
        for (size_t k = 0; k < n * total; ++k)
          ASSERT_EQ(run.values[r][i][k], Scenario::value(k / n, i, k % n));
      }
    }
  }
}

TEST(Collective, GroupsInsideAProcess) {
  Scenario run(2, 4, {6, 20'000}, true);
  run.like.groups = {0, 2, 1, 3, 4, 6, 5, 7};
  run.like.group_size = 2;
  run.go();
  expect_sums(run, [](size_t r) { return std::vector<size_t>{r & ~size_t{2}, r | 2}; });
}

TEST(Collective, GroupsAcrossProcesses) {
  Scenario run(2, 2, {6, 20'000}, true);
  run.like.groups = {0, 3, 1, 2};
  run.like.group_size = 2;
  run.go();
  expect_sums(run, [](size_t r) { return std::vector<size_t>{r, 3 - r}; });
}

TEST(Collective, DifferentProgramsAreAnErrorEverywhere) {
  Scenario run(2, 2);
  run.change = [](int process, Contribution& call, MemoryTransport&) {
    call.program = 0xABC;
    call.site = process == 0 ? 1 : 4;
  };
  run.go();
  for (const std::string& error : run.errors) {
    EXPECT_THAT(error,
                AllOf(HasSubstr("the processes run different programs: process 0 is at sluice_all_reduce "
                                "at site 1 of program 0000000000000abc (1 operands, 12 bytes), process 1 is "
                                "at sluice_all_reduce at site 4 of program 0000000000000abc"),
                      HasSubstr("do the same in all")));
  }
}

TEST(Collective, AFailingTransportFailsAllReplicas) {
  Scenario run(2, 3);
  run.change = [](int, Contribution&, MemoryTransport& transport) { transport.fails = true; };
  run.go();
  for (const std::string& error : run.errors) EXPECT_THAT(error, HasSubstr("the wire is cut"));
}

}  // namespace
}  // namespace sluice::collectives
