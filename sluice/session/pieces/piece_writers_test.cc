// How the bytes of a checkpoint are divided among the processes that write it.
#include "sluice/session/pieces/piece_writers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "sluice/session/pieces/piece_index.h"

namespace sluice::sessions {
namespace {

using Sizes = std::vector<int64_t>;

int64_t elements(const Sizes& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

std::vector<int> all_of(int processes) {
  std::vector<int> all(static_cast<size_t>(processes));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// A value that is whole on every device.
device::Blocks whole(const Sizes& sizes, int processes) {
  return {nullptr, at::kFloat, sizes, {{Sizes(sizes.size(), 0), sizes, all_of(processes)}}};
}

// A value whose rows lie over the processes.
device::Blocks in_rows(const Sizes& sizes, int processes) {
  device::Blocks value{nullptr, at::kFloat, sizes, {}};
  for (int p = 0; p < processes; ++p) {
    device::BlockPlace place{Sizes(sizes.size(), 0), sizes, {p}};
    place.sizes[0] /= processes;
    place.start[0] = p * place.sizes[0];
    value.places.push_back(place);
  }
  return value;
}

// A value whose columns lie over two devices, in each process.
device::Blocks in_columns(const Sizes& sizes, int processes) {
  const Sizes half{sizes[0], sizes[1] / 2};
  return {nullptr,
          at::kFloat,
          sizes,
          {{{0, 0}, half, all_of(processes)}, {{0, sizes[1] / 2}, half, all_of(processes)}}};
}

// Checks that the pieces of each value form its grid, and returns the bytes of each process.
std::vector<int64_t> bytes_of_each(const std::vector<device::Blocks>& values, int processes) {
  std::vector<int64_t> bytes(static_cast<size_t>(processes), 0);
  const auto pieces = divide_among(values, processes);
  PieceIndex index{"save", {}};
  for (size_t i = 0; i < values.size(); ++i) {
    const std::string name = "v" + std::to_string(i);
    PiecedTensor& tensor = index.tensors[name];
    tensor.type = values[i].type;
    tensor.sizes = values[i].sizes;
    for (const WrittenPiece& piece : pieces[i]) {
      const auto& holders = values[i].places[piece.block].processes;
      EXPECT_NE(std::find(holders.begin(), holders.end(), piece.process), holders.end()) << name;
      bytes[static_cast<size_t>(piece.process)] += 4 * elements(piece.sizes);
      tensor.pieces.push_back({piece_name(name, piece.start, piece.sizes, tensor.sizes), piece.start,
                               piece.sizes, part_name(kModel, piece.process, processes)});
    }
  }
  const auto parsed = parse_index(index_text(index).value(), "index");
  EXPECT_TRUE(parsed) << parsed.error().what();
  return bytes;
}

void expect_even(const std::vector<device::Blocks>& values, int processes) {
  const std::vector<int64_t> bytes = bytes_of_each(values, processes);
  const int64_t mean = std::accumulate(bytes.begin(), bytes.end(), int64_t{0}) / processes;
  for (const int64_t one : bytes) EXPECT_NEAR(one, mean, 0.2 * mean) << processes << " processes";
}

TEST(PieceWriters, SmallWholeValuesAreSharedOut) {
  for (const int processes : {2, 3, 4, 8}) {
    std::vector<device::Blocks> values;
    for (int i = 0; i < 50; ++i) values.push_back(whole({64 + i}, processes));
    expect_even(values, processes);
  }
}

TEST(PieceWriters, OneLargeWholeValueIsCut) {
  for (const int processes : {2, 3, 4, 7}) {
    expect_even({whole({100, 30}, processes), whole({30}, processes), whole({}, processes)}, processes);
    expect_even({whole({1, 3000}, processes), in_rows({processes * 4, 6}, processes)}, processes);
  }
}

TEST(PieceWriters, BlocksThatEveryProcessHoldsAreCutAlike) {
  for (const int processes : {2, 3, 4})
    expect_even({in_columns({64, 256}, processes), in_columns({20, 8}, processes), whole({8}, processes)},
                processes);
}

// Process 0 alone has a value, so the others write more of what they share.
TEST(PieceWriters, SharedValuesMakeUpForOthers) {
  const device::Blocks of_leader{nullptr, at::kFloat, {900}, {{{0}, {900}, {0}}}};
  expect_even({of_leader, whole({40, 40}, 2), whole({40, 40}, 2), whole({7}, 2)}, 2);
}

TEST(PieceWriters, AValueOfOneProcessIsOnePiece) {
  const auto pieces = divide_among({in_rows({6, 2}, 3)}, 3);
  ASSERT_EQ(pieces.size(), 1U);
  ASSERT_EQ(pieces[0].size(), 3U);
  for (int p = 0; p < 3; ++p) {
    EXPECT_EQ(pieces[0][static_cast<size_t>(p)].process, p);
    EXPECT_EQ(pieces[0][static_cast<size_t>(p)].start, (Sizes{p * 2, 0}));
  }
  EXPECT_TRUE(divide_among({}, 3).empty());
  EXPECT_EQ(bytes_of_each({whole({0, 4}, 2)}, 2), (std::vector<int64_t>{0, 0}));
}

}  // namespace
}  // namespace sluice::sessions
