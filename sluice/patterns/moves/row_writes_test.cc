// Writes of many rows: how many operations remain. tests/device compares their values with LibTorch's.
#include <gtest/gtest.h>

#include <array>
#include <functional>

#include "sluice/patterns/patterns.h"
#include "sluice/patterns/testing/counting.h"

namespace sluice::patterns {
namespace {

using stablehlo::Builder;
using stablehlo::Dims;
using stablehlo::DType;
using stablehlo::Type;
using stablehlo::Value;
using stablehlo::Values;

size_t writes_in(const std::string& text) { return times_in(text, "\"stablehlo.dynamic_update_slice\""); }
size_t joined_in(const std::string& text) { return times_in(text, "\"stablehlo.concatenate\""); }
size_t operations_in(const std::string& text) {
  return times_in(text, "\"stablehlo.") - times_in(text, "\"stablehlo.constant\"");
}

std::string program_text(const std::function<Values(Builder&)>& program) {
  Builder b;
  const Values results = rewrite(b, program(b), {}, nullptr);
  return b.finish(results, {});
}

// A tensor [rows, 4] that is written as the device writes it: row by row in its flat form (ops/view.cc).
struct WrittenTensor {
  Builder& b;
  Value value;
  WrittenTensor(Builder& builder, int64_t rows) : b(builder), value(b.parameter({DType::kF32, {rows, 4}})) {}
  Value flat() { return b.reshape(value, {value.type().numel()}); }
  void write(int64_t row, Value elements) {
    const Value start = b.splat(row * 4, Type{DType::kS64, {}});
    value = b.reshape(b.dynamic_update_slice(flat(), elements, std::array{start}), value.dims());
  }
  Value read(int64_t row) { return b.slice_dim(flat(), 0, row * 4, row * 4 + 4); }
};

Value new_row(Builder& b) { return b.parameter({DType::kF32, {4}}); }

TEST(RowWrites, OfAllRowsBecomeOneConcatenation) {
  for (const int64_t n : {16, 100, 1000}) {
    const std::string text = program_text([&](Builder& b) {
      WrittenTensor x(b, n);
      for (int64_t i = 0; i < n; ++i) x.write(i * 7 % n, new_row(b));
      for (int64_t i = 0; i < n; ++i) x.write(i, new_row(b));
      return Values{x.value};
    });
    EXPECT_EQ(writes_in(text), 0u) << n;
    EXPECT_EQ(joined_in(text), 1u) << n;
    EXPECT_EQ(operations_in(text), 2u) << n << ": and a reshape";
  }
}

TEST(RowWrites, AFewStayAsTheyAre) {
  const std::string text = program_text([](Builder& b) {
    WrittenTensor x(b, 100);
    for (int64_t i = 0; i < 15; ++i) x.write(i, new_row(b));
    return Values{x.value};
  });
  EXPECT_EQ(writes_in(text), 15u);
}

TEST(RowWrites, EachRunOfNeighboursIsOneWrite) {
  const std::string text = program_text([](Builder& b) {
    WrittenTensor x(b, 1000);
    for (int64_t i = 0; i < 100; ++i) x.write(300 + i, new_row(b));
    for (int64_t i = 99; i >= 0; --i) x.write(600 + i, new_row(b));
    return Values{x.value};
  });
  EXPECT_EQ(writes_in(text), 2u);
  EXPECT_EQ(joined_in(text), 2u);
}

TEST(RowWrites, ManyRunsAreJoinedWithWhatLiesBetweenThem) {
  for (const int64_t n : {100, 1000}) {
    const std::string text = program_text([&](Builder& b) {
      WrittenTensor x(b, 2 * n);
      for (int64_t i = 0; i < n; ++i) x.write(2 * i, new_row(b));
      return Values{x.value};
    });
    EXPECT_EQ(writes_in(text), 0u);
    EXPECT_EQ(joined_in(text), 1u);
    EXPECT_EQ(operations_in(text), static_cast<size_t>(n + 3));  // n slices, two reshapes
  }
}

TEST(RowWrites, OfTwoTensorsInTurns) {
  const std::string text = program_text([](Builder& b) {
    WrittenTensor x(b, 500), y(b, 500);
    for (int64_t i = 0; i < 500; ++i) {
      x.write(i, new_row(b));
      y.write(i * 7 % 500, new_row(b));
    }
    return Values{x.value, y.value};
  });
  EXPECT_EQ(writes_in(text), 0u);
  EXPECT_EQ(joined_in(text), 2u);
}

// Row i is made of row i / 2, which was written before; row 0 of what was there.
TEST(RowWrites, SlicesBetweenThemReadWhatWasWritten) {
  for (const int64_t n : {100, 1000}) {
    const std::string text = program_text([&](Builder& b) {
      WrittenTensor x(b, n);
      for (int64_t i = 0; i < n; ++i) x.write(i, i % 3 == 0 ? b.tanh(x.read(i / 2)) : b.exp(x.read(i / 2)));
      return Values{x.value};
    });
    EXPECT_EQ(writes_in(text), 0u);
    EXPECT_EQ(joined_in(text), 1u);
    EXPECT_EQ(times_in(text, "\"stablehlo.slice\""), 1u);
    EXPECT_EQ(operations_in(text), static_cast<size_t>(n + 4));  // and two reshapes
  }
}

// A row that is written again is read as it was at the time.
TEST(RowWrites, SlicesReadTheLatestWriteBeforeThem) {
  const std::string text = program_text([](Builder& b) {
    WrittenTensor x(b, 20);
    Values read = {x.read(3)};
    for (int round = 0; round < 2; ++round) {
      for (int64_t i = 0; i < 20; ++i) x.write(i, round == 0 ? b.tanh(new_row(b)) : b.exp(new_row(b)));
      read.push_back(x.read(3));
    }
    return Values{read[0], read[1], read[2]};
  });
  EXPECT_EQ(writes_in(text), 0u) << text;
  EXPECT_EQ(operations_in(text), 4u) << text;  // a reshape, a slice, tanh and exp
  const size_t tanh = text.find("\"stablehlo.tanh\""), exp = text.find("\"stablehlo.exponential\"");
  ASSERT_NE(tanh, std::string::npos);
  EXPECT_LT(tanh, exp);
}

TEST(RowWrites, ReadingTheWholeParts) {
  const std::string text = program_text([](Builder& b) {
    WrittenTensor x(b, 40);
    for (int64_t i = 0; i < 20; ++i) x.write(i, new_row(b));
    const Value whole = b.tanh(x.value);
    for (int64_t i = 20; i < 40; ++i) x.write(i, new_row(b));
    return Values{whole, x.value};
  });
  EXPECT_EQ(writes_in(text), 2u);
  EXPECT_EQ(joined_in(text), 2u);
}

TEST(RowWrites, PartsThatOverlapAreCut) {
  const std::string text = program_text([](Builder& b) {
    Value x = b.parameter({DType::kF32, {3, 64}});
    for (int64_t i = 0; i < 31; ++i) {
      const Type number{DType::kS64, {}};
      const Value starts[] = {b.splat(0, number), b.splat(2 * i, number)};
      x = b.dynamic_update_slice(x, b.parameter({DType::kF32, {3, 4}}), starts);
    }
    return Values{x};
  });
  EXPECT_EQ(writes_in(text), 0u);
  EXPECT_EQ(joined_in(text), 1u);
  EXPECT_EQ(times_in(text, "\"stablehlo.slice\""), 30u);  // the last one is whole
}

// Equal rounds are a loop, and nothing is left to join.
TEST(RowWrites, OfEqualRoundsAreALoop) {
  const auto loop_text = [](int64_t n) {
    Builder b;
    WrittenTensor x(b, n), y(b, n);
    for (int64_t i = 0; i < n; ++i) {
      x.write(i, b.tanh(y.read(n - 1 - i)));
      y.write(n - 1 - i, b.exp(x.read(i)));
    }
    const Values results = rewrite(b, {x.value, y.value}, {}, nullptr, nullptr, kLongLoops);
    return b.finish(results, {});
  };
  for (const int64_t n : {100, 500}) {
    const std::string text = loop_text(n);
    EXPECT_EQ(times_in(text, "\"stablehlo.while\""), 1u) << n;
    EXPECT_EQ(times_in(text, "\"stablehlo.tanh\""), 1u) << n;
    EXPECT_EQ(operations_in(text), operations_in(loop_text(50))) << n;
  }
}

TEST(RowWrites, AtRunTimePlacesStay) {
  const std::string text = program_text([](Builder& b) {
    const Value place = b.parameter({DType::kS64, {}});
    Value x = b.parameter({DType::kF32, {64}});
    for (int64_t i = 0; i < 20; ++i)
      x = b.dynamic_update_slice(x, b.parameter({DType::kF32, {1}}), std::array{place});
    return Values{x};
  });
  EXPECT_EQ(writes_in(text), 20u);
}

}  // namespace
}  // namespace sluice::patterns
