// Every row of sluice/ops, compiled ahead of time for TPU slices or GPUs: what the CPU's compiler takes,
// theirs take.
//
// Usage: sluice_conformance_ahead --worker PROGRAM [--slice v3-8]… [--file reduce]… [--filter softmax]
//   [--every N]
// One sample of each row, one program for the one slice and the next for the other, and those of the Fourier
// transforms in f64 too; with --every N, every Nth row only; with SLUICE_TEST_AHEAD=all all samples, in bf16
// and f64 too, for each slice (more than a quarter of an hour of one core). Status 77 when the compiler of a
// slice (libtpu; for h100 and other GPUs XLA's CUDA plugin) is not installed.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "sluice/device/device.h"
#include "sluice/device/program/ahead.h"
#include "sluice/estimate/ahead_worker.h"
#include "sluice/estimate/peak.h"
#include "sluice/pjrt/machine/find_plugin.h"
#include "tests/common/program.h"
#include "tests/conformance/call.h"
#include "tests/conformance/choose.h"
#include "tests/conformance/sample.h"

namespace sluice::conformance {
namespace {

// Calls in one program: the compiler starts once for all of them.
constexpr size_t kCallsInProgram = 32;

struct Options {
  std::string worker, filter;
  std::vector<std::string> slices, files;
  bool all = false;
  size_t every = 1;
};

struct Case {
  const Sample* sample;
  std::string dtype;
  bool gradients = true;
  std::string name() const { return sample->where() + " in " + dtype; }
};

Options parse_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i], value = argv[i + 1];
    if (flag == "--worker") options.worker = value;
    if (flag == "--filter") options.filter = value;
    if (flag == "--slice") options.slices.push_back(value);
    if (flag == "--every") options.every = std::stoul(value);
    if (flag == "--file") options.files.push_back(value);
  }
  if (options.slices.empty()) options.slices = {"v3-8", "v6e-1"};
  const char* all = std::getenv("SLUICE_TEST_AHEAD");
  options.all = all != nullptr && std::string_view(all) == "all";
  if (options.worker.empty()) throw std::runtime_error("--worker is missing");
  return options;
}

std::vector<Sample> read_all() {
  std::vector<Sample> samples = read_folder(SLUICE_SAMPLES);
  std::erase_if(samples, [](const Sample& sample) { return sample.file == "self"; });
  return samples;
}

// What libtpu does not compile: docs/compile.md names it, and the error names the operation.
bool is_known(const Sample& sample, const std::string& why) {
  const auto says = [&](std::string_view words) { return why.find(words) != std::string::npos; };
  if (sample.file == "matmul") return says("a TPU has no products of matrices of 64-bit integers");
  return sample.file == "fft" && says("a TPU has no Fourier transforms of f64") && says("aten::_fft_");
}

// The first element type of each sample, bf16, in which a TPU multiplies, and f64; else of each operation's
// first sample alone, in bf16 where it can be. Those in f64 come last, because some of them are refused.
std::vector<Case> cases_of(const std::vector<Sample>& samples, const Options& options) {
  std::vector<Case> cases, wide;
  std::set<std::string> seen;
  for (const Sample& sample : samples) {
    if (sample.fallback || sample.throws || sample.op.find(options.filter) == std::string::npos) continue;
    if (!options.files.empty() &&
        std::find(options.files.begin(), options.files.end(), sample.file) == options.files.end())
      continue;
    // What LibTorch decomposes is made of rows that have samples of their own.
    if (!options.all && (sample.norow || !seen.insert(sample.op).second)) continue;
    const auto& types = sample.dtypes;
    const auto has = [&](const char* type) {
      return sample.dtypes[0] != type && std::find(types.begin(), types.end(), type) != types.end();
    };
    const bool in_bf16 = has_floats(sample) && has("bf16");
    if (options.all || !in_bf16) cases.push_back({&sample, sample.dtypes[0]});
    if (in_bf16) cases.push_back({&sample, "bf16"});
    if (has_floats(sample) && has("f64") && (options.all || sample.file == "fft"))
      wide.push_back({&sample, "f64"});
  }
  if (!options.all && options.every > 1) {
    size_t place = 0;
    std::erase_if(cases, [&](const Case&) { return place++ % options.every != 0; });
  }
  cases.insert(cases.end(), wide.begin(), wide.end());
  return cases;
}

// The call with its gradient. Its error is that of LibTorch, or that it read a value.
Outcome record(const Case& one) {
  const auto op = find_op(one.sample->op);
  if (!op) {
    Outcome none;
    none.error = "LibTorch has no op of this name";
    return none;
  }
  Inputs inputs = make_inputs(*one.sample, op->schema(), {one.dtype, one.sample->itypes[0]}, View::kPlain);
  const bool gradients =
      one.gradients && !one.sample->nograd && !one.sample->random && !one.sample->gradfallback;
  if (gradients) probe_gradients(*op, inputs);
  return call(*op, inputs, {at::Device(at::kXLA, 0), false, gradients});
}

struct Lowered {
  std::string text;
  std::vector<Case> cases;  // those in the text
  std::vector<std::string> skipped;
};

// Records the cases in one program; false if one had to be left out. A host read loses all that was recorded
// before it, so the others have to be recorded again.
bool lower_once(Lowered& lowered, std::string_view device_kind) {
  device::Ahead ahead(1, /*explicit_nan=*/false, device_kind);
  std::vector<Outcome> kept;  // the results stay reachable
  std::vector<Case> left;
  bool whole = true;
  for (Case one : lowered.cases) {
    Outcome outcome = record(one);
    const std::string error = outcome.error.empty() ? outcome.gradient_error : outcome.error;
    if (!error.empty()) {
      const bool of_gradient = outcome.error.empty();
      lowered.skipped.push_back((of_gradient ? "the gradient of " : "") + one.name() + ": " +
                                error.substr(0, error.find('\n')));
      whole = false;
      one.gradients = false;
      if (!of_gradient) continue;
    }
    left.push_back(one);
    kept.push_back(std::move(outcome));
  }
  lowered.cases = std::move(left);
  if (!whole) return false;
  sync("cases");
  lowered.text = ahead.text("cases");
  return true;
}

Lowered lower_cases(const std::vector<Case>& cases, std::string_view device_kind) {
  Lowered lowered;
  lowered.cases = cases;
  while (!lower_once(lowered, device_kind)) {
  }
  return lowered;
}

class AheadRun {
 public:
  explicit AheadRun(Options options) : options_(std::move(options)) {}

  // Compiles the cases as one program; when it is refused, halves it until the guilty ones are alone.
  void compile(const estimate::TpuSlice& slice, const std::vector<Case>& cases) {
    const Lowered lowered = lower_cases(cases, estimate::device_kind_of(*slice.generation));
    skipped_.insert(lowered.skipped.begin(), lowered.skipped.end());
    if (lowered.text.empty()) return;
    const auto report = estimate::compile_in_worker({options_.worker}, {slice, lowered.text});
    ++programs_;
    if (report && report->fits) {
      compiled_ += lowered.cases.size();
      return;
    }
    if (lowered.cases.size() == 1) {
      const std::string why = report ? "does not fit" : report.error().what();
      if (is_known(*lowered.cases[0].sample, why)) {
        ++known_;
        return;
      }
      std::printf("REFUSED %s for %s: %s\n", lowered.cases[0].name().c_str(), slice.name.c_str(),
                  why.substr(0, 1500).c_str());
      std::fflush(stdout);
      ++refused_;
      return;
    }
    const auto begin = lowered.cases.begin(), end = lowered.cases.end();
    const auto middle = begin + (end - begin) / 2;
    compile(slice, {begin, middle});
    compile(slice, {middle, end});
  }

  int run(const std::vector<Case>& cases) {
    for (size_t s = 0; s < options_.slices.size(); ++s) {
      const auto slice = base::value_or_throw(estimate::find_slice(options_.slices[s]));
      for (size_t i = 0; i < cases.size(); i += kCallsInProgram) {
        if (!options_.all && i / kCallsInProgram % options_.slices.size() != s) continue;
        const size_t end = std::min(cases.size(), i + kCallsInProgram);
        compile(slice, {cases.begin() + static_cast<std::ptrdiff_t>(i),
                        cases.begin() + static_cast<std::ptrdiff_t>(end)});
      }
    }
    for (const std::string& line : skipped_) std::printf("SKIPPED %s\n", line.c_str());
    std::printf("cases %zu, slices %zu, programs %zu, compiled %zu, skipped %zu, refused %zu and %zu known\n",
                cases.size(), options_.slices.size(), programs_, compiled_, skipped_.size(), refused_,
                known_);
    return refused_ == 0 && compiled_ > 0 ? 0 : 1;
  }

 private:
  Options options_;
  size_t programs_ = 0, compiled_ = 0, refused_ = 0, known_ = 0;
  std::set<std::string> skipped_;
};

int run(int argc, char** argv) {
  const Options options = parse_options(argc, argv);
  for (const std::string& name : options.slices) {
    const auto slice = base::value_or_throw(estimate::find_slice(name));
    const auto plugin = pjrt::find_plugin(slice.plugin, pjrt::plugin_search_folders());
    if (plugin) continue;
    std::printf("%s: %s\n", name.c_str(),
                slice.plugin == "tpu" ? estimate::kInstallLibtpu : plugin.error().what());
    return 77;
  }
  at::set_num_threads(1);
  init();
  const std::vector<Sample> samples = read_all();
  return AheadRun(options).run(cases_of(samples, options));
}

}  // namespace
}  // namespace sluice::conformance

int main(int argc, char** argv) {
  return sluice::tests::run_program("conformance", sluice::conformance::run, argc, argv);
}
