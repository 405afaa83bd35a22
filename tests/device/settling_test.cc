// Loops whose programs settle: how many programs random rows, crops and writes may need. And what is said
// where a loop needs more and more of them.
#include <random>

#include "tests/device/dumped_programs.h"
#include "tests/device/support.h"

namespace sluice::tests {
namespace {

using torch::Tensor;

// A loop's random numbers, the same on every device.
class Dice {
 public:
  explicit Dice(uint64_t seed) : engine_(seed) {}
  int64_t below(int64_t n) { return static_cast<int64_t>(engine_() % static_cast<uint64_t>(n)); }

 private:
  std::mt19937_64 engine_;
};

// One step of a loop over a data set: gives what the step computed.
using Step = std::function<Tensor(const Tensor& data, int64_t count, Dice& dice)>;

Tensor stacked(const Tensor& data, int64_t count, Dice& dice) {
  std::vector<Tensor> rows;
  for (int64_t i = 0; i < count; ++i) rows.push_back(data[dice.below(data.size(0))]);
  return torch::stack(rows) * 2;
}

Tensor written_in_order(const Tensor& data, int64_t count, Dice& dice) {
  Tensor batch = torch::zeros({count, data.size(1), data.size(2)}, data.options());
  for (int64_t i = 0; i < count; ++i) batch[i] = data[dice.below(data.size(0))];
  return batch + 1;
}

Tensor written_anywhere(const Tensor& data, int64_t count, Dice& dice) {
  Tensor batch = torch::zeros({count, data.size(1), data.size(2)}, data.options());
  for (int64_t i = 0; i < count; ++i) batch[dice.below(count)] = data[dice.below(data.size(0))];
  return batch + 1;
}

Tensor added_to(const Tensor& data, int64_t count, Dice& dice) {
  for (int64_t i = 0; i < count; ++i) data[dice.below(data.size(0))].add_(1);
  return data.sum(0);
}

Tensor cropped(const Tensor& data, int64_t count, Dice& dice) {
  std::vector<Tensor> crops;
  for (int64_t i = 0; i < count; ++i) {
    const Tensor image = data[dice.below(data.size(0))];
    crops.push_back(
        image.narrow(0, dice.below(2), image.size(0) - 1).slice(1, dice.below(3), image.size(1) - 2));
    crops.back() = crops.back().narrow(1, 0, 1);
  }
  return torch::stack(crops) * 3;
}

Tensor read_on_the_host(const Tensor& data, int64_t count, Dice& dice) {
  Tensor sum = torch::zeros({data.size(1), data.size(2)});
  for (int64_t i = 0; i < count; ++i) sum += data[dice.below(data.size(0))].cpu();
  return sum;
}

// What the steps compute, and how many programs they made.
struct Ran {
  std::vector<Tensor> results;
  int64_t programs = 0;
};
Ran ran(const Step& step, Tensor data, int64_t count, uint64_t seed) {
  Ran found;
  Dice dice(seed);
  const int64_t before = on_cpu() ? 0 : counters().programs;
  for (int i = 0; i < 24; ++i) {
    found.results.push_back(step(data, count, dice));
    if (data.is_xla()) sync("step");
  }
  if (!on_cpu()) found.programs = counters().programs - before;
  return found;
}

void expect_two_programs(const char* name, const Step& step) {
  const torch::Device device = test_device();
  // Values of its own shape each time: what is known of one says nothing of the next.
  static int64_t width = 3;
  int64_t max_programs = 0;
  for (uint64_t seed = 0; seed < static_cast<uint64_t>(rounds(2)); ++seed) {
    for (const int64_t rows : {2, 3, 7, 200}) {
      for (const int64_t count : {1, 2, 5}) {
        const Tensor data = ramp({rows, 4, ++width});
        const std::string where = c10::str(name, ", seed ", seed, ", ", count, " of ", rows, " rows");
        const Ran expected = ran(step, data.clone(), count, seed),
                  found = ran(step, data.to(device), count, seed);
        for (size_t i = 0; i < found.results.size(); ++i)
          expect_same(found.results[i], expected.results[i], 1e-5, c10::str(where, ", step ", i));
        EXPECT_LE(found.programs, 2) << where;
        max_programs = std::max(max_programs, found.programs);
      }
    }
  }
  EXPECT_EQ(max_programs, on_cpu() ? 0 : 2) << name;
}

TEST(RandomRows, Stacked) { expect_two_programs("stacked", stacked); }
TEST(RandomRows, WrittenInOrder) { expect_two_programs("written in order", written_in_order); }
TEST(RandomRows, WrittenAnywhere) { expect_two_programs("written anywhere", written_anywhere); }
TEST(RandomRows, AddedTo) { expect_two_programs("added to", added_to); }
TEST(RandomRows, Cropped) { expect_two_programs("cropped", cropped); }
TEST(RandomRows, ReadOnTheHost) { expect_two_programs("read on the host", read_on_the_host); }

constexpr const char* kMovingSlice = "stablehlo.dynamic_slice";

TEST(Places, ThatNeverMoveStayConstants) {
  if (on_cpu()) GTEST_SKIP();
  const DumpedPrograms programs;
  const torch::Device device = test_device();
  const Tensor data = ramp({50, 12}).to(device), weight = ramp({12, 36}).to(device);
  Dice dice(4);
  for (int i = 0; i < 12; ++i) {
    const Tensor rows = torch::stack({data[dice.below(50)], data[dice.below(50)]});
    const std::vector<Tensor> parts = rows.mm(weight).chunk(3, 1);
    const Tensor y = parts[0] * parts[1] + parts[2];
    sync("step");
  }
  const auto all = programs.all();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(calls_of(kMovingSlice, all[0]), 0);
  EXPECT_EQ(calls_of(kMovingSlice, all[1]), 2);
}

TEST(Places, OfATrainingStayWhenItsTestHasOthers) {
  if (on_cpu()) GTEST_SKIP();
  const DumpedPrograms programs;
  const Tensor data = ramp({50, 5}).to(test_device());
  const auto step = [&](int64_t row) {
    const Tensor y = data[row].exp();
    sync("step");
  };
  for (int i = 0; i < 12; ++i) step(3);
  for (int i = 0; i < 4; ++i) step(20 + i);
  for (int i = 0; i < 3; ++i) step(3);
  const auto all = programs.all();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(calls_of(kMovingSlice, all[0]), 0);
  EXPECT_EQ(calls_of(kMovingSlice, all[1]), 1);
}

}  // namespace
}  // namespace sluice::tests
