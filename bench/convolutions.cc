// Convolutions of random shapes and their gradients, on the device beside LibTorch eager on the same cores.
//
//   bench_convolutions [shapes [seed [rounds [seconds]]]]
//   bench_convolutions - [rounds [seconds]]
//   bench_convolutions --processor-time …
//
// Prints JSON: how the ratios of eager's time and the device's are distributed, and a list of shapes, those
// on which the device does worst first, with both medians in milliseconds, their ratio, and how long the
// first run took. Some shapes of published models stand before the random ones; none is begun after
// `seconds`. With `-` the shapes are those of the lines of stdin, written as they are printed. With
// --processor-time both sides have one thread, and what counts is what the process' threads work for them,
// the recording of the step among it: so other work on the machine disturbs less.
#include <torch/torch.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "bench/against_eager.h"
#include "sluice/base/text/join.h"
#include "sluice/device/device.h"

namespace sluice::bench {
namespace {

using Ints = std::vector<int64_t>;

struct Shape {
  Ints x;       // [N, C, in…]
  int64_t out;  // channels
  int64_t kernel, stride, padding, dilation, groups;
  bool transposed;

  std::string text() const {
    return base::str(transposed ? "transposed " : "", base::join(x, "x"), " to ", out, ", kernel ", kernel,
                     ", stride ", stride, ", padding ", padding, ", dilation ", dilation, ", groups ",
                     groups);
  }
  size_t spatial() const { return x.size() - 2; }
  Ints each(int64_t number) const { return Ints(spatial(), number); }
  Ints weight() const {
    Ints dims = {transposed ? x[1] : out, (transposed ? out : x[1]) / groups};
    dims.resize(x.size(), kernel);
    return dims;
  }
  // What text() wrote.
  static Shape of(std::string text) {
    Shape s{};
    constexpr std::string_view kTransposed = "transposed ";
    s.transposed = text.starts_with(kTransposed);
    if (s.transposed) text.erase(0, kTransposed.size());
    std::istringstream in(text);
    const auto number = [&] {
      while (in && (std::isdigit(in.peek()) == 0)) in.get();
      int64_t n = -1;
      in >> n;
      return n;
    };
    do {
      s.x.push_back(number());
    } while (in.peek() == 'x');
    for (int64_t* n : {&s.out, &s.kernel, &s.stride, &s.padding, &s.dilation, &s.groups}) *n = number();
    TORCH_CHECK(s.x.size() > 2 && s.groups > 0, "expected a shape as this program prints them, found '", text,
                "'");
    return s;
  }
  // Of the result along one dimension.
  int64_t out_size(int64_t in) const {
    const int64_t reach = dilation * (kernel - 1) + 1;
    return transposed ? (in - 1) * stride - 2 * padding + reach : (in + 2 * padding - reach) / stride + 1;
  }
  // Numbers in the result.
  double results() const {
    return std::accumulate(
        x.begin() + 2, x.end(), static_cast<double>(x[0] * out),
        [&](double count, int64_t in) { return count * static_cast<double>(out_size(in)); });
  }
  // Multiplications of the forward pass.
  double work() const {
    double count = static_cast<double>(x[0] * x[1] * out / groups);
    for (size_t d = 2; d < x.size(); ++d)
      count *= static_cast<double>(kernel * (transposed ? x[d] : out_size(x[d])));
    return count;
  }
};

MakeCase convolution(const Shape& s) {
  return [s](torch::Device device) {
    Case made;
    made.parameters = {random_parameter(s.x, device), random_parameter(s.weight(), device),
                       random_parameter({s.out}, device)};
    made.operation = [s, p = made.parameters] {
      return torch::convolution(p[0], p[1], p[2], s.each(s.stride), s.each(s.padding), s.each(s.dilation),
                                s.transposed, s.each(0), s.groups);
    };
    return made;
  };
}

// DCGAN's generator, fully convolutional networks for segmentation (32 and 16 times up), a decoder of
// volumes, depthwise and dilated layers.
const std::vector<Shape> kPublished = {
    {{16, 100, 1, 1}, 256, 4, 1, 0, 1, 1, true},  {{16, 128, 16, 16}, 64, 4, 2, 1, 1, 1, true},
    {{1, 21, 8, 8}, 21, 64, 32, 16, 1, 1, true},  {{1, 21, 16, 16}, 21, 32, 16, 8, 1, 1, true},
    {{1, 9, 28, 28, 28}, 3, 5, 3, 0, 1, 1, true}, {{4, 16, 12, 12, 12}, 8, 4, 2, 1, 1, 1, true},
    {{8, 96, 28, 28}, 96, 3, 2, 1, 1, 96, false}, {{4, 64, 33, 33}, 64, 3, 1, 12, 12, 1, false},
    {{8, 3, 96, 96}, 64, 7, 2, 3, 1, 1, false},   {{8, 1, 8000}, 64, 80, 16, 0, 1, 1, false},
    {{8, 64, 500}, 64, 16, 8, 4, 1, 1, true},     {{2, 8, 16, 56, 56}, 8, 3, 1, 1, 1, 8, false},
};

template <typename T>
T pick(std::mt19937& random, const std::vector<T>& from) {
  return from[random() % from.size()];
}

// Of a size that eager does in some milliseconds, or in a few hundred where the result is large.
Shape random_shape(std::mt19937& random) {
  while (true) {
    Shape s{};
    const auto spatial = 1 + random() % 3;
    const int64_t channels = pick<int64_t>(random, {1, 3, 4, 8, 12, 16, 21, 32, 48, 64});
    s.out = pick<int64_t>(random, {1, 3, 4, 8, 12, 16, 21, 32, 48, 64});
    s.groups = pick<int64_t>(random, {1, 1, 1, 2, 4, channels});
    s.x = {pick<int64_t>(random, {1, 2, 4, 8}), channels};
    for (size_t d = 0; d < spatial; ++d)
      s.x.push_back(spatial == 1 ? pick<int64_t>(random, {64, 250, 1000, 4000})
                                 : pick<int64_t>(random, {5, 8, 13, 16, 28, 56}));
    s.kernel = pick<int64_t>(random, {1, 2, 3, 3, 4, 5, 7, 11});
    s.stride = pick<int64_t>(random, {1, 1, 2, 2, 3, 4, 8});
    s.dilation = pick<int64_t>(random, {1, 1, 1, 2, 3});
    s.transposed = random() % 2 == 0;
    s.padding = static_cast<int64_t>(random() % static_cast<unsigned>(s.kernel));
    const bool fits = std::all_of(s.x.begin() + 2, s.x.end(), [&](int64_t in) { return s.out_size(in) > 0; });
    if (channels % s.groups == 0 && s.out % s.groups == 0 && fits && s.work() > 2e6 && s.work() < 3e8 &&
        s.results() < 1e8)
      return s;
  }
}

// What the ratios are, which are sorted.
nlohmann::json distribution(const std::vector<nlohmann::json>& found) {
  const auto at = [&](double part) {
    return found[static_cast<size_t>(part * static_cast<double>(found.size() - 1))]["eager_by_device"];
  };
  const auto below = [&](double ratio) {
    return std::count_if(found.begin(), found.end(),
                         [&](const nlohmann::json& times) { return times["eager_by_device"] < ratio; });
  };
  return {{"shapes", found.size()}, {"least", at(0)},
          {"5%", at(0.05)},         {"25%", at(0.25)},
          {"median", at(0.5)},      {"75%", at(0.75)},
          {"below_1", below(1)},    {"slower_than_1.5_eager", below(1 / 1.5)}};
}

std::vector<Shape> shapes_of_stdin() {
  std::vector<Shape> shapes;
  for (std::string line; std::getline(std::cin, line);) shapes.push_back(Shape::of(line));
  return shapes;
}

std::vector<Shape> random_shapes(int count, int seed) {
  std::mt19937 random(static_cast<unsigned>(seed));
  std::vector<Shape> shapes = kPublished;
  for (; count > 0; --count) shapes.push_back(random_shape(random));
  return shapes;
}

int run(int argc, char** argv) {
  const bool processor_time = argc > 1 && argv[1] == std::string_view("--processor-time");
  if (processor_time) {
    --argc, ++argv;
    ::setenv("OMP_NUM_THREADS", "1", 1);
  }
  const bool reads = argc > 1 && argv[1] == std::string_view("-");
  const auto argument = [&](int i, int otherwise) { return argc > i ? std::atoi(argv[i]) : otherwise; };
  const std::vector<Shape> shapes =
      reads ? shapes_of_stdin() : random_shapes(argument(1, 40), argument(2, 1));
  const int rounds = argument(reads ? 2 : 3, 5), seconds = argument(reads ? 3 : 4, 86'400);
  torch::set_num_threads(processor_time ? 1 : kThreads);
  init();
  std::vector<nlohmann::json> found;
  const base::Stopwatch watch;
  for (const Shape& shape : shapes) {
    if (watch.seconds() > seconds) break;
    nlohmann::json times =
        compare(convolution(shape),
                {.count = rounds, .together = 4, .seconds = 10, .processor_time = processor_time});
    times["shape"] = shape.text();
    std::cerr << "#" << times.dump() << std::endl;
    found.push_back(std::move(times));
  }
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a["eager_by_device"] < b["eager_by_device"]; });
  std::cout << nlohmann::json{{"distribution", distribution(found)},
                              {"convolutions", found},
                              {"processor_time", processor_time}}
                   .dump(2)
            << "\n";
  return 0;
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) { return sluice::bench::run(argc, argv); }
