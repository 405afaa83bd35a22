// The conformance program: README.md says what it checks.
#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "sluice/base/clock.h"
#include "tests/common/program.h"
#include "tests/common/under_test.h"
#include "tests/conformance/check.h"
#include "tests/conformance/choose.h"
#include "tests/conformance/sample.h"
#ifdef SLUICE_HAVE_OPS
#include "sluice/ops/families.h"
#endif

namespace sluice::conformance {
namespace {

struct Options {
  std::string device = "xla";
  std::string folder = SLUICE_SAMPLES;
  Choice choice;
  Break damage = Break::kNone;
  int replicas = 1;
  double seconds = 0;  // after which no further sample begins; 0: all
  bool list = false;
  bool everything = false;
};

Options parse_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    std::string flag = argv[i];
    if (flag == "--list") {
      options.list = true;
      continue;
    }
    if (flag == "--everything") {
      options.everything = true;
      continue;
    }
    if (i + 1 == argc) throw std::runtime_error("a value is missing after " + flag);
    std::string value = argv[++i];
    if (options.choice.read(flag, value)) continue;
    if (flag == "--device") {
      options.device = value;
    } else if (flag == "--samples") {
      options.folder = value;
    } else if (flag == "--replicas") {
      options.replicas = std::stoi(value);
    } else if (flag == "--seconds") {
      options.seconds = std::stod(value);
    } else if (flag == "--break") {
      options.damage = break_named(value);
    } else {
      throw std::runtime_error("unknown option " + flag + " (see README.md)");
    }
  }
  return options;
}

// The rows that this run answers for, by name.
std::vector<std::string> rows_of(const Choice& choice) {
  std::vector<std::string> names;
#ifdef SLUICE_HAVE_OPS
  // The device's own rows are no operations of LibTorch; tests/device runs them.
  const auto is_libtorchs = [](const ops::Row& row) { return row.name.rfind("aten::", 0) == 0; };
  auto take = [&](const char* file, std::span<const ops::Row> rows) {
    if (!choice.takes_file(file)) return;
    for (const ops::Row& row : rows) {
      if (is_libtorchs(row) && choice.takes_op(std::string(row.name))) names.emplace_back(row.name);
    }
  };
  take("pointwise", ops::pointwise_rows());
  take("polynomial", ops::polynomial_rows());
  take("activation", ops::activation_rows());
  take("compare", ops::compare_rows());
  take("reduce", ops::reduce_rows());
  take("matmul", ops::matmul_rows());
  take("convolution", ops::convolution_rows());
  take("pooling", ops::pooling_rows());
  take("normalization", ops::normalization_rows());
  take("softmax", ops::softmax_rows());
  take("attention", ops::attention_rows());
  take("loss", ops::loss_rows());
  take("index", ops::index_rows());
  take("shape", ops::shape_rows());
  take("create", ops::create_rows());
  take("random", ops::random_rows());
  take("resample", ops::resample_rows());
  // A run of everything also answers for rows of families that it does not know by name.
  if (choice.files.empty()) {
    std::set<std::string> known(names.begin(), names.end());
    for (const ops::Row& row : ops::rows()) {
      if (is_libtorchs(row) && choice.takes_op(std::string(row.name)) &&
          known.insert(std::string(row.name)).second) {
        names.emplace_back(row.name);
      }
    }
  }
#else
  (void)choice;
#endif
  return names;
}

bool has_row([[maybe_unused]] const std::string& op) {
#ifdef SLUICE_HAVE_OPS
  return ops::find_row(op) != nullptr;
#else
  return true;
#endif
}

// Most of a run's time is the compiler's. An emit function treats f64 as it does f32, and operands that are
// views reach it as values, so do those of the in-place and out forms: f64 is for a row's first sample and
// for special values. The checker leaves out forms and views for the same reason.
void leave_out_repetitions(std::vector<Sample>& samples) {
  std::set<std::string> seen;
  for (Sample& sample : samples) {
    const bool is_first = seen.insert(sample.op).second;
    if (is_first || sample.file == "special" || sample.dtypes.size() == 1) continue;
    sample.dtypes.erase(std::remove(sample.dtypes.begin() + 1, sample.dtypes.end(), "f64"),
                        sample.dtypes.end());
  }
}

// Rows without a sample, and samples without a row.
int64_t check_table(const std::vector<std::string>& rows, const std::vector<Sample>& samples,
                    const Choice& choice) {
  int64_t failures = 0;
  std::set<std::string> sampled;
  for (const Sample& sample : samples) {
    sampled.insert(sample.op);
    if (!choice.takes_file(sample.file) || !choice.takes_op(sample.op)) continue;
    if (!sample.norow && !has_row(sample.op)) {
      std::printf("FAIL %s: there is no such row (option norow, if that is meant)\n", sample.where().c_str());
      ++failures;
    }
  }
  for (const std::string& row : rows) {
    if (sampled.count(row) > 0) continue;
    std::printf("FAIL %s: the row has no sample\n", row.c_str());
    ++failures;
  }
  return failures;
}

int run(int argc, char** argv) {
  Options options = parse_options(argc, argv);
  std::vector<Sample> samples = read_folder(options.folder);
  if (!options.everything) leave_out_repetitions(samples);
  std::vector<std::string> rows = rows_of(options.choice);
  if (options.list) {
    for (const Sample& sample : samples) std::printf("%s\n", sample.where().c_str());
    return 0;
  }
  int64_t failures = check_table(rows, samples, options.choice);
  const std::vector<const Sample*> chosen = chosen_samples(samples, options.choice);
  at::set_num_threads(1);
  const base::Stopwatch watch;
  tests::start(options.device, options.replicas);
  Checker checker(tests::device(), options.damage, options.replicas, options.everything);
  for (const Sample* sample : chosen) {
    if (options.seconds > 0 && watch.seconds() > options.seconds) break;
    checker.add(*sample);
  }
  checker.flush();
  tests::finish();
  const Report& report = checker.report();
  failures += report.failures;
  if (report.samples < static_cast<int64_t>(chosen.size()))
    std::printf("not begun in %g s: %lld samples\n", options.seconds,
                static_cast<long long>(chosen.size()) - static_cast<long long>(report.samples));
  std::printf("calls %lld, skipped %lld\n", static_cast<long long>(report.calls),
              static_cast<long long>(report.skipped));
  std::printf("rows %zu, samples %lld, fallbacks %lld, failures %lld\n", rows.size(),
              static_cast<long long>(report.samples), static_cast<long long>(report.fallbacks),
              static_cast<long long>(failures));
  return failures == 0 && report.samples > 0 ? 0 : 1;
}

}  // namespace
}  // namespace sluice::conformance

int main(int argc, char** argv) {
  return sluice::tests::run_program("conformance", sluice::conformance::run, argc, argv);
}
