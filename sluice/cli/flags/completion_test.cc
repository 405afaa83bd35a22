// What the scripts for the shells say; bash runs its own here, the others run theirs in tests/end_to_end.
#include "sluice/cli/flags/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "sluice/base/files/file.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/cli/flags/flag.h"
#include "sluice/cli/verb.h"

namespace sluice::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Completion : public testing::Test {
 protected:
  Completion() {
    const auto flags = [this](CLI::App& app) {
      add_flags(app, {{"Data", "--precision", ChoiceValue{{"f32", "bf16"}, "f32", [](const std::string&) {}},
                       "", "It's"},
                      {"Data", "--prefetch", &size_, "MiB", "Ahead [a:b]"},
                      {"Data", "--logdir", &text_, "", "Folder"}});
    };
    const auto none = [] { return 0; };
    add_verbs(
        program_,
        {{.name = "train", .help = "Train", .add_flags = flags, .run = none},
         {.name = "data",
          .help = "Shards",
          .verbs = {{.name = "ls", .help = "List", .run = none},
                    {.name = "lint", .help = "Check", .run = none}}},
         {.name = "worker", .help = "", .run = none, .hidden = true},
         {.name = "show",
          .help = "Show",
          .add_flags = [this](CLI::App& app) { app.add_option("WHAT", text_, "")->type_name("all|some"); },
          .run = none}},
        action_);
  }

  // What bash proposes for the last of the words.
  std::vector<std::string> bash(const std::vector<std::string>& words) {
    const auto folder = base::value_or_throw(base::TemporaryDirectory::create());
    std::string script = bash_completion(program_) + "COMP_WORDS=(";
    for (const std::string& word : words) script += " '" + word + "'";
    script += base::str(" )\nCOMP_CWORD=", words.size() - 1,
                        "\n_sluice\nprintf '%s\\n' \"${COMPREPLY[@]}\" >", folder.path("out"), "\n");
    base::value_or_throw(base::write_file_atomically(folder.path("in"), script));
    EXPECT_EQ(std::system(("bash --norc --noprofile " + folder.path("in")).c_str()), 0);
    auto lines = base::split(base::value_or_throw(base::read_file(folder.path("out"))), '\n');
    lines.pop_back();  // behind the last line's end
    if (lines == std::vector<std::string>{""}) lines.clear();
    return lines;
  }

  std::int64_t size_ = 0;
  std::string text_;
  Action action_;
  CLI::App program_{"", "sluice"};
};

TEST_F(Completion, BashKnowsVerbsAndFlags) {
  EXPECT_THAT(bash({"sluice", "tr"}), ElementsAre("train"));
  EXPECT_THAT(bash({"sluice", ""}), ElementsAre("train", "data", "show"));
  EXPECT_THAT(bash({"sluice", "data", "l"}), ElementsAre("ls", "lint"));
  EXPECT_THAT(bash({"sluice", "train", "--pre"}), ElementsAre("--precision", "--prefetch"));
  EXPECT_THAT(bash({"sluice", "train", "--logdir", "x", "--prec"}), ElementsAre("--precision"));
  EXPECT_THAT(bash({"sluice", "data", "--pre"}), ElementsAre());
}

TEST_F(Completion, BashKnowsValues) {
  EXPECT_THAT(bash({"sluice", "train", "--precision", ""}), ElementsAre("f32", "bf16"));
  EXPECT_THAT(bash({"sluice", "train", "--precision", "=", "b"}), ElementsAre("bf16"));
  EXPECT_THAT(bash({"sluice", "train", "--precision", "="}), ElementsAre("f32", "bf16"));
  EXPECT_THAT(bash({"sluice", "show", "s"}), ElementsAre("some"));
  // Nothing: bash then proposes names of files.
  EXPECT_THAT(bash({"sluice", "train", "--logdir", "tr"}), ElementsAre());
  // A flag's value that is called like a verb, and a command of somebody else's.
  EXPECT_THAT(bash({"sluice", "train", "--logdir", "data", "l"}), ElementsAre());
  EXPECT_THAT(bash({"sluice", "train", "--", "--pre"}), ElementsAre());
}

TEST_F(Completion, ZshAndFishHaveTheSame) {
  const std::string zsh = zsh_completion(program_);
  EXPECT_THAT(zsh, testing::StartsWith("#compdef sluice\n"));
  EXPECT_THAT(zsh, HasSubstr("'train:Train'"));
  EXPECT_THAT(zsh, HasSubstr("'--precision=[It'\\''s]:value:(f32 bf16)'"));
  EXPECT_THAT(zsh, HasSubstr("'--prefetch=[Ahead \\[a\\:b\\] \\[MiB\\]]:value: '"));
  EXPECT_THAT(zsh, HasSubstr("'--logdir=[Folder]:value:_files'"));
  const std::string fish = fish_completion(program_);
  EXPECT_THAT(fish, HasSubstr("complete -c sluice -n \"__sluice_at 'data'\" -f -a ls -d 'List'\n"));
  EXPECT_THAT(fish, HasSubstr("\"__sluice_at 'train'\" -l precision -x -a 'f32 bf16' -d 'It\\'s'\n"));
  EXPECT_THAT(fish, HasSubstr("\"__sluice_at 'train'\" -l logdir -r -d 'Folder'\n"));
  for (const std::string& script : {zsh, fish, bash_completion(program_)})
    EXPECT_THAT(script, testing::Not(HasSubstr("worker")));
}

}  // namespace
}  // namespace sluice::cli
