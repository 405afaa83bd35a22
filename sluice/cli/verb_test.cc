#include "sluice/cli/verb.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "sluice/cli/data/test_program.h"
#include "sluice/cli/flags/flag.h"

namespace sluice::cli {
namespace {

using testing::HasSubstr;

class Verbs : public testing::Test {
 protected:
  test::Outcome run(const std::vector<std::string>& arguments) {
    const auto flags = [this](CLI::App& app) {
      add_flags(app, {{"Options", "--lr", &lr_, "", "Rate"},
                      {"Options", "--classes", &classes_, "", "Classes"},
                      {"Options", "--seed", &seed_, "", "Seed"},
                      {"Options", "--size",
                       ChoiceValue{{"small", "large"}, "small", [](const std::string&) {}}, "", ""},
                      {"Options", "--kernels", OnOffValue{&kernels_}, "", ""},
                      {"Options", "--resume", OptionalText{&resume_}, "", ""},
                      {"Options", "--ttl", &ttl_, "", "Its end"},
                      {"Options", "--prompt", &prompt_, "", "To go on with; empty: from nothing"},
                      {"Options", "--spot", &spot_, "", ""}});
      app.add_option("--processes", classes_, "")->check(between(1, 100'000));
      app.add_option("--share", lr_, "")->check(kAboveZero);
      app.add_option("--by", ttl_, "")->type_name("env|owner")->check(one_of({"env", "owner"}));
      app.add_option("--zones", zones_, "")->delimiter(',')->allow_extra_args(false)->take_all()->expected(1);
    };
    const auto make_flags = [&](CLI::App& app) {
      flags(app);
      app.add_option("NAME", name_, "");
    };
    const auto run_flags = [&](CLI::App& app) {
      flags(app);
      app.add_option("COMMAND", command_, "");
    };
    const auto copy_flags = [&](CLI::App& app) {
      flags(app);
      app.add_option("FROM", name_, "")->required();
      app.add_option("TO", name_, "")->required();
    };
    const auto fail = [this]() -> int { throw std::runtime_error(thrown_); };
    return test::sluice_program(
        {{.name = "make", .help = "Make", .add_flags = make_flags, .run = [] { return 0; }},
         {.name = "run", .help = "Run", .add_flags = run_flags, .run = [] { return 0; }},
         {.name = "break", .help = "Break", .run = fail},
         {.name = "data",
          .help = "Shards",
          .verbs = {{.name = "pack", .help = "Pack", .add_flags = flags, .run = [] { return 0; }},
                    {.name = "cp", .help = "Copy", .add_flags = copy_flags, .run = [] { return 0; }}}}},
        arguments);
  }

  // What `sluice ARGUMENTS…` says is wrong with them.
  std::string mistake(const std::vector<std::string>& arguments) {
    const test::Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, 2) << testing::PrintToString(arguments);
    EXPECT_EQ(outcome.out, "");
    return outcome.err;
  }

  double lr_ = 0.1;
  int classes_ = 10;
  std::uint64_t seed_ = 1;
  bool kernels_ = true, spot_ = false;
  std::string resume_, ttl_, prompt_ = "x", name_, thrown_;
  std::vector<std::string> zones_, command_;
};

TEST_F(Verbs, EmptyValuesAreMistakes) {
  const char* const unset = ", found nothing; is a variable empty or unset?\n";
  EXPECT_EQ(mistake({"make", "--ttl", ""}), std::string("sluice: --ttl: expected a text") + unset);
  EXPECT_EQ(mistake({"make", "--lr", ""}), std::string("sluice: --lr: expected a number") + unset);
  EXPECT_EQ(mistake({"make", "--classes", ""}),
            std::string("sluice: --classes: expected a whole number") + unset);
  EXPECT_EQ(mistake({"make", "--processes", ""}),
            std::string("sluice: --processes: expected a whole number from 1 to 100000") + unset);
  EXPECT_EQ(mistake({"make", "--share", ""}),
            std::string("sluice: --share: expected a number above 0") + unset);
  EXPECT_EQ(mistake({"make", "--size", ""}), std::string("sluice: --size: expected small or large") + unset);
  EXPECT_THAT(mistake({"make", "--zones", ""}), HasSubstr("--zones: expected a text"));
  EXPECT_THAT(mistake({"make", "--resume", ""}), HasSubstr("--resume: expected a text or no word at all"));
  EXPECT_THAT(mistake({"data", "pack", "--spot", "--ttl", ""}), HasSubstr("--ttl: "));
  // Of these CLI11 would take the next word for the value.
  EXPECT_THAT(mistake({"make", "--ttl=", "--spot"}), HasSubstr("--ttl: expected a text after ="));
  EXPECT_THAT(mistake({"make", "--spot="}), HasSubstr("--spot: expected no value, true or false after ="));
  EXPECT_THAT(mistake({"make", "--ttl", "--spot"}),
              HasSubstr("--ttl: expected a text, found --spot; is a variable"));
  EXPECT_THAT(mistake({"run", "--ttl", "--", "true"}), HasSubstr("--ttl: expected a text, found --;"));
  EXPECT_THAT(mistake({"make", "--lr"}), HasSubstr("--lr: expected a number, found the end of the line\n"));
  EXPECT_THAT(mistake({"make", ""}), HasSubstr("an argument is empty: is a variable empty or unset?\n"));
}

TEST_F(Verbs, EmptyValuesThatSaySomethingAreTaken) {
  EXPECT_EQ(run({"make", "--prompt", ""}).status, 0);
  EXPECT_EQ(prompt_, "");
  EXPECT_EQ(run({"run", "--spot", "--", "echo", "", "--ttl", ""}).status, 0);
  EXPECT_EQ(command_, (std::vector<std::string>{"echo", "", "--ttl", ""}));
  EXPECT_EQ(run({"make", "--resume", "--spot", "--ttl", "-1", "--zones", "a,b"}).status, 0);
  EXPECT_EQ(ttl_, "-1");
}

TEST_F(Verbs, WrongValuesAreAnsweredWithWhatWasExpected) {
  EXPECT_EQ(mistake({"make", "--classes", "ten"}),
            "sluice: --classes: expected a whole number, found 'ten'\n");
  EXPECT_THAT(mistake({"make", "--classes", "1e3"}), HasSubstr("expected a whole number, found '1e3'\n"));
  EXPECT_THAT(mistake({"make", "--seed", "-1"}), HasSubstr("--seed: expected a whole number, found '-1'\n"));
  EXPECT_THAT(mistake({"make", "--lr", "0,1"}), HasSubstr("--lr: expected a number, found '0,1'\n"));
  EXPECT_THAT(mistake({"make", "--classes", "99999999999"}),
              HasSubstr("--classes: expected a number nearer to 0, found '99999999999'\n"));
  EXPECT_THAT(mistake({"make", "--processes", "two"}),
              HasSubstr("--processes: expected a whole number from 1 to 100000, found 'two'\n"));
  EXPECT_THAT(mistake({"make", "--processes", "0"}),
              HasSubstr("--processes: expected 1 to 100000, found 0\n"));
  EXPECT_THAT(mistake({"make", "--share", "x"}),
              HasSubstr("--share: expected a number above 0, found 'x'\n"));
  EXPECT_THAT(mistake({"make", "--by", "me"}), HasSubstr("--by: expected env, owner, found 'me'\n"));
  EXPECT_THAT(mistake({"make", "--kernels", "maybe"}),
              HasSubstr("--kernels: expected on or off, found 'maybe'\n"));
  EXPECT_THAT(mistake({"make", "--spot=maybe"}),
              HasSubstr("--spot: expected no value, true or false, found 'maybe'\n"));
}

TEST_F(Verbs, UnknownWordsAreAnsweredWithTheWholePath) {
  EXPECT_EQ(mistake({"--foo"}), "sluice: unknown flag --foo. See sluice --help.\n");
  EXPECT_EQ(mistake({"data", "pack", "--sed", "3"}),
            "sluice: unknown flag --sed; did you mean --seed? See sluice data pack --help.\n");
  EXPECT_EQ(mistake({"data", "cp", "--sed", "3"}),
            "sluice: unknown flag --sed; did you mean --seed? See sluice data cp --help.\n");
  EXPECT_EQ(mistake({"data", "cp"}), "sluice: FROM is required\n");
  EXPECT_EQ(mistake({"data", "--foo"}), "sluice: unknown flag --foo. See sluice data --help.\n");
}

TEST_F(Verbs, AMisspeltVerbHasNoHelp) {
  for (const char* help : {"--help", "--processes"}) {
    EXPECT_THAT(mistake({"mkae", help}), HasSubstr("unknown")) << help;
    EXPECT_THAT(mistake({"data", "pakc", help}), HasSubstr("unknown")) << help;
  }
  EXPECT_EQ(mistake({"mkae", "--help"}), mistake({"mkae"}));
  EXPECT_EQ(mistake({"data", "pakc", "--help"}), mistake({"data", "pakc"}));
  for (const std::vector<std::string>& line : {std::vector<std::string>{"--help"},
                                               {"data", "--help"},
                                               {"data", "pack", "--help"},
                                               {"make", "x", "--help"}})
    EXPECT_EQ(run(line).status, 0);
}

TEST_F(Verbs, MessagesHaveNoStackTrace) {
  thrown_ = "expected 3 dimensions\nframe #0: c10::Error::Error(…) + 0x8e";
  test::Outcome outcome = run({"break"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.err, "sluice: expected 3 dimensions\n");
  thrown_ = "no such file\nException raised from open at x.cpp:1 (most recent call first):\nframe #0: f";
  EXPECT_EQ(run({"break"}).err, "sluice: no such file\n");
  thrown_ =
      "[enforce fail at alloc_cpu.cpp:83] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to "
      "allocate 40000000000 bytes. Error code 12 (Cannot allocate memory)\nframe #0: f";
  EXPECT_EQ(run({"break"}).err,
            "sluice: out of memory: 40000000000 bytes (37.3 GiB) for one tensor were not there; a smaller "
            "--batch-size, --image-size or --length needs less\n");
}

}  // namespace
}  // namespace sluice::cli
