#include "sluice/base/text/table.h"

#include <gtest/gtest.h>

namespace sluice::base {
namespace {

TEST(Table, ACellIsOneLineThatATerminalMayShow) {
  const auto lines = table_lines({{"NAME", "STATE"}, {"\x1b]0;x\x07", "a\nb\tc"}});
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[1], "\\x1b]0;x\\x07  a b c");
}

using Lines = std::vector<std::string>;

TEST(Table, TextsThatLookLikeNumbersStandRight) {
  EXPECT_EQ(table_lines({{"zone", "hosts"}, {"a", "$ 4.50"}, {"longer", "12"}}),
            (Lines{"zone    hosts", "a       $ 4.50", "longer      12"}));
}

TEST(Table, ColumnsStandWhereTheirLettersSay) {
  EXPECT_EQ(table_lines({{"layer", "FLOP", "memory"}, {"größe", "1.5 G", "12"}}, "lr"),
            (Lines{"layer   FLOP  memory", "größe  1.5 G      12"}));
}

// Rows may end early, and no line ends with blanks.
TEST(Table, RowsMayEndEarly) {
  EXPECT_EQ(table_lines({{"a", "b", "c"}, {"long"}, {}}, "l"), (Lines{"a     b  c", "long", ""}));
}

}  // namespace
}  // namespace sluice::base
