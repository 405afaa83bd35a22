// fuzz_programs: random programs on the xla device against LibTorch's CPU. README.md says what it checks;
// --help how it is called.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "sluice/base/clock.h"
#include "sluice/device/device.h"
#include "tests/common/program.h"
#include "tests/fuzz/programs/program.h"

namespace sluice::fuzz {
namespace {

constexpr char kHelp[] = R"(Usage: fuzz_programs [--count N] [--seed S] [option]…

Makes random programs of two to eight operations, runs each on LibTorch's CPU, on the xla device as one program, and
on the device with a cut after each operation, and compares values, special values, gradients and errors.

  --count N          make N programs (1000)
  --seed S           make the programs of seed S (1)
  --first N          begin with program N (0)
  --replay S:N       run only program N of seed S, and print it
  --ops PART[,PART]… use only operations whose name contains one of these
  --seconds N        begin no further batch after N seconds (0: no limit)
  --batch N          record N programs before a cut (64)
  --apart N          run every Nth batch with a cut after each operation (8); what differs always
  --jobs N           share the programs among N processes (1)
  --kernels on|off   use the CPU kernels or XLA's code alone (on)
  --plugin FILE      use this PJRT plugin
  --shrink N         shrink the first N differences of a kind (1; 0: none)
  --list             print the operations that are left out
  --help             print this text
Exit status: 0 without differences, 1 with some, 2 for a wrong call.
)";

struct Options {
  int64_t count = 1000, first = 0;
  uint64_t seed = 1;
  bool replay = false, list = false;
  std::string ops, plugin;
  double seconds = 0;
  int64_t batch = 64, jobs = 1, shrink = 1, apart = 8;
  int64_t part = 0, parts = 1;
  bool kernels = true;
};

// LibTorch warns of what these programs do.
class Quiet : public c10::WarningHandler {
 public:
  void process(const c10::Warning&) override {}
};

class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

int64_t whole(const std::string& flag, const std::string& text, int64_t low) {
  char* end = nullptr;
  errno = 0;
  const int64_t value = std::strtoll(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || errno != 0 || value < low)
    throw UsageError(flag + " needs a whole number of at least " + std::to_string(low) + ", found '" + text +
                     "'");
  return value;
}

void set_flag(Options& options, const std::string& flag, const std::string& value) {
  if (flag == "--count") {
    options.count = whole(flag, value, 0);
  } else if (flag == "--seed") {
    options.seed = static_cast<uint64_t>(whole(flag, value, 0));
  } else if (flag == "--first") {
    options.first = whole(flag, value, 0);
  } else if (flag == "--replay") {
    const size_t colon = value.find(':');
    if (colon == std::string::npos) throw UsageError("--replay needs SEED:NUMBER, found '" + value + "'");
    options.seed = static_cast<uint64_t>(whole(flag, value.substr(0, colon), 0));
    options.first = whole(flag, value.substr(colon + 1), 0);
    options.count = 1;
    options.replay = true;
  } else if (flag == "--ops") {
    options.ops = value;
  } else if (flag == "--seconds") {
    options.seconds = static_cast<double>(whole(flag, value, 0));
  } else if (flag == "--batch") {
    options.batch = whole(flag, value, 1);
  } else if (flag == "--apart") {
    options.apart = whole(flag, value, 1);
  } else if (flag == "--jobs") {
    options.jobs = whole(flag, value, 1);
  } else if (flag == "--shrink") {
    options.shrink = whole(flag, value, 0);
  } else if (flag == "--plugin") {
    options.plugin = value;
  } else if (flag == "--kernels") {
    if (value != "on" && value != "off") throw UsageError("--kernels needs on or off, found '" + value + "'");
    options.kernels = value == "on";
  } else if (flag == "--part") {
    const size_t bar = value.find('/');
    options.part = whole(flag, value.substr(0, bar), 0);
    options.parts = bar == std::string::npos ? 1 : whole(flag, value.substr(bar + 1), 1);
  } else {
    throw UsageError("unknown option " + flag + "; --help lists them");
  }
}

std::optional<Options> parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--help") {
      std::fputs(kHelp, stdout);
      return std::nullopt;
    }
    if (flag == "--list") {
      options.list = true;
      continue;
    }
    if (flag.rfind("--", 0) != 0) throw UsageError("expected an option, found '" + flag + "'");
    if (i + 1 == argc) throw UsageError("a value is missing after " + flag);
    set_flag(options, flag, argv[++i]);
  }
  return options;
}

struct Case {
  Program program;
  Expected expected;
  Outcome together, apart;
  bool ran_apart = false;
};

struct Finding {
  Difference difference;
  bool together = false, apart = false;  // which way of running differs
};

class Fuzzer {
 public:
  explicit Fuzzer(const Options& options)
      : options_(options), catalogue_(SLUICE_SAMPLES, options.ops), known_(SLUICE_DEVICE_PAGE) {
    if (catalogue_.rows() == 0)
      throw UsageError("--ops " + options.ops + ": no operation has this in its name");
  }

  int run() {
    if (options_.list) {
      for (const std::string& name : catalogue_.left_out()) std::printf("%s\n", name.c_str());
      return 0;
    }
    DeviceOptions device;
    device.devices = 1;
    device.cache = false;
    device.host_shapes = false;
    device.cpu_kernels = options_.kernels;
    if (!options_.plugin.empty()) device.plugin = options_.plugin;
    sluice::init(device);
    const base::Stopwatch watch;
    std::vector<std::unique_ptr<Case>> cases;
    double said = 0;
    for (int64_t i = options_.part; i < options_.count; i += options_.parts) {
      if (options_.seconds > 0 && watch.seconds() > options_.seconds) break;
      const base::Stopwatch making;
      auto one = std::make_unique<Case>();
      try {
        one->program = make_program(catalogue_, known_, options_.seed, options_.first + i);
        one->expected = expect(one->program);
      } catch (const std::exception& error) {
        std::printf("LibTorch cannot compare program %llu:%lld: %.200s\n",
                    static_cast<unsigned long long>(options_.seed),
                    static_cast<long long>(options_.first + i), error.what());
        continue;
      }
      cpu_seconds_ += making.seconds();
      ++programs_;
      operations_ += static_cast<int64_t>(one->program.steps.size());
      if (options_.replay) std::printf("%s", as_code(one->program, one->expected.plain).c_str());
      if (!one->expected.plain.error.empty()) {
        ++refused_;
        run_refused(*one);
        continue;
      }
      cases.push_back(std::move(one));
      if (static_cast<int64_t>(cases.size()) < options_.batch) continue;
      flush(cases);
      if (watch.seconds() - said > 10) {
        said = watch.seconds();
        std::printf("%lld programs, %.0f a second, %lld differences\n", static_cast<long long>(programs_),
                    static_cast<double>(programs_) / said, static_cast<long long>(differences_));
        std::fflush(stdout);
      }
    }
    flush(cases);
    report(watch.seconds());
    sluice::shutdown();
    return differences_ == 0 && programs_ > 0 ? 0 : 1;
  }

 private:
  using Cases = std::vector<Case*>;

  void flush(std::vector<std::unique_ptr<Case>>& cases) {
    Cases all;
    for (const auto& one : cases) all.push_back(one.get());
    const base::Stopwatch watch;
    run_together(all);
    together_seconds_ += watch.seconds();
    // What differs is run both ways; of the others each batch so often.
    if (batches_++ % options_.apart == 0) run_apart(all);
    apart_seconds_ += watch.seconds();
    for (Case* one : all) {
      auto finding = judge(*one);
      if (finding && !one->ran_apart) {
        run_apart({one});
        finding = judge(*one);
      }
      if (finding) found(*one, *finding);
    }
    cases.clear();
  }

  // One program of all of them; halves when it fails.
  void run_together(const Cases& cases) {
    if (cases.empty()) return;
    std::vector<std::unique_ptr<Execution>> executions;
    for (Case* one : cases) {
      auto execution = std::make_unique<Execution>(one->program, at::Device(at::kXLA, 0));
      for (size_t i = 0; i < one->program.steps.size() && execution->step(i); ++i) {
      }
      execution->gradients();
      execution->finish();
      executions.push_back(std::move(execution));
    }
    try {
      sluice::sync_and_wait();
      for (size_t i = 0; i < cases.size(); ++i) cases[i]->together = executions[i]->bring();
    } catch (const std::exception& error) {
      executions.clear();
      if (cases.size() == 1) {
        cases[0]->together.error = error.what();
        return;
      }
      const auto middle = cases.begin() + static_cast<std::ptrdiff_t>(cases.size() / 2);
      run_together(Cases(cases.begin(), middle));
      run_together(Cases(middle, cases.end()));
    }
  }

  // The same operation number of all of them at a time, with a cut behind it.
  void run_apart(const Cases& cases) {
    if (cases.empty()) return;
    std::vector<std::unique_ptr<Execution>> executions;
    size_t steps = 0;
    try {
      for (Case* one : cases) {
        executions.push_back(std::make_unique<Execution>(one->program, at::Device(at::kXLA, 0)));
        steps = std::max(steps, one->program.steps.size());
      }
      for (size_t i = 0; i < steps; ++i) {
        for (size_t k = 0; k < cases.size(); ++k) {
          if (i < cases[k]->program.steps.size()) executions[k]->step(i);
        }
        sluice::sync_and_wait();
      }
      for (const auto& execution : executions) {
        execution->gradients();
        execution->finish();
      }
      sluice::sync_and_wait();
      for (size_t i = 0; i < cases.size(); ++i) {
        cases[i]->apart = executions[i]->bring();
        cases[i]->ran_apart = true;
      }
    } catch (const std::exception& error) {
      executions.clear();
      if (cases.size() == 1) {
        cases[0]->apart.error = error.what();
        cases[0]->ran_apart = true;
        return;
      }
      const auto middle = cases.begin() + static_cast<std::ptrdiff_t>(cases.size() / 2);
      run_apart(Cases(cases.begin(), middle));
      run_apart(Cases(middle, cases.end()));
    }
  }

  void run_refused(Case& one) {
    run_together({&one});
    if (const auto finding = judge(one)) found(one, *finding);
  }

  std::optional<Difference> unexplained(const Case& one, const Outcome& outcome) {
    auto difference = compare(one.program, one.expected, outcome);
    if (!difference || !known_.explains(one.program, *difference)) return difference;
    ++explained_;
    return std::nullopt;
  }

  std::optional<Finding> judge(const Case& one) {
    const auto together = unexplained(one, one.together);
    const auto apart = one.ran_apart ? unexplained(one, one.apart) : std::nullopt;
    if (!together && !apart) return std::nullopt;
    return Finding{together ? *together : *apart, together.has_value(), apart.has_value()};
  }

  std::optional<Finding> alone(const Program& program, Case& one) {
    one.program = program;
    one.expected = expect(program);
    run_together({&one});
    if (one.expected.plain.error.empty()) run_apart({&one});
    return judge(one);
  }

  void found(const Case& one, const Finding& finding) {
    ++differences_;
    const std::string key = chain(one.program, finding.difference) + " | " + finding.difference.kind;
    const std::string rough = rough_key(one.program, finding);
    if (++seen_[rough] > options_.shrink) {
      ++kinds_["(not shrunk) " + rough];
      return;
    }
    Case small;
    Program program = one.program;
    auto again = alone(program, small);
    if (!again) {
      std::printf("DIFFERENCE %s, in its batch only: %s\n", key.c_str(), finding.difference.text.c_str());
    } else {
      const std::string kind = finding.difference.kind;
      const base::Stopwatch shrinking;
      program = shrink(
          program,
          [&](const Program& smaller) {
            if (shrinking.seconds() > 20) return false;
            try {
              Case trial;
              const auto differs = alone(smaller, trial);
              return differs && differs->difference.kind == kind && differs->together == finding.together &&
                     differs->apart == finding.apart;
            } catch (const std::exception&) {
              return false;  // no program that can be compared
            }
          },
          150);
      again = alone(program, small);
    }
    const Finding& shown = again ? *again : finding;
    const std::string name = chain(program, shown.difference) + ": " + shown.difference.kind +
                             (shown.together && shown.apart ? ""
                              : shown.together              ? " (one program)"
                                                            : " (an operation a program)");
    ++kinds_[name];
    std::printf("DIFFERENCE %s\n  --replay %llu:%lld%s\n%s", name.c_str(),
                static_cast<unsigned long long>(options_.seed), static_cast<long long>(one.program.number),
                options_.ops.empty() ? "" : (" --ops " + options_.ops).c_str(),
                as_code(program, small.expected.plain).c_str());
    std::printf("  // %s %d, element %lld: %s\n",
                shown.difference.step < static_cast<int>(program.steps.size()) ? "r" : "gradient",
                shown.difference.step < static_cast<int>(program.steps.size()) ? shown.difference.step
                                                                               : shown.difference.index,
                static_cast<long long>(shown.difference.element), shown.difference.text.c_str());
    std::fflush(stdout);
  }

  static std::string rough_key(const Program& program, const Finding& finding) {
    const Difference& difference = finding.difference;
    std::string name = "gradient";
    if (difference.step >= 0 && difference.step < static_cast<int>(program.steps.size()))
      name = program.steps[static_cast<size_t>(difference.step)].op;
    if (name == "gradient" && !program.steps.empty()) name += " " + program.steps.back().op;
    return name + " " + difference.kind +
           (finding.together && finding.apart ? ""
            : finding.together                ? " (one program)"
                                              : " (apart)");
  }

  void report(double seconds) {
    std::vector<std::pair<int64_t, std::string>> order;
    for (const auto& [name, count] : kinds_) order.emplace_back(-count, name);
    std::sort(order.begin(), order.end());
    for (const auto& [count, name] : order)
      std::printf("KIND %5lld  %s\n", static_cast<long long>(-count), name.c_str());
    int64_t fallbacks = 0;
    for (const auto& [op, count] : sluice::fallback_counts()) fallbacks += count;
    std::printf(
        "seconds: LibTorch %.1f, one program %.1f, an operation a program %.1f; known differences %lld\n",
        cpu_seconds_, together_seconds_, apart_seconds_ - together_seconds_,
        static_cast<long long>(explained_));
    std::printf(
        "rows %zu, programs %lld, operations %lld, refused by LibTorch %lld, fallbacks %lld, differences "
        "%lld; %.1f programs a second\n",
        catalogue_.rows(), static_cast<long long>(programs_), static_cast<long long>(operations_),
        static_cast<long long>(refused_), static_cast<long long>(fallbacks),
        static_cast<long long>(differences_), static_cast<double>(programs_) / seconds);
  }

  Options options_;
  Catalogue catalogue_;
  Known known_;
  int64_t programs_ = 0, operations_ = 0, refused_ = 0, differences_ = 0, explained_ = 0, batches_ = 0;
  double together_seconds_ = 0, apart_seconds_ = 0, cpu_seconds_ = 0;
  std::map<std::string, int64_t> seen_, kinds_;
};

// The same program again for each part.
int run_jobs(const Options& options, int argc, char** argv) {
  std::vector<pid_t> children;
  for (int64_t job = 0; job < options.jobs; ++job) {
    std::vector<std::string> words(argv, argv + argc);
    words.insert(words.end(),
                 {"--jobs", "1", "--part", std::to_string(job) + "/" + std::to_string(options.jobs)});
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    pid_t child = 0;
    if (posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, arguments.data(), environ) != 0)
      throw std::runtime_error("cannot start a process");
    children.push_back(child);
  }
  int worst = 0;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    worst = std::max(worst, WIFEXITED(status) ? WEXITSTATUS(status) : 3);
  }
  return worst;
}

int run(int argc, char** argv) {
  const auto options = parse(argc, argv);
  if (!options) return 0;
  if (options->jobs > 1) return run_jobs(*options, argc, argv);
  at::set_num_threads(1);
  Quiet quiet;
  c10::WarningUtils::set_warning_handler(&quiet);
  return Fuzzer(*options).run();
}

}  // namespace
}  // namespace sluice::fuzz

int main(int argc, char** argv) {
  return sluice::tests::run_program("fuzz_programs", sluice::fuzz::run, argc, argv);
}
