// Processes that meet, and those that do not.
#include "sluice/replica/processes.h"

#include <gmock/gmock.h>

#include <sys/stat.h>

#include <iostream>
#include <thread>
#include <tuple>

#include "sluice/base/build_id.h"
#include "sluice/base/clock.h"
#include "sluice/base/files/file.h"
#include "sluice/replica/loss.h"
#include "sluice/replica/meeting.h"
#include "sluice/replica/pulse.h"
#include "sluice/replica/store/store_client.h"
#include "sluice/replica/testing/crew.h"
#include "sluice/replica/transport/sockets.h"

namespace sluice::replica {
namespace processes_testing {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::my_placement;
using testing::run_part;

SLUICE_PART(Meet) {
  const auto joined = Processes::join(my_placement());
  ASSERT_TRUE(joined) << joined.error().what();
  Processes& all = **joined;
  for (int round = 0; round < 20; ++round) {
    const auto texts = all.gather("round", base::str("p", all.index(), "r", round, std::string(1, '\0')));
    ASSERT_TRUE(texts) << texts.error().what();
    ASSERT_EQ(texts->size(), static_cast<size_t>(all.count()));
    for (int p = 0; p < all.count(); ++p) {
      EXPECT_EQ((*texts)[static_cast<size_t>(p)], base::str("p", p, "r", round, std::string(1, '\0')));
    }
  }
  EXPECT_EQ(*all.broadcast("word", base::str("from ", all.index())), "from 0");
  EXPECT_EQ(*all.put_first("first", "one"), "one");
  EXPECT_EQ(*all.try_get("first"), "one");
  EXPECT_EQ(*all.try_get("nothing"), std::nullopt);
  EXPECT_TRUE(all.barrier("end"));
}

TEST(Processes, Meet) {
  run_part("Meet", 1);
  run_part("Meet", 4);
}

// By the address of IPv6 and by a name, which may have addresses of both kinds.
TEST(Processes, MeetByIpv6AndByName) {
  run_part("Meet", 3, {}, {}, "localhost");
  if (!listen_at("::1", 0, true)) GTEST_SKIP() << "this machine has no IPv6";
  run_part("Meet", 3, {}, {}, "::1");
}

// The same programs, one training behind the other: with process 0 early and late, and with values of the
// meeting before, which are not seen.
SLUICE_PART(MeetAgain) {
  for (int meeting = 0; meeting < 3; ++meeting) {
    const auto joined = Processes::join(my_placement());
    ASSERT_TRUE(joined) << joined.error().what();
    Processes& all = **joined;
    EXPECT_EQ(*all.try_get("word"), std::nullopt);
    const auto texts = all.gather("round", base::str(meeting, " of ", all.index()));
    ASSERT_TRUE(texts) << texts.error().what();
    for (int p = 0; p < all.count(); ++p)
      EXPECT_EQ((*texts)[static_cast<size_t>(p)], base::str(meeting, " of ", p));
    EXPECT_EQ(*all.put_first("word", base::str(meeting)), base::str(meeting));
    EXPECT_TRUE(all.barrier("end"));
    const bool late = (meeting == 0) == (all.index() == 0);
    if (late) std::this_thread::sleep_for(std::chrono::milliseconds(300));
  }
}

TEST(Processes, MeetAgain) {
  run_part("MeetAgain", 1);
  run_part("MeetAgain", 3);
}

// Process 0 meets once, the other wants to again.
SLUICE_PART(MeetOnce) {
  {
    const auto joined = Processes::join(my_placement());
    ASSERT_TRUE(joined) << joined.error().what();
    EXPECT_TRUE((*joined)->barrier("end"));
  }
  if (my_placement().process_id == 0) return std::this_thread::sleep_for(seconds(3));
  const auto again = Processes::join(my_placement(), {.join = seconds(1)});
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().what(), HasSubstr("cannot reach process 0"));
}

TEST(Processes, OneThatDoesNotComeAgainIsAnError) { run_part("MeetOnce", 2); }

// Process 1 gives its bytes only after process 0 has looked for them and has gone on.
SLUICE_PART(Offers) {
  const auto joined = Processes::join(my_placement());
  ASSERT_TRUE(joined) << joined.error().what();
  Processes& all = **joined;
  const auto wait_until = [](auto there) {
    while (!there()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  for (int round = 0; round < 3; ++round) {
    const std::string looked = base::str("looked ", round);
    if (all.index() == 1) wait_until([&] { return all.try_get(looked)->has_value(); });
    const auto offer = all.offer("values", base::str(round, " of ", all.index()));
    ASSERT_TRUE(offer) << offer.error().what();
    if (all.index() == 0) {
      EXPECT_EQ(*all.try_collect(*offer), std::nullopt);
      ASSERT_TRUE(all.put(looked, "yes"));
    }
    std::optional<std::vector<std::string>> texts;
    if (round == 2) texts = *all.collect(*offer);
    wait_until([&] { return texts || (texts = *all.try_collect(*offer)); });
    EXPECT_EQ(*texts, (std::vector<std::string>{base::str(round, " of 0"), base::str(round, " of 1")}));
  }
}

TEST(Processes, OffersDoNotWait) { run_part("Offers", 2); }

SLUICE_PART(Alone) {
  const auto joined = Processes::join(my_placement(), {.join = seconds(1), .wait = seconds(1)});
  ASSERT_FALSE(joined);
  EXPECT_EQ(joined.error().code(), Code::kDeadlineExceeded);
  EXPECT_THAT(joined.error().what(), AllOf(HasSubstr("process 1 of 2 did not come"), HasSubstr("1 s")));
}

// The launcher has said where each process is, and how long to wait for it.
SLUICE_PART(AloneOfHosts) {
  Placement mine = my_placement();
  mine.hosts = {"10.0.0.2", "10.0.0.3", "10.0.0.4"};
  ::setenv("SLUICE_JOIN_TIMEOUT", "1", 1);
  const auto joined = Processes::join(mine);
  ASSERT_FALSE(joined);
  EXPECT_THAT(joined.error().what(),
              HasSubstr("processes 1 (10.0.0.3), 2 (10.0.0.4) of 3 did not come to 'join' within 1 s"));
}

TEST(Processes, TheHostOfOneThatDoesNotComeIsNamed) {
  testing::Port port;
  port.release();
  testing::Member leader("AloneOfHosts", {0, 3, port.coordinator(), "a test"});
  ASSERT_TRUE(testing::wait_until([&] { return leader.ended(); }));
  EXPECT_TRUE(leader.passed()) << leader.output();
}

TEST(Processes, HowLongToWaitForAll) {
  ::unsetenv("SLUICE_JOIN_TIMEOUT");
  EXPECT_EQ(join_within(), seconds(300));
  for (const auto& [text, expected] :
       {std::pair("20", 20), {"0", 300}, {"-1", 300}, {"1.5", 300}, {"soon", 300}}) {
    ::setenv("SLUICE_JOIN_TIMEOUT", text, 1);
    EXPECT_EQ(join_within(), seconds(expected)) << text;
  }
  ::unsetenv("SLUICE_JOIN_TIMEOUT");
}

TEST(Processes, OneThatDoesNotComeIsNamed) {
  testing::Port port;
  port.release();
  testing::Member leader("Alone", {0, 2, port.coordinator(), "a test"});
  ASSERT_TRUE(testing::wait_until([&] { return leader.ended(); }));
  EXPECT_TRUE(leader.passed()) << leader.output();
}

SLUICE_PART(NoLeader) {
  const auto joined = Processes::join(my_placement(), {.join = seconds(1), .wait = seconds(1)});
  ASSERT_FALSE(joined);
  EXPECT_THAT(joined.error().what(),
              AllOf(HasSubstr("process 1 cannot reach process 0 at 127.0.0.1:"), HasSubstr("firewall")));
}

TEST(Processes, ALeaderThatDoesNotComeIsAnError) {
  testing::Port port;
  port.release();
  testing::Member other("NoLeader", {1, 2, port.coordinator(), "a test"});
  ASSERT_TRUE(testing::wait_until([&] { return other.ended(); }));
  EXPECT_TRUE(other.passed()) << other.output();
}

SLUICE_PART(NoName) {
  const auto joined = Processes::join(my_placement(), {.join = seconds(3), .wait = seconds(3)});
  ASSERT_FALSE(joined);
  EXPECT_THAT(
      joined.error().what(),
      AllOf(HasSubstr("process 1 cannot find process 0 at no-such-host.invalid:8476 (a test): the name "
                      "no-such-host.invalid has no address"),
            HasSubstr("give the coordinator by an address that all hosts reach")));
}

// Whoever waits is told of it before the end.
TEST(Processes, ACoordinatorWhoseNameHasNoAddressIsNamed) {
  testing::Member other("NoName", {1, 2, "no-such-host.invalid:8476", "a test"});
  ASSERT_TRUE(testing::wait_until([&] { return other.ended(); }));
  EXPECT_TRUE(other.passed()) << other.output();
  EXPECT_THAT(other.output(),
              HasSubstr("process 1 waits for process 0: the name no-such-host.invalid has no"));
}

SLUICE_PART(WrongCount) {
  Placement mine = my_placement();
  if (mine.process_id == 1) mine.processes = 3;
  const auto joined = Processes::join(mine, {.join = seconds(5), .wait = seconds(5)});
  ASSERT_FALSE(joined);
  // Process 1 waits for a third one, process 0 finds another count.
  if (mine.process_id == 0) {
    EXPECT_THAT(joined.error().what(),
                AllOf(HasSubstr("is one of 2 processes, process 1 (host "),
                      HasSubstr("is one of 3 processes"), HasSubstr("the same count")));
  }
}

TEST(Processes, AnotherCountIsAnError) { run_part("WrongCount", 2); }

// Two slices of two processes.
Placement placed_in_slices(int count = 2) {
  Placement mine = my_placement();
  mine.slice = {mine.process_id * count / mine.processes, count, "10.0.0.1:8080", "v5p-16"};
  return mine;
}

SLUICE_PART(HalfOfTheSlices) {
  const auto joined =
      Processes::join(placed_in_slices(), {.join = seconds(4), .tell = std::chrono::milliseconds(500)});
  ASSERT_FALSE(joined);
  EXPECT_THAT(joined.error().what(),
              HasSubstr("all 2 workers of slice 1 of 4 processes did not come to 'join' within 4 s"));
}

// They are named long before the error.
TEST(Processes, ASliceThatDoesNotComeIsNamed) {
  testing::Port port;
  port.release();
  testing::Member leader("HalfOfTheSlices", {0, 4, port.coordinator(), "a test"});
  testing::Member other("HalfOfTheSlices", {1, 4, port.coordinator(), "a test"});
  EXPECT_TRUE(testing::wait_until(
      [&] { return leader.has_said("waiting for all 2 workers of slice 1, of 4 processes (a test)"); }));
  EXPECT_FALSE(leader.ended());
  ASSERT_TRUE(testing::wait_until([&] { return leader.ended() && other.ended(); }));
  EXPECT_TRUE(leader.passed()) << leader.output();
}

// Process 2 of 4 says otherwise of the slices, and process 3 never comes: nobody waits for it.
SLUICE_PART(OtherSlices) {
  Placement mine = placed_in_slices();
  if (mine.process_id == 2) mine.slice.type = "v5p-32";
  const auto joined = Processes::join(mine, {.join = seconds(60)});
  ASSERT_FALSE(joined);
  EXPECT_THAT(joined.error().what(),
              AllOf(HasSubstr("the TPU slices do not fit together"), HasSubstr("has a slice of type"),
                    HasSubstr("v5p-32"), HasSubstr("2 (slice 1, worker 0)")));
}

TEST(Processes, SlicesOfAnotherTypeAreAnErrorInAll) {
  testing::Port port;
  port.release();
  testing::Members members;
  for (int p = 0; p < 3; ++p)
    members.push_back(
        std::make_unique<testing::Member>("OtherSlices", Placement{p, 4, port.coordinator(), "a test"}));
  for (const auto& member : members) {
    ASSERT_TRUE(testing::wait_until([&] { return member->ended(); }));
    EXPECT_TRUE(member->passed()) << member->output();
  }
}

// Both slices of one process each say that they are slice 1.
SLUICE_PART(SliceTwice) {
  Placement mine = placed_in_slices(3);
  if (mine.process_id == 2) mine.process_id = mine.slice.index = 1;
  const auto joined = Processes::join(mine, {.join = seconds(60)});
  ASSERT_FALSE(joined);
  EXPECT_THAT(joined.error().what(), AllOf(HasSubstr("two processes say that they are number 1 of 3"),
                                           HasSubstr("is MEGASCALE_SLICE_ID 1 in two slices?")));
}

TEST(Processes, ASliceIdInTwoSlicesIsAnErrorInAll) { run_part("SliceTwice", 3); }

// Two say that they are number 1, none that it is number 2.
SLUICE_PART(SameNumber) {
  Placement mine = my_placement();
  if (mine.process_id == 2) mine.process_id = 1;
  const auto joined = Processes::join(mine, {.join = seconds(3)});
  ASSERT_FALSE(joined);
  std::cout << joined.error().what() << std::endl;
}

TEST(Processes, TwoOfOneNumberAreAnError) {
  int refused = 0;
  run_part("SameNumber", 3, {}, [&](testing::Members& members) {
    for (const auto& member : members) {
      EXPECT_TRUE(testing::wait_until([&] { return member->ended(); }));
      refused += member->has_said("two processes say that they are number 1 of 3 (a test)");
    }
    EXPECT_TRUE(members[0]->has_said("process 2 of 3 did not come")) << members[0]->output();
  });
  EXPECT_EQ(refused, 1);
}

SLUICE_PART(OtherBuild) {
  const auto joined = Processes::join(my_placement());
  ASSERT_FALSE(joined);
  EXPECT_EQ(joined.error().code(), Code::kFailedPrecondition);
  EXPECT_THAT(joined.error().what(),
              AllOf(HasSubstr("process 0 (host "), HasSubstr(") runs sluice "), HasSubstr(" build "),
                    HasSubstr(", process 1 (host "), HasSubstr("copy the same program to all hosts")));
}

SLUICE_PART(OtherBuildIsFine) {
  ::setenv("SLUICE_SAME_BUILD", "0", 1);
  const auto joined = Processes::join(my_placement());
  ASSERT_TRUE(joined) << joined.error().what();
}

// This program as a build of its own: a copy in which the build id's first byte is another.
std::string another_build() {
  std::string bytes = base::value_or_throw(base::read_file("/proc/self/exe"));
  const std::string digits = base::build_id().substr(0, base::build_id().find('+'));
  std::string id("GNU\0", 4);  // all of it: other notes and strings may begin as it does
  for (size_t i = 0; i + 1 < digits.size(); i += 2)
    id += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  const size_t note = bytes.find(id);
  bytes.at(note + 4) = static_cast<char>(bytes.at(note + 4) + 1);
  const std::string path = testing::scratch_path("another_build");
  base::value_or_throw(base::write_file_atomically(path, bytes));
  ::chmod(path.c_str(), 0700);
  return path;
}

TEST(Processes, AnotherBuildOfTheSameVersionIsAnError) {
  const std::string other = another_build();
  for (const char* part : {"OtherBuild", "OtherBuildIsFine"}) {
    testing::Port port;
    port.release();
    testing::Member zero(part, {0, 2, port.coordinator(), "a test"});
    testing::Member one(part, {1, 2, port.coordinator(), "a test"}, other);
    for (testing::Member* member : {&zero, &one}) {
      ASSERT_TRUE(testing::wait_until([&] { return member->ended(); }));
      EXPECT_TRUE(member->passed()) << part << ":\n" << member->output();
    }
  }
  ::unlink(other.c_str());
}

TEST(Processes, APortThatIsTakenIsAnError) {
  testing::Port port;
  ASSERT_EQ(::listen(port.socket, 1), 0);
  const auto joined =
      Processes::join({0, 2, port.coordinator(), "a test"}, {.join = seconds(5), .wait = seconds(5)});
  ASSERT_FALSE(joined);
  EXPECT_THAT(joined.error().what(), AllOf(HasSubstr(base::str("cannot listen on port ", port.number)),
                                           HasSubstr("Is another run using it?")));
}

TEST(Processes, NumbersAndAddressesThatCannotBe) {
  EXPECT_THAT(Processes::join({2, 2, "localhost:1", "a test"}).error().what(), HasSubstr("process 2 of 2"));
  EXPECT_THAT(Processes::join({0, 2, "localhost", "a test"}).error().what(), HasSubstr("must be host:port"));
}

// Writes into the store as a process that has the key and speaks the store's language, but does not join.
void set_in_store(const Placement& mine, const std::string& key, const std::string& bytes) {
  const auto port =
      static_cast<uint16_t>(std::stoi(mine.coordinator.substr(mine.coordinator.rfind(':') + 1)));
  const auto met = base::value_or_throw(meet(mine, "127.0.0.1", port, "", seconds(60)));
  const Patience patience = until(base::monotonic_seconds() + 60);
  auto store = base::value_or_throw(StoreConnection::open({met.store}, "", patience));
  base::value_or_throw(store.ask({StoreOrder::kSet, {base::str(met.name, ' ', key), bytes}}, patience));
}

SLUICE_PART(SomeoneFails) {
  const auto joined = Processes::join(my_placement());
  ASSERT_TRUE(joined) << joined.error().what();
  Processes& all = **joined;
  ASSERT_TRUE(all.barrier("all are here"));
  if (all.index() == 2) {
    all.fail("the disk is full");
  } else {
    const auto texts = all.gather("never", "");
    ASSERT_FALSE(texts);
    EXPECT_THAT(texts.error().what(), HasSubstr("process 2: the disk is full"));
  }
}

// Process 2 fails before the others have met it, and process 1 comes a second after process 0 has seen that.
SLUICE_PART(SomeoneFailsBeforeAllHaveMet) {
  const Placement mine = my_placement();
  if (mine.process_id < 2) {
    if (mine.process_id == 1) std::this_thread::sleep_for(seconds(2));
    const auto joined = Processes::join(mine);
    ASSERT_FALSE(joined);
    EXPECT_THAT(joined.error().what(), HasSubstr("process 2: the disk is full"));
    return;
  }
  set_in_store(mine, base::str("value ", Pulse::kEnded), failed_text(2, "the disk is full"));
  std::this_thread::sleep_for(seconds(4));
}

// Process 1 has the key and speaks the store's language, but what it says of itself is not what a process
// says.
SLUICE_PART(Damaged) {
  const Placement mine = my_placement();
  if (mine.process_id == 0) {
    const auto joined = Processes::join(mine, {.join = seconds(60)});
    ASSERT_FALSE(joined);
    std::cout << "error: " << joined.error().what() << std::endl;
    return;
  }
  const std::string key = std::getenv("SLUICE_TEST_KEY");
  const std::string bytes = base::value_or_throw(base::read_file(std::getenv("SLUICE_TEST_BYTES")));
  set_in_store(mine, key, bytes);
  std::this_thread::sleep_for(seconds(2));
}

TEST(Processes, DamagedBytesOfAnotherAreAnErrorThatCanBeShown) {
  const std::string file = testing::scratch_path("bytes");
  ::setenv("SLUICE_TEST_BYTES", file.c_str(), 1);
  const std::string join = "gather join 0 1", ended = "value ended";
  for (const auto& [key, bytes, expected] : {
           std::tuple(join, std::string(), "in 0 bytes and 1 lines: expected 3"),
           {join, std::string(3'000'000, '\n'), "in 3000000 bytes"},
           {join, std::string("\x1b]0;title\a\n2\n\xff"), ""},
           {ended, std::string("\x1b[2J") + std::string(3'000'000, 'x'), "\\x1b[2Jxxxx"},
       }) {
    ::setenv("SLUICE_TEST_KEY", key.c_str(), 1);
    base::value_or_throw(base::write_file_atomically(file, bytes));
    run_part("Damaged", 2, {}, [&, text = std::string(expected)](testing::Members& members) {
      EXPECT_TRUE(testing::wait_until([&] { return members[0]->ended(); }));
      const std::string output = members[0]->output();
      EXPECT_THAT(output.substr(0, 6000), HasSubstr("error: "));
      // What the message says of process 1 may stand behind what it says of process 0.
      if (key == join && bytes.find('\x1b') == 0)
        EXPECT_THAT(output, AllOf(HasSubstr("runs \\x1b]0;title\\x07"), HasSubstr("process 1 (host \\xff)")));
      else
        EXPECT_THAT(output.substr(0, 6000), HasSubstr(text));
      EXPECT_EQ(output.find('\x1b'), std::string::npos);
      EXPECT_LT(output.size(), 10'000u);
    });
  }
  ::unlink(file.c_str());
}

// Process 0, stopped, answers no more; any other does not come.
SLUICE_PART(Stopped) {
  const auto joined = Processes::join(my_placement(), {.lost = seconds(5)});
  ASSERT_TRUE(joined) << joined.error().what();
  base::Status status;
  for (int round = 0; status; ++round) {
    status = (*joined)->barrier("round");
    if (round == 3) std::cout << "under way" << std::endl;
  }
  std::cout << "error: " << status.error().what() << std::endl;
}

TEST(Processes, AStoppedOneIsNamed) {
  testing::run_and_stop("Stopped", 3, 1);
  testing::run_and_stop("Stopped", 3, 0);
}

TEST(Processes, WhoGoesOnNoMoreTellsTheOthers) {
  run_part("SomeoneFails", 3);
  run_part("SomeoneFailsBeforeAllHaveMet", 3);
}

}  // namespace processes_testing
}  // namespace sluice::replica
