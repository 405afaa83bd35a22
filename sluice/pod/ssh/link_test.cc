#include "sluice/pod/ssh/link.h"

#include <gmock/gmock.h>

#include "sluice/pod/ssh/upload.h"

namespace sluice::pod {
namespace {

// All that the host's shell says until it ends.
Link closed_link(const std::string& script) {
  Link link = base::value_or_throw(Link::open({"sh", "-c", script}, ""));
  std::string output;
  while (!link.is_closed()) {
    std::vector<pollfd> polled;
    link.add_to(polled, /*read_output=*/true);
    ::poll(polled.data(), polled.size(), 5);
    link.move(output, /*read_output=*/true);
  }
  return link;
}

// A host may send anything on standard error, also a line that never ends.
TEST(Link, ALineWithoutEndIsCut) {
  const Link link = closed_link("head -c 20000000 /dev/zero | tr '\\0' x >&2; exit 255");
  EXPECT_LE(link.messages().size(), size_t{40} << 10);
  EXPECT_GE(link.messages().size(), 1000U) << "it is not kept until its end comes";
  EXPECT_FALSE(link.is_up());
  const Link after =
      closed_link("head -c 100000 /dev/zero | tr '\\0' x >&2; echo >&2; echo 'sluice-worker up' >&2");
  EXPECT_TRUE(after.is_up());
}

TEST(Link, TheOutputsPlaceIsKnownBeforeTheOutput) {
  Link link = base::value_or_throw(Link::open(
      {"sh", "-c",
       "echo out; sleep 0.2; echo 'sluice-worker from 5000000000' >&2; echo 'sluice-worker up' >&2; "
       "echo 'sluice-worker from 7' >&2"},
      ""));
  std::string output;
  while (!link.is_closed()) {
    std::vector<pollfd> polled;
    link.add_to(polled, /*read_output=*/true);
    ::poll(polled.data(), polled.size(), 5);
    link.move(output, /*read_output=*/true);
    if (!output.empty()) {
      EXPECT_TRUE(link.output_from()) << output;
    }
  }
  EXPECT_EQ(link.output_from(), 5'000'000'000U);
  EXPECT_EQ(closed_link("echo 'sluice-worker from -1' >&2").output_from(), std::nullopt);
}

// A connection that has ended makes room for the next one, also while nobody reads the output.
TEST(Link, TheRestOfAnEndedConnectionIsRead) {
  Link link = base::value_or_throw(Link::open({"sh", "-c", "echo 'sluice-worker up' >&2; echo rest"}, ""));
  std::string output;
  while (!link.is_closed()) {
    std::vector<pollfd> polled;
    link.add_to(polled, /*read_output=*/false);
    ::poll(polled.data(), polled.size(), 5);
    link.move(output, /*read_output=*/false);
  }
  EXPECT_EQ(output, "rest\n");
}

TEST(Link, NotesAreLimited) {
  Link link = closed_link("yes 'sluice-worker note full /' | head -n 5000 >&2");
  EXPECT_LE(link.take_notes().size(), 100U);
}

// An upload's host that never stops writing does not hold up the others.
TEST(Upload, EndlessOutputReturns) {
  auto upload = Upload::start({"sh", "-c", "yes & yes >&2"}, "");
  ASSERT_TRUE(upload);
  size_t bytes = 0;
  for (int i = 0; i < 50; ++i) {
    upload->move();
    while (const auto line = upload->take_line()) bytes += line->size() + 1;
  }
  EXPECT_LE(upload->messages().size(), size_t{2} << 20);
  EXPECT_LE(bytes, size_t{100} << 20);
}

TEST(Upload, LinesComeWhole) {
  auto upload = Upload::start({"sh", "-c", "printf 'a\\n\\nbc\\nrest'"}, "");
  ASSERT_TRUE(upload);
  std::vector<std::string> lines;
  while (!upload->has_ended()) {
    upload->move();
    while (const auto line = upload->take_line()) lines.push_back(*line);
  }
  EXPECT_THAT(lines, testing::ElementsAre("a", "", "bc"));
}

}  // namespace
}  // namespace sluice::pod
