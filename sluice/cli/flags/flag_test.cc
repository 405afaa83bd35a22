#include "sluice/cli/flags/flag.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/base/error.h"
#include "sluice/base/files/file.h"
#include "sluice/cli/config.h"
#include "sluice/cli/flags/flags_page.h"
#include "sluice/cli/verb.h"

namespace sluice::cli {
namespace {

using testing::HasSubstr;

// One flag of each kind.
struct Values {
  std::string text = "a", resume = "", size = "small";
  int workers = 3, length = 2;
  std::int64_t batch = 128;
  std::uint64_t seed = 42;
  double lr = 0.1;
  bool flip = false, kernels = true;
  std::vector<std::string> mix;
};

std::vector<Flag> rows(Values& v) {
  return {{"Data", "--text", &v.text, "", "A text"},
          {"Data", "--workers", &v.workers, "", "Threads"},
          {"Data", "--batch-size", &v.batch, "samples", "Per replica", {1, 1000}},
          {"Data", "--flip", &v.flip, "", "Mirror"},
          {"Recipe", "--seed", &v.seed, "", "Of all"},
          {"Recipe", "--lr", &v.lr, "", "Learning rate"},
          {"Recipe", "--size",
           ChoiceValue{{"small", "large"},
                       v.size,
                       [&v](const std::string& text) {
                         if (text != "small" && text != "large")
                           throw_error(Code::kInvalidArgument, "--size is small or large, not " + text);
                         v.size = text;
                       }},
           "", "How large"},
          {"Recipe", "--kernels", OnOffValue{&v.kernels}, "", "Libraries"},
          {"Recipe", "--resume", OptionalText{&v.resume}, "", "Go on"},
          {"Recipe", "--length",
           base::ParsedText{[&v](const std::string& text) {
                              if (text.empty()) throw_error(Code::kInvalidArgument, "--length is empty");
                              v.length = static_cast<int>(text.size());
                            },
                            std::string(static_cast<size_t>(v.length), 'x'), "yyyyy"},
           "", "Its length"},
          {"Data", "--mix", RepeatedText{&v.mix}, "", "Sets"}};
}

class Flags : public testing::Test {
 protected:
  // The status of `sluice make ARGUMENTS…`; what it writes is in out_ and err_.
  int parse(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"sluice", "make"});
    std::vector<char*> words;
    for (std::string& argument : arguments) words.push_back(argument.data());
    words.push_back(nullptr);
    CLI::App program("", "sluice");
    program.option_defaults()->always_capture_default();
    CLI::App* verb = nullptr;
    std::string config;
    bool trusted = false, pipes = false;
    const Verb make = {.name = "make",
                       .help = "Make it",
                       .add_flags =
                           [&](CLI::App& app) {
                             verb = &app;
                             add_flags(app, rows(values_));
                             app.add_option("--config", config, "A file");
                             app.add_flag("--trust-config", trusted, "Let it name programs");
                             app.add_option("--plugin", plugin_, "A plugin");
                             app.add_option("--train", train_, "Shards");
                             app.add_flag("--allow-pipe", pipes, "Commands in lists");
                           },
                       .run =
                           [&] {
                             if (!config.empty()) apply_config(*verb, config);
                             text_ = verb->config_to_str(/*default_also=*/true);
                             return 0;
                           }};
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int status = parse_and_run(program, {make}, static_cast<int>(arguments.size()), words.data());
    out_ = testing::internal::GetCapturedStdout();
    err_ = testing::internal::GetCapturedStderr();
    if (verb != nullptr) page_ = flags_page(program);
    return status;
  }

  Values values_;
  std::string out_, err_, text_, page_, plugin_, train_;
};

TEST_F(Flags, FillTheirValues) {
  EXPECT_EQ(parse({"--text", "b", "--workers", "4", "--batch-size=16", "--flip", "--seed", "7", "--lr",
                   "1e-3", "--size", "large", "--kernels", "off", "--resume", "there"}),
            0)
      << err_;
  EXPECT_EQ(values_.text, "b");
  EXPECT_EQ(values_.workers, 4);
  EXPECT_EQ(values_.batch, 16);
  EXPECT_EQ(values_.seed, 7u);
  EXPECT_DOUBLE_EQ(values_.lr, 1e-3);
  EXPECT_TRUE(values_.flip);
  EXPECT_EQ(values_.size, "large");
  EXPECT_FALSE(values_.kernels);
  EXPECT_EQ(values_.resume, "there");
}

TEST_F(Flags, ATextMayBeReadAtOnceAndLeftOut) {
  EXPECT_EQ(parse({}), 0) << err_;
  EXPECT_EQ(values_.length, 2);
  EXPECT_EQ(parse({"--length", "abc"}), 0) << err_;
  EXPECT_EQ(values_.length, 3);
  EXPECT_EQ(parse({"--length"}), 0) << err_;
  EXPECT_EQ(values_.length, 5);
  const auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  const std::string path = folder.path("flags.toml");
  const auto parsed = [&](const char* text) {
    base::value_or_throw(base::write_file_atomically(path, text));
    return parse({"--config", path});
  };
  EXPECT_EQ(parsed("length = \"abcd\"\n"), 0) << err_;
  EXPECT_EQ(values_.length, 4);
  EXPECT_EQ(parsed("length = true\n"), 0) << err_;
  EXPECT_EQ(values_.length, 5);
}

// What the verbs of the cloud and of the data need: arguments, lists, limits and words of the help.
class Rows : public testing::Test {
 protected:
  int parse(std::vector<std::string> words) {
    zones_.clear();
    words_.clear();
    words.insert(words.begin(), {"sluice", "make"});
    std::vector<char*> line;
    for (std::string& word : words) line.push_back(word.data());
    line.push_back(nullptr);
    CLI::App program("", "sluice");
    program.option_defaults()->always_capture_default();
    const Verb make = {.name = "make",
                       .help = "Make it",
                       .add_flags = [&](CLI::App& app) { add_flags(app, rows()); },
                       .run = [] { return 0; }};
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int status = parse_and_run(program, {make}, static_cast<int>(words.size()), line.data());
    out_ = testing::internal::GetCapturedStdout();
    err_ = testing::internal::GetCapturedStderr();
    page_ = flags_page(program);
    return status;
  }

  std::vector<Flag> rows() {
    return {Flag{"", "FROM TO", Words{&words_, 2, 3}, "", "Places"}.required(),
            Flag{"", "--zones", TextList{&zones_}, "", "Zones, a,b"},
            Flag{"Limits", "--cost", &cost_, "$", "At most"}.above_zero().shown("none"),
            Flag{"Limits", "--wait", &wait_, "s", "So long"}.zero_or_more(),
            Flag{"", "--worker", &worker_, "", "One worker"}.shown("all"),
            Flag{"", "--by", &by_, "", "Sums"}.one_of({"env", "owner"}),
            Flag{"",
                 "--limit",
                 base::TakenNumber{[this](std::int64_t mib) { limit_ = mib << 20; }},
                 "MiB",
                 "Memory",
                 {1, 1000}},
            Flag{"", "--pipe", base::TakenSwitch{[this] { pipes_ = true; }}, "", "Run commands"},
            Flag{"", "--column", RepeatedText{&columns_}, "", "A column"}.called("NAME[=END]"),
            Flag{"", "!--no-check", &check_, "", "Do not look"},
            Flag{"", "--secret", &secret_, "", ""}.hidden()};
  }

  std::vector<std::string> words_, zones_, columns_;
  double cost_ = 0, wait_ = 1.5;
  std::optional<int> worker_;
  std::string by_;
  std::int64_t limit_ = 0;
  bool pipes_ = false, check_ = true, secret_ = false;
  std::string out_, err_, page_;
};

TEST_F(Rows, FillTheirValues) {
  EXPECT_EQ(parse({"a",        "b",        "--zones",  "x,y",  "--zones=z",  "--cost",  "2.5", "--wait",
                   "0",        "--worker", "3",        "--by", "owner",      "--limit", "7",   "--pipe",
                   "--column", "i=jpg",    "--column", "l",    "--no-check", "--secret"}),
            0)
      << err_;
  EXPECT_EQ(words_, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(zones_, (std::vector<std::string>{"x", "y", "z"}));
  EXPECT_EQ(columns_, (std::vector<std::string>{"i=jpg", "l"}));
  EXPECT_EQ(cost_, 2.5);
  EXPECT_EQ(wait_, 0);
  EXPECT_EQ(worker_, 3);
  EXPECT_EQ(by_, "owner");
  EXPECT_EQ(limit_, 7 << 20);
  EXPECT_TRUE(pipes_ && !check_ && secret_);
  // One value of a list or of a repeated flag each time: what follows is an argument.
  EXPECT_EQ(parse({"--zones", "x", "a", "--column", "c", "b"}), 0) << err_;
  EXPECT_EQ(words_, (std::vector<std::string>{"a", "b"}));
}

TEST_F(Rows, RefuseWhatTheyDoNotTake) {
  EXPECT_EQ(parse({}), 2);
  EXPECT_EQ(parse({"a"}), 2);
  EXPECT_EQ(parse({"a", "b", "c", "d"}), 2);
  for (const auto& [flag, value] : {std::pair{"--cost", "0"},
                                    {"--cost", "-1"},
                                    {"--wait", "-1"},
                                    {"--worker", "x"},
                                    {"--limit", "1001"},
                                    {"--by", "zone"}}) {
    EXPECT_EQ(parse({"a", "b", flag, value}), 2) << flag << " " << value;
    EXPECT_THAT(err_, HasSubstr(flag)) << value;
  }
}

TEST_F(Rows, SayOnThePageWhatTheyTake) {
  parse({"a", "b"});
  EXPECT_THAT(page_, HasSubstr("\n| `FROM TO` | text (required) |  |  | Places |\n"));
  EXPECT_THAT(page_, HasSubstr("| `--zones` | text |  |  | Zones, a,b |\n"));
  EXPECT_THAT(page_, HasSubstr("\n### Limits (make)\n"));
  EXPECT_THAT(page_, HasSubstr("| `--cost` | number, above 0 | `none` | $ | At most |\n"));
  EXPECT_THAT(page_, HasSubstr("| `--wait` | number, 0 or more | `1.5` | s | So long |\n"));
  EXPECT_THAT(page_, HasSubstr("| `--worker` | whole number | `all` |  | One worker |\n"));
  EXPECT_THAT(page_, HasSubstr("| `--by` | `env` or `owner` |  |  | Sums |\n"));
  EXPECT_THAT(page_, HasSubstr("| `--limit` | whole number in [1 - 1000] |  | MiB | Memory |\n"));
  EXPECT_THAT(page_, HasSubstr("| `--column` | NAME[=END] |  |  | A column |\n"));
  EXPECT_THAT(page_, HasSubstr("| `--no-check` |  |"));
  EXPECT_THAT(page_, testing::Not(HasSubstr("secret")));
}

TEST_F(Flags, MayBeGivenSeveralTimes) {
  EXPECT_EQ(parse({"--mix", "a=1", "--flip", "--mix", "b,c=2"}), 0) << err_;
  EXPECT_EQ(values_.mix, (std::vector<std::string>{"a=1", "b,c=2"}));
  EXPECT_EQ(parse({"--mix", "a=1", "b=2"}), 2);
  const auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  const std::string path = folder.path("flags.toml");
  base::value_or_throw(base::write_file_atomically(path, "mix = [\"a=1\", \"b=2\"]\n"));
  values_.mix.clear();
  EXPECT_EQ(parse({"--config", path}), 0) << err_;
  EXPECT_EQ(values_.mix, (std::vector<std::string>{"a=1", "b=2"}));
}

TEST_F(Flags, AFileNamesProgramsOnlyWhereItIsTrusted) {
  const auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  const std::string path = folder.path("flags.toml");
  const auto parsed = [&](const std::string& text, std::vector<std::string> more) {
    base::value_or_throw(base::write_file_atomically(path, text));
    more.insert(more.begin(), {"--config", path});
    return parse(std::move(more));
  };
  for (const char* const text :
       {"plugin = \"/tmp/evil.so\"", "plugin = \"evil.so\"", "train = \"pipe:touch x\"",
        "train = \"a.tar::pipe:touch x\"", "train = [\"a.tar\", \"pipe:touch x\"]",
        "[make]\ntrain = \"pipe:touch x\"", "allow-pipe = true"}) {
    EXPECT_EQ(parsed(text, {}), 2) << text;
    EXPECT_THAT(err_, HasSubstr("give --trust-config if you trust this file"));
    EXPECT_EQ(parsed(text, {"--trust-config"}), 0) << text << err_;
  }
  // A file cannot trust itself; the line's own words need no trust, and names are not programs.
  EXPECT_EQ(parsed("trust-config = true\nplugin = \"/tmp/evil.so\"", {}), 2);
  EXPECT_EQ(parsed("plugin = \"/tmp/evil.so\"", {"--plugin", "cpu"}), 0) << err_;
  EXPECT_EQ(parsed("plugin = \"cuda\"\ntrain = \"data/pipe:x.tar\"", {}), 0) << err_;
}

TEST_F(Flags, LeaveTheDefaultsAndShowThem) {
  EXPECT_EQ(parse({}), 0) << err_;
  EXPECT_EQ(values_.size, "small");
  EXPECT_TRUE(values_.kernels);
  EXPECT_THAT(text_, HasSubstr("batch-size=128\n"));
  EXPECT_EQ(parse({"--help"}), 0);
  for (const char* line :
       {"--batch-size INT:INT in [1 - 1000]=128", "Per replica [samples]", "--size small|large=small",
        "--kernels on|off=on", "--lr FLOAT=0.1", "\nRecipe:\n"})
    EXPECT_THAT(out_, HasSubstr(line));
}

TEST_F(Flags, WrongValuesAreWrongUsage) {
  EXPECT_EQ(parse({"--batch-size", "0"}), 2);
  EXPECT_THAT(err_, HasSubstr("--batch-size"));
  EXPECT_EQ(parse({"--size", "huge"}), 2);
  EXPECT_THAT(err_, HasSubstr("sluice: --size is small or large, not huge"));
  EXPECT_EQ(parse({"--bach-size", "3"}), 2);
  EXPECT_THAT(err_, HasSubstr("did you mean --batch-size?"));
}

TEST_F(Flags, ComeFromAFileWhereTheCommandLineIsSilent) {
  const auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  const std::string path = folder.path("flags.toml");
  base::value_or_throw(base::write_file_atomically(
      path, "batch_size = 32\nsize = \"large\"\n[make]\nlr = 0.5\nflip = true\nseed = 9\n"));
  EXPECT_EQ(parse({"--config", path, "--seed", "10"}), 0) << err_;
  EXPECT_EQ(values_.batch, 32);
  EXPECT_EQ(values_.size, "large");
  EXPECT_DOUBLE_EQ(values_.lr, 0.5);
  EXPECT_TRUE(values_.flip);
  EXPECT_EQ(values_.seed, 10u);
  base::value_or_throw(base::write_file_atomically(path, "size = \"huge\"\n"));
  EXPECT_EQ(parse({"--config", path}), 2);
  EXPECT_THAT(err_, HasSubstr(path + ":1: --size is small or large, not huge"));
  base::value_or_throw(base::write_file_atomically(path, "bach_size = 3\n"));
  EXPECT_EQ(parse({"--config", path}), 2);
  EXPECT_THAT(err_, HasSubstr("unknown key bach_size; did you mean batch-size?"));
}

TEST_F(Flags, WrongTypesInAFileAreAnsweredWithTheirLine) {
  const auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  const std::string path = folder.path("flags.toml");
  const auto error = [&](const std::string& text) {
    base::value_or_throw(base::write_file_atomically(path, text));
    EXPECT_EQ(parse({"--config", path}), 2) << text;
    return err_;
  };
  EXPECT_EQ(error("flip = true\nworkers = \"ten\"\n"),
            "sluice: " + path + ":2: --workers: expected a whole number, found 'ten'\n");
  EXPECT_THAT(error("workers = 1.5\n"), HasSubstr(":1: --workers: expected a whole number, found '1.5'"));
  EXPECT_THAT(error("lr = true\n"), HasSubstr(":1: --lr: expected a number, found 'true'"));
  EXPECT_THAT(error("lr = \"\"\n"), HasSubstr(":1: --lr: expected a number, found nothing"));
  EXPECT_THAT(error("batch_size = 0\n"), HasSubstr(":1: --batch-size: expected 1 to 1000, found 0"));
  EXPECT_THAT(error("flip = \"maybe\"\n"),
              HasSubstr("--flip: expected no value, true or false, found 'maybe'"));
  EXPECT_THAT(error("\n\nseed = {a = 1}\n"), HasSubstr(path + ":3: the value of seed must be a text"));
  EXPECT_THAT(error("\nbach_size = 3\n"), HasSubstr(path + ":2: unknown key bach_size"));
  EXPECT_THAT(error("seed = = 3\n"), HasSubstr(path + ":1: "));
  EXPECT_EQ(parse({"--config", folder.path("none.toml")}), 2);
  EXPECT_THAT(err_, HasSubstr("none.toml does not exist: expected a TOML file\n"));
  EXPECT_EQ(parse({"--config", folder.path("")}), 2);
  EXPECT_THAT(err_, HasSubstr(": expected a TOML file, found a folder\n"));
}

TEST_F(Flags, EmptyTextsInAFileAreTexts) {
  const auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  base::value_or_throw(base::write_file_atomically(folder.path("flags.toml"), "text = \"\"\n"));
  EXPECT_EQ(parse({"--config", folder.path("flags.toml")}), 0) << err_;
  EXPECT_EQ(values_.text, "");
}

TEST_F(Flags, HaveALineOnThePage) {
  parse({});
  EXPECT_THAT(page_, HasSubstr("\n## sluice make\n\nMake it.\n"));
  EXPECT_THAT(page_, HasSubstr("\n### Data (make)\n"));
  EXPECT_THAT(
      page_, HasSubstr("| `--batch-size` | `batch_size` | whole number in [1 - 1000] | `128` | samples | Per "
                       "replica |\n"));
  EXPECT_THAT(page_, HasSubstr("| `--size` | `size` | `small` or `large` | `small` |  | How large |\n"));
  EXPECT_THAT(page_, HasSubstr("| `--flip` | `flip` |  |  |  | Mirror |\n"));
}

}  // namespace
}  // namespace sluice::cli
