// Every operation laid out over a mesh of four devices, beside LibTorch's CPU. tests/conformance/README.md
// says how it is called.
#include <ATen/Parallel.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <torch/version.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <thread>

#include "sluice/base/clock.h"
#include "tests/common/program.h"
#include "tests/common/under_test.h"
#include "tests/conformance/choose.h"
#include "tests/conformance/partitioned/runner.h"

extern char** environ;

namespace sluice::conformance {
namespace {

constexpr char kHelp[] =
    R"(Usage: sluice_conformance_partitioned [--file NAME]... [--filter OP[,OP]...] [option]...

Runs each operation on four CPU devices with its inputs laid out over a mesh, and compares with LibTorch's CPU.

  --file NAME        only the samples of this file
  --filter OP[,OP]   only operations whose names hold one of these
  --skip OP[,OP]     none whose names hold one of these
  --everything       all samples; else those of `partitioned`, and of each other row the first that can be laid out
  --samples DIR      samples of this folder in place of the conformance test's
  --known FILE       the table of known differences (known.txt)
  --dtype T, --part I/N, --seed N
                     as sluice_conformance has them
  --every N          only each N-th way to lay out a call
  --seconds N        after which no further sample begins
  --patience N       seconds after which a program that does not end counts as a crash (900)
  --break            lay out wrongly, which must be seen
  --help             this text
)";

struct Options {
  std::string folder = SLUICE_SAMPLES, skip;
  std::string known = SLUICE_PARTITIONED "/known.txt";
  Choice choice;
  double seconds = 0;
  int64_t patience = 900;
  bool everything = false, help = false;
  RunnerOptions runner;
  // Of a process that this program starts itself.
  std::string journal;
  size_t from = 0, to = 0;
};

bool read_switch(Options& options, const std::string& flag) {
  if (flag == "--everything") {
    options.everything = true;
  } else if (flag == "--break") {
    options.runner.broken = true;
  } else if (flag == "--alone") {
    options.runner.alone = true;
  } else if (flag == "--help") {
    options.help = true;
  } else {
    return false;
  }
  return true;
}

Options parse_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (read_switch(options, flag)) continue;
    if (i + 1 == argc) throw std::runtime_error("a value is missing after " + flag);
    const std::string value = argv[++i];
    if (options.choice.read(flag, value)) continue;
    if (flag == "--samples") {
      options.folder = value;
    } else if (flag == "--skip") {
      options.skip = value;
    } else if (flag == "--every") {
      options.runner.every = std::max<size_t>(std::stoull(value), 1);
    } else if (flag == "--known") {
      options.known = value;
    } else if (flag == "--seconds") {
      options.seconds = std::stod(value);
    } else if (flag == "--patience") {
      options.patience = std::stoll(value);
    } else if (flag == "--journal") {
      options.journal = value;
    } else if (flag == "--from") {
      options.from = std::stoull(value);
    } else if (flag == "--to") {
      options.to = std::stoull(value);
    } else {
      throw std::runtime_error("unknown option " + flag + " (see --help)");
    }
  }
  return options;
}

// This test's own samples come first: they have sizes that a mesh divides.
std::vector<Sample> all_samples(const Options& options) {
  std::vector<Sample> samples = read_folder(SLUICE_PARTITIONED "/samples");
  for (Sample& sample : read_folder(options.folder)) samples.push_back(std::move(sample));
  std::erase_if(samples, [&](const Sample& sample) {
    const bool named = !options.choice.files.empty();
    return sample.fallback || sample.throws || (sample.norow && !options.everything) ||
           (sample.file == "self" && !named) || (sample.until > 0 && TORCH_VERSION_MINOR > sample.until) ||
           holds_part(sample.op, options.skip);
  });
  return samples;
}

// Compares samples [from, to) in this process.
int work(const Options& options, const std::vector<const Sample*>& samples) {
  const Journal journal(options.journal);
  const KnownDifferences known(options.known);
  std::set<std::string> laid_out;
  for (const auto& [op, count] : journal.read().ran) laid_out.insert(op);
  const base::Stopwatch watch;
  tests::start_mesh(kTwoByTwo);
  Runner runner(tests::device(), known, journal, options.runner);
  for (size_t i = options.from; i < std::min(options.to, samples.size()); ++i) {
    const Sample& sample = *samples[i];
    const bool all = options.everything || sample.file == "partitioned" || options.runner.alone;
    if (!all && laid_out.count(sample.op) > 0) continue;
    if (options.seconds > 0 && watch.seconds() > options.seconds) {
      journal.add("time", std::to_string(i));
      break;
    }
    if (runner.add(sample, i)) laid_out.insert(sample.op);
  }
  runner.flush();
  tests::finish();
  return 0;
}

// Starts this program again for samples [from, to) and waits. Returns "" or how it ended.
class Worker {
 public:
  Worker(int argc, char** argv, const Options& options, const Journal& journal)
      : arguments_(argv, argv + argc), options_(options), journal_(journal) {}

  std::string run(size_t from, size_t to, bool alone) const {
    std::vector<std::string> words = arguments_;
    for (const std::string& word : {std::string("--journal"), journal_.path(), std::string("--from"),
                                    std::to_string(from), std::string("--to"), std::to_string(to)})
      words.push_back(word);
    if (alone) words.emplace_back("--alone");
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    pid_t child = 0;
    const int error = posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, pointers.data(), environ);
    if (error != 0) throw std::runtime_error(std::string("cannot start itself: ") + std::strerror(error));
    return how_it_ended(child);
  }

 private:
  std::string how_it_ended(pid_t child) const {
    int64_t bytes = journal_.size();
    base::Stopwatch quiet;
    int status = 0;
    while (waitpid(child, &status, WNOHANG) == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      if (const int64_t now = journal_.size(); now != bytes) {
        bytes = now;
        quiet = base::Stopwatch();
      }
      if (quiet.seconds() < static_cast<double>(options_.patience)) continue;
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return "did not end in " + std::to_string(options_.patience) + " s";
    }
    if (WIFSIGNALED(status)) return std::string("ended by a signal: ") + strsignal(WTERMSIG(status));
    return WEXITSTATUS(status) == 0 ? "" : "ended with status " + std::to_string(WEXITSTATUS(status));
  }

  std::vector<std::string> arguments_;
  const Options& options_;
  const Journal& journal_;
};

// Runs all samples. A crash costs the samples of one program: they are run again, each case as a program of
// its own, and the sample that crashes alone is reported.
void run_all(const Worker& worker, const Journal& journal, const std::vector<const Sample*>& samples) {
  struct Range {
    size_t from, to;
    bool alone;
  };
  std::vector<Range> left = {{0, samples.size(), false}};
  while (!left.empty()) {
    const Range range = left.back();
    left.pop_back();
    const std::string end = worker.run(range.from, range.to, range.alone);
    if (end.empty()) continue;
    const Progress progress = journal.read();
    if (!progress.first) throw std::runtime_error("the process that compares " + end);
    const size_t first = *progress.first, last = *progress.last;
    if (last + 1 < range.to) left.push_back({last + 1, range.to, range.alone});
    if (range.alone) {
      std::printf("FAIL %s (%s): the program %s\n", samples[last]->where().c_str(),
                  progress.last_case.c_str(), end.c_str());
      std::fflush(stdout);
      journal.add("failed", "crash");
      journal.add("ran", samples[last]->op);
    } else {
      left.push_back({first, last + 1, true});
    }
    journal.add("done");
  }
}

int64_t stale_lines(const KnownDifferences& known, const Progress& progress) {
  int64_t stale = 0;
  for (const KnownDifference& entry : known.all()) {
    if (progress.met.count(entry.line) == 0 || progress.differed.count(entry.line) > 0) continue;
    std::printf("FAIL known differences, line %d: %s | %s no longer differs: remove the line\n", entry.line,
                entry.op.c_str(), entry.part.c_str());
    ++stale;
  }
  return stale;
}

int report(const Options& options, const Progress& progress, const std::vector<const Sample*>& samples) {
  const KnownDifferences known(options.known);
  std::set<std::string> rows;
  size_t begun = progress.out_of_time_at.value_or(samples.size());
  for (size_t i = 0; i < begun; ++i) rows.insert(samples[i]->op);
  int64_t layouts = 0, without = 0;
  for (const auto& [op, count] : progress.ran) layouts += count;
  for (const std::string& row : rows) {
    if (progress.ran.count(row) > 0) continue;
    std::printf("NOT LAID OUT %s: no sample has a dimension that the mesh divides\n", row.c_str());
    ++without;
  }
  const int64_t failures = progress.failures + (options.runner.broken ? 0 : stale_lines(known, progress));
  if (begun < samples.size()) std::printf("not begun in time: %zu samples\n", samples.size() - begun);
  std::printf(
      "%lld known differences, %lld that the whole call has too, %lld samples that LibTorch refuses\n",
      static_cast<long long>(progress.known), static_cast<long long>(progress.alike),
      static_cast<long long>(progress.refused));
  std::printf("%zu rows: %lld layouts compared, %lld rows without a dimension to lay out, failures %lld\n",
              rows.size(), static_cast<long long>(layouts), static_cast<long long>(without),
              static_cast<long long>(failures));
  return failures == 0 && layouts > 0 ? 0 : 1;
}

// A file that is gone when the program ends.
class TemporaryFile {
 public:
  TemporaryFile() {
    path_ = (std::filesystem::temp_directory_path() / "partitioned.XXXXXX").string();
    const int file = mkstemp(path_.data());
    if (file < 0) throw std::runtime_error("cannot write " + path_);
    close(file);
  }
  ~TemporaryFile() { unlink(path_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

int run(int argc, char** argv) {
  const Options options = parse_options(argc, argv);
  if (options.help) {
    std::fputs(kHelp, stdout);
    return 0;
  }
  std::vector<Sample> samples = all_samples(options);
  const std::vector<const Sample*> chosen = chosen_samples(samples, options.choice);
  at::set_num_threads(1);
  if (!options.journal.empty()) return work(options, chosen);
  const TemporaryFile file;
  const Journal journal(file.path());
  run_all(Worker(argc, argv, options, journal), journal, chosen);
  return report(options, journal.read(), chosen);
}

}  // namespace
}  // namespace sluice::conformance

int main(int argc, char** argv) {
  return sluice::tests::run_program("conformance, partitioned", sluice::conformance::run, argc, argv);
}
