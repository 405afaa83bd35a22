#include <gmock/gmock.h>

#include <set>
#include <string>

#include "sluice/ops/row.h"
#include "sluice/ops/row_types.h"

namespace sluice::ops {
namespace {

TEST(Table, NamesAreUniqueAndFound) {
  std::set<std::string_view> names;
  for (const Row& row : rows()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name << " is there twice";
    EXPECT_EQ(find_row(row.name), &row);
    EXPECT_NE(row.emit, nullptr) << row.name;
  }
  EXPECT_GT(names.size(), 300u);
}

TEST(Table, UnknownNamesHaveNoRow) {
  EXPECT_EQ(find_row("aten::add"), nullptr);
  EXPECT_EQ(find_row(""), nullptr);
}

TEST(Table, WhatTakesComplexNumbersIsARow) {
  for (std::string_view name : names_of_complex_rows()) {
    const Row* row = find_row(name);
    ASSERT_NE(row, nullptr) << name;
    EXPECT_TRUE(takes_complex(*row)) << name;
  }
  EXPECT_FALSE(takes_complex(*find_row("aten::relu")));
}

TEST(Table, WhatTakesFloat8IsARow) {
  for (std::string_view name : names_of_float8_rows()) {
    const Row* row = find_row(name);
    ASSERT_NE(row, nullptr) << name;
    EXPECT_TRUE(takes_float8(*row)) << name;
  }
  EXPECT_FALSE(takes_float8(*find_row("aten::add.Tensor")));
}

// Rows are matched by the names of functional operations: base names without the underscore of the in-place
// form.
TEST(Table, NamesAreThoseOfFunctionalOperations) {
  for (const Row& row : rows()) {
    const std::string name(row.name);
    const size_t colons = name.find("::");
    ASSERT_NE(colons, std::string::npos) << name;
    const std::string base = name.substr(colons + 2, name.find('.', colons) - colons - 2);
    const bool dunder = base.rfind("__", 0) == 0;
    EXPECT_TRUE(dunder || base.back() != '_') << name;
    EXPECT_TRUE(base.find(' ') == std::string::npos) << name;
  }
}

}  // namespace
}  // namespace sluice::ops
