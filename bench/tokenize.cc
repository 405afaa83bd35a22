// How fast texts are encoded, on one thread.
//
//   bench_tokenize TOKENIZER TEXTS SECONDS     TEXTS: a text a line
//
// Encodes all texts, as many times as fit into SECONDS after a pass that is not counted, and prints
// {"megabytes_per_cpu_second": …, "first_pass": …, "tokens": …}: the first pass alone too, in which no word
// was seen before, and the tokens of one pass.
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sluice/base/files/file.h"
#include "sluice/base/result.h"
#include "sluice/base/text/strings.h"
#include "sluice/text/tokenizer.h"

namespace {

double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

}  // namespace

int main(int argc, char** argv) {
  using namespace sluice;
  if (argc != 4) {
    std::cerr << "usage: bench_tokenize TOKENIZER TEXTS SECONDS\n";
    return 2;
  }
  try {
    const auto tokenizer = text::Tokenizer::load(argv[1]);
    const auto lines = base::split(base::value_or_throw(base::read_file(argv[2])), '\n');
    double megabytes = 0;
    for (const std::string& line : lines) megabytes += static_cast<double>(line.size()) / 1e6;
    std::vector<std::uint32_t> ids;
    const auto pass = [&] {
      ids.clear();
      for (const std::string& line : lines) tokenizer.append_ids(line, ids);
    };
    double begin = processor_seconds();
    pass();
    const double first = processor_seconds() - begin;
    begin = processor_seconds();
    int passes = 0;
    do {
      pass();
      ++passes;
    } while (processor_seconds() - begin < std::atof(argv[3]));
    std::cout << nlohmann::json{{"megabytes_per_cpu_second",
                                 megabytes * passes / (processor_seconds() - begin)},
                                {"first_pass", megabytes / first},
                                {"tokens", ids.size()}}
                     .dump()
              << "\n";
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
