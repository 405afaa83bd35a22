#include "sluice/pod/terminal.h"

#include <gtest/gtest.h>

namespace sluice::pod {
namespace {

TEST(Terminal, NothingTurnsALinesDirection) {
  EXPECT_EQ(harmless("a\xE2\x80\xAE"
                     "b\xE2\x81\xA6"),
            "a\\u202eb\\u2066");
  EXPECT_EQ(harmless("\xE2\x80\xA6"), "\xE2\x80\xA6");
}

TEST(Terminal, ColoursStayAndEndWithTheirLine) {
  EXPECT_EQ(harmless("\x1b[1;31mred\x1b[0m plain\n"), "\x1b[1;31mred\x1b[0m plain\n");
  EXPECT_EQ(harmless("\x1b[38:2:1:2:3mred\nplain"), "\x1b[38:2:1:2:3mred\x1b[0m\nplain");
  EXPECT_EQ(harmless("\x1b[32m"), "\x1b[32m\x1b[0m");
  EXPECT_EQ(harmless("\x1b[32ma\x1b[mb\n"), "\x1b[32ma\x1b[mb\n");
}

TEST(Terminal, WhatElseATerminalObeysIsMadeVisible) {
  EXPECT_EQ(harmless("\x1b]0;title\x07"), "^[]0;title^G");
  EXPECT_EQ(harmless("\x1b[2Jgone\x1b[6n\x1b"
                     "c"),
            "^[[2Jgone^[[6n^[c");
  EXPECT_EQ(harmless("\x1bP+q\x1b\\"), "^[P+q^[\\");
  EXPECT_EQ(harmless("a\bb\x7f\v"), "a^Hb^?^K");
  EXPECT_EQ(harmless("\x9b"
                     "2J and \xc2\x9b"
                     "2J"),
            "\\x9b2J and \\x9b2J");
  EXPECT_EQ(harmless("\x1b[" + std::string(100, '1') + "m"), "^[[" + std::string(100, '1') + "m");
  EXPECT_EQ(harmless("\x1b[?1m\x1b[3"), "^[[?1m^[[3");
}

TEST(Terminal, TextsOfAllLanguagesStay) {
  for (const char* text : {"tab\tand\r\n", "é ä 水 🙂 →\n", "\xe9t\xe9 in Latin-1\n"})
    EXPECT_EQ(harmless(text), text);
}

TEST(Terminal, PiecesGiveWhatTheWholeGives) {
  const std::string text = "\x1b[1;31mé\x1b[2J\xc2\x9b🙂\x1b[0m\n\x1b]0;t\x07\x1b[3";
  for (size_t size = 1; size < text.size(); ++size) {
    TerminalFilter filter;
    std::string shown;
    for (size_t at = 0; at < text.size(); at += size) shown += filter.add(text.substr(at, size));
    EXPECT_EQ(shown + filter.finish(), harmless(text)) << size;
  }
}

}  // namespace
}  // namespace sluice::pod
