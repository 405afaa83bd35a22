// Runs each program of examples/gallery for a few steps on the device and on LibTorch's CPU: the same losses,
// no fallback, and no new program after the third step.
//   GALLERY_DIGITS: the file of handwritten digits
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <optional>
#include <sstream>

#include "tests/device/support.h"
#include "tests/gallery/gallery_programs.h"

namespace sluice::tests {
namespace {

constexpr const char* kSteps = "5";

// What a program printed, and how many programs the device had at the end of each line.
class Lines : public std::streambuf {
 public:
  struct Line {
    std::string text;
    int64_t programs = 0;
  };

  Lines() : previous_(std::cout.rdbuf(this)) {}
  ~Lines() override { std::cout.rdbuf(previous_); }
  const std::vector<Line>& get() const { return lines_; }

 protected:
  int_type overflow(int_type c) override {
    if (c != '\n') {
      open_.push_back(static_cast<char>(c));
      return c;
    }
    lines_.push_back({open_, is_initialized() ? counters().programs : 0});
    open_.clear();
    return c;
  }

 private:
  std::streambuf* previous_;
  std::string open_;
  std::vector<Line> lines_;
};

struct Outcome {
  int status = -1;
  std::vector<double> losses;
  std::vector<int64_t> programs;  // of the device, at each loss
  std::optional<double> metric;
};

// The metric in "vae on xla: loss 31.2, test nats 30.1, 2.1 s, 1.3 ms a step".
double metric_of(const std::string& text) {
  const size_t begin = text.find(", ") + 2, end = text.find(", ", begin);
  const std::string field = text.substr(begin, end - begin);
  return std::strtod(field.c_str() + field.rfind(' '), nullptr);
}

Outcome outcome_of(int status, const std::vector<Lines::Line>& lines) {
  Outcome outcome{status, {}, {}, {}};
  for (const auto& line : lines) {
    int step = 0;
    double loss = 0;
    if (std::sscanf(line.text.c_str(), "step %d loss %lf", &step, &loss) == 2) {
      outcome.losses.push_back(loss);
      outcome.programs.push_back(line.programs);
    }
    if (line.text.find(": loss ") != std::string::npos) outcome.metric = metric_of(line.text);
  }
  return outcome;
}

Outcome run(const GalleryProgram& program, std::string device) {
  std::string name = program.name, steps = kSteps, digits = std::getenv("GALLERY_DIGITS");
  std::array<std::string, 6> flags = {"--device", std::move(device), "--steps", steps, "--digits", digits};
  std::vector<char*> arguments = {name.data()};
  for (std::string& flag : flags) arguments.push_back(flag.data());
  const Lines lines;
  const int status = program.main(static_cast<int>(arguments.size()), arguments.data());
  return outcome_of(status, lines.get());
}

// Programs that need other bounds, and why. The losses of all others agree to 1e-3.
GalleryProgram with_bounds(GalleryProgram program) {
  if (program.name == "reinforce") program.more_programs = 2;  // one for each padded length of the episodes
  return program;
}

std::vector<GalleryProgram> all_programs() {
  std::vector<GalleryProgram> all;
  for (const auto& part : {gallery_part_1(), gallery_part_2(), gallery_part_3(), gallery_part_4()})
    for (const GalleryProgram& program : part) all.push_back(with_bounds(program));
  return all;
}

class Gallery : public testing::TestWithParam<GalleryProgram> {};

TEST_P(Gallery, HasTheCpusLossesWithoutFallbacksAndRecompiles) {
  const GalleryProgram& program = GetParam();
  if (std::getenv("GALLERY_DIGITS") == nullptr) GTEST_SKIP() << "GALLERY_DIGITS names no file";
  torch::set_num_threads(1);
  const Outcome expected = run(program, "cpu");
  const int64_t fallbacks = counters().fallbacks;
  const Outcome found = run(program, "xla");
  EXPECT_EQ(expected.status, 0);
  EXPECT_EQ(found.status, 0);
  ASSERT_EQ(expected.losses.size(), 5);
  ASSERT_EQ(found.losses.size(), 5);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_NEAR(found.losses[i], expected.losses[i], program.tolerance * std::abs(expected.losses[i]))
        << "step " << i + 1;
  }
  EXPECT_GT(std::abs(expected.losses.front() - expected.losses.back()), 1e-4) << "it learns nothing";
  ASSERT_TRUE(expected.metric && found.metric);
  EXPECT_NEAR(*found.metric, *expected.metric, program.metric_tolerance * (0.1 + std::abs(*expected.metric)));
  EXPECT_EQ(counters().fallbacks, fallbacks) << metrics_report();
  EXPECT_LE(found.programs.back() - found.programs[2], program.more_programs) << metrics_report();
}

INSTANTIATE_TEST_SUITE_P(All, Gallery, testing::ValuesIn(all_programs()),
                         [](const auto& info) { return info.param.name; });

// The reader of digits refuses what is no file of digits.
TEST(GalleryDigits, DamagedFilesAreErrors) {
  const std::string path = testing::TempDir() + "/gallery_digits_" + std::to_string(getpid()) + ".csv";
  const auto read = [&](const std::string& text) {
    std::ofstream(path) << text;
    const auto digits = gallery::read_digits(path);
    return digits.train_labels.size(0) + digits.test_labels.size(0);
  };
  std::string row;
  for (int i = 0; i < 64; ++i) row += std::to_string(i % 17) + ",";
  std::string rows;
  for (int label = 0; label < 10; ++label) rows += row + std::to_string(label) + "\n";
  EXPECT_EQ(read(rows), 10);
  for (const std::string& bad : {row + "10\n", row + "-1\n", row + "\n", "17," + row + "3\n",
                                 std::string("digits\n"), std::string(600, '1') + "\n"})
    EXPECT_THROW(read(bad), std::runtime_error) << bad;
  std::remove(path.c_str());
  EXPECT_THROW(gallery::read_digits(path), std::runtime_error);
}

TEST(GalleryFlagsDeathTest, WrongFlagsEndTheProgram) {
  for (std::vector<std::string> flags : {std::vector<std::string>{"--steps", "0"},
                                         {"--steps", "five"},
                                         {"--steps"},
                                         {"--device", "cuda"},
                                         {"--digits"},
                                         {"--batch", "5"}}) {
    std::string name = "program";
    std::vector<char*> arguments = {name.data()};
    for (std::string& flag : flags) arguments.push_back(flag.data());
    EXPECT_EXIT(gallery::Run("program", static_cast<int>(arguments.size()), arguments.data(), 5),
                testing::ExitedWithCode(2), "usage: program .*found --");
  }
}

}  // namespace
}  // namespace sluice::tests
