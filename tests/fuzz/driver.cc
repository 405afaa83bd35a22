// Runs a fuzz target without libFuzzer: the corpus as it is, then a bounded number of seeded mutations of it.
//
//   fuzz_x CORPUS [INPUTS [SEED]]     input number n depends on SEED, n and the corpus alone
//
// An input may take a minute, and the process 2 GiB of memory: more is a failure.
//
// An input that makes the target fail is written to crash-x in the current folder: `fuzz_x crash-x` runs it
// alone.
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "sluice/base/random.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));

namespace {

std::string current, crash_file;

void keep_input() {
  if (std::FILE* file = std::fopen(crash_file.c_str(), "wb")) {
    std::fwrite(current.data(), 1, current.size(), file);
    std::fclose(file);
    std::fprintf(stderr, "the input is in %s\n", crash_file.c_str());
  }
}

void on_abort(int) {
  keep_input();
  std::_Exit(1);
}

constexpr unsigned kSeconds = 60;   // for one input
constexpr long kMemory = 2L << 20;  // KiB

void on_alarm(int) {
  std::fprintf(stderr, "it takes more than %u s\n", kSeconds);
  on_abort(0);
}

// The peak only grows: the first input behind which it is too high is the one that took it there.
void check_memory() {
  rusage used{};
  if (getrusage(RUSAGE_SELF, &used) != 0 || used.ru_maxrss <= kMemory) return;
  std::fprintf(stderr, "it takes %ld MiB of memory: expected at most %ld\n", used.ru_maxrss >> 10,
               kMemory >> 10);
  on_abort(0);
}

void run(std::string input) {
  current = std::move(input);
  alarm(kSeconds);
  // A copy of exactly this size, so that a read beyond its end is seen.
  const std::vector<std::uint8_t> bytes(current.begin(), current.end());
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  alarm(0);
  check_memory();
}

std::string piece_of(const std::string& bytes, sluice::base::Random& random) {
  if (bytes.empty()) return "";
  const std::size_t at = random.below(bytes.size());
  return bytes.substr(at, 1 + random.below(std::min<std::size_t>(64, bytes.size() - at)));
}

void mutate_once(std::string& input, const std::vector<std::string>& corpus, sluice::base::Random& random) {
  static constexpr unsigned char kInteresting[] = {0, 1, 0x7f, 0x80, 0xff, ' ', '0', '9', '{', '}', '.', '/'};
  const std::size_t at = input.empty() ? 0 : random.below(input.size());
  switch (random.below(7)) {
    case 0:
      if (!input.empty()) input[at] = static_cast<char>(input[at] ^ (1 << random.below(8)));
      break;
    case 1:
      if (!input.empty()) input[at] = static_cast<char>(kInteresting[random.below(std::size(kInteresting))]);
      break;
    case 2:
      input.insert(at, 1, static_cast<char>(kInteresting[random.below(std::size(kInteresting))]));
      break;
    case 3:
      input.erase(at, 1 + random.below(16));
      break;
    case 4:
      input.insert(at, piece_of(input, random));
      break;
    case 5:
      input.replace(at, random.below(16), piece_of(corpus[random.below(corpus.size())], random));
      break;
    case 6:
      if (random.below(4) == 0) input.resize(at);
      break;
  }
}

std::vector<std::string> read_corpus(const std::string& place) {
  std::vector<std::filesystem::path> paths;
  if (std::filesystem::is_directory(place)) {
    for (const auto& entry : std::filesystem::directory_iterator(place)) paths.push_back(entry.path());
  } else {
    paths.emplace_back(place);
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> corpus;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return corpus;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s CORPUS [INPUTS [SEED]]\n", argv[0]);
    return 2;
  }
  crash_file = "crash-" + std::filesystem::path(argv[0]).filename().string();
  signal(SIGABRT, on_abort);
  signal(SIGALRM, on_alarm);
  if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(keep_input);
  const auto corpus = read_corpus(argv[1]);
  if (corpus.empty()) {
    std::fprintf(stderr, "%s: no inputs\n", argv[1]);
    return 2;
  }
  for (const std::string& input : corpus) run(input);
  const std::uint64_t inputs = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0;
  const std::uint64_t seed = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 0;
  for (std::uint64_t number = 0; number < inputs; ++number) {
    sluice::base::Random random({seed, number});
    std::string input = corpus[random.below(corpus.size())];
    for (std::uint64_t changes = 1 + random.below(4); changes > 0; --changes)
      mutate_once(input, corpus, random);
    run(std::move(input));
  }
  std::printf("%zu inputs of the corpus and %llu mutations\n", corpus.size(),
              static_cast<unsigned long long>(inputs));
}
