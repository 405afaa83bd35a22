// What the programs of the gallery share: the flags, the handwritten digits, and the lines that they print.
#pragma once

#include <torch/torch.h>
#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace gallery {

// 8 × 8 images, float [count, 1, 8, 8] from 0 to 1, and their digits, int64 [count].
struct Digits {
  torch::Tensor train_images, train_labels;
  torch::Tensor test_images, test_labels;
};

// Reads lines of 64 grey values from 0 to 16 and a digit, compressed by gzip or not. The last fifth is the
// test set; it is by other writers.
inline Digits read_digits(const std::string& path) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (!file) throw std::runtime_error("cannot open " + path + ": name the file with --digits FILE");
  std::vector<float> pixels;
  std::vector<int64_t> labels;
  char line[512];
  while (gzgets(file.get(), line, sizeof line) != nullptr) {
    const char* next = line;
    const char* const end = line + std::string_view(line).size();
    int value = 0;
    for (int column = 0; column < 65; ++column) {
      const auto [rest, error] = std::from_chars(next, end, value);
      if (error != std::errc() || value < 0 || value > (column < 64 ? 16 : 9))
        throw std::runtime_error(path + ": line " + std::to_string(labels.size() + 1) +
                                 " has no 64 grey values and a digit");
      if (column < 64) pixels.push_back(static_cast<float>(value) / 16);
      next = rest + (rest < end && *rest == ',');
    }
    labels.push_back(value);
  }
  const auto count = static_cast<int64_t>(labels.size()), tests = count / 5;
  if (tests == 0) throw std::runtime_error(path + " has fewer than five digits");
  const auto images = torch::tensor(pixels).view({count, 1, 8, 8});
  const auto classes = torch::tensor(labels);
  return {images.slice(0, 0, count - tests), classes.slice(0, 0, count - tests),
          images.slice(0, count - tests), classes.slice(0, count - tests)};
}

// Draws up to eight grey images, [count, 1, height, width] from 0 to 1, next to each other.
inline void draw(const torch::Tensor& images) {
  const auto pixels = images.slice(0, 0, 8).detach().to(torch::kCPU, torch::kFloat).contiguous();
  const auto value = pixels.accessor<float, 4>();
  for (int64_t row = 0; row < value.size(2); ++row) {
    for (int64_t image = 0; image < value.size(0); ++image) {
      for (int64_t column = 0; column < value.size(3); ++column) {
        const float grey = value[image][0][row][column];
        std::cout << " .:-=+*#%@"[grey > 0 ? static_cast<int>(std::min(grey, 1.0F) * 9 + 0.5F) : 0];
      }
      std::cout << "  ";
    }
    std::cout << "\n";
  }
}

// One run of a program: its flags, its progress and its last line.
class Run {
 public:
  // Reads --device cpu|xla, --steps N and --digits FILE, and seeds LibTorch's generator. Ends the program
  // with status 2 if the flags are wrong.
  Run(std::string name, int argc, char** argv, int64_t default_steps)
      : steps(default_steps), name_(std::move(name)) {
    for (int i = 1; i < argc; i += 2) {
      const std::string flag = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
      if (!set(flag, value)) {
        std::cerr << "usage: " << name_ << " [--device cpu|xla] [--steps N] [--digits digits.csv.gz]\n"
                  << "found " << flag << " " << value << "; N is at least 1\n";
        std::exit(2);
      }
    }
    torch::manual_seed(7);
  }

  torch::Device device = torch::Device("xla:0");
  int64_t steps;

  Digits digits() const { return read_digits(digits_); }

  // Prints the loss of about ten steps of a run, and reads it only then. Call it after each step.
  void log(int64_t step, const torch::Tensor& loss) {
    if (step < kWarmUp) warm_ = Clock::now();
    if ((step + 1) % std::max<int64_t>(1, steps / 10) != 0 && step + 1 != steps) return;
    loss_ = loss.item<double>();
    last_ = Clock::now();
    std::cout << "step " << step + 1 << " loss " << loss_ << std::endl;
  }

  // Prints what the run reached and returns the program's status: 1 if the loss is not finite.
  int done(const char* metric, double value) const {
    const double per_step =
        milliseconds(warm_, last_) / static_cast<double>(std::max<int64_t>(1, steps - kWarmUp));
    std::cout << name_ << " on " << device.type() << ": loss " << loss_ << ", " << metric << " " << value
              << ", " << milliseconds(start_, Clock::now()) / 1000 << " s, " << per_step << " ms a step"
              << std::endl;
    return std::isfinite(loss_) && std::isfinite(value) ? 0 : 1;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr int64_t kWarmUp = 3;  // steps in which programs are compiled

  static double milliseconds(Clock::time_point begin, Clock::time_point end) {
    return std::chrono::duration<double, std::milli>(end - begin).count();
  }

  bool set(const std::string& flag, const std::string& value) {
    const char* const end = value.data() + value.size();
    if (flag == "--digits") digits_ = value;
    if (flag == "--device") device = torch::Device(value == "cpu" ? "cpu" : "xla:0");
    if (flag == "--device") return value == "cpu" || value == "xla";
    if (flag == "--steps")
      return std::from_chars(value.data(), end, steps).ptr == end && !value.empty() && steps > 0;
    return flag == "--digits" && !value.empty();
  }

  std::string name_;
  std::string digits_ = ".deps/digits/digits.csv.gz";
  double loss_ = NAN;
  Clock::time_point start_ = Clock::now(), warm_ = start_, last_ = start_;
};

}  // namespace gallery
