#include "tests/conformance/judge.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "tests/common/under_test.h"

namespace sluice::conformance {
namespace {

bool unsupported(const std::string& error) {
  return error.find("not implemented for") != std::string::npos ||
         error.find("not supported") != std::string::npos || error.find("Could not run") != std::string::npos;
}

std::string compare_one(const Open& open, const at::Tensor& found, const at::Tensor& expected,
                        const at::Tensor* wide, bool kinds, double tolerance) {
  if (kinds || !expected.defined()) {
    std::string message = compare_kind(expected, found);
    if (!message.empty()) return message;
  } else if (!found.defined() || found.sizes() != expected.sizes()) {
    return "another shape than in f64";
  }
  if (!expected.defined()) return "";
  if (!open.values) return compare_statistics(expected, found);
  Tolerance limit{tolerance, open.sample->bits};
  std::string message = compare_values(expected, found, limit);
  if (!message.empty() && wide != nullptr && compare_values(*wide, found, limit).empty()) message.clear();
  return message;
}

class Judge {
 public:
  explicit Judge(const Open& open) : open_(open) {}

  Verdict verdict() {
    judge_call();
    return std::move(verdict_);
  }

 private:
  void fail(const std::string& message) { verdict_.messages.push_back(message); }

  // What LibTorch refuses, the device must refuse; except for types that its CPU does not have.
  void judge_refused() {
    const std::string& what = open_.what;
    const bool form = what.find("in place") != std::string::npos || what.find("out") != std::string::npos;
    if (!form) fail("the reference refused: " + first_line(open_.expected.error));
    if (form && open_.found.error.empty())
      fail("expected an error as on the CPU: " + first_line(open_.expected.error));
  }

  void judge_call() {
    const bool native = open_.expected.error.empty();
    if (!native && open_.sample->throws) {
      if (open_.found.error.empty()) fail("expected an error as on the CPU, found none");
      return;
    }
    if (open_.sample->throws) fail("LibTorch does not refuse this call");
    const bool wide = open_.has_wide && open_.wide.error.empty();
    if (!native && !open_.main && unsupported(open_.expected.error)) {
      verdict_.skipped = true;
      if (!wide) return;
    } else if (!native) {
      return judge_refused();
    }
    if (!open_.found.error.empty()) return fail("refused: " + first_line(open_.found.error));
    if (!open_.found.same_tensor) fail("the tensor returned is not the tensor passed");
    judge_values(native, wide);
  }

  void judge_values(bool native, bool wide) {
    const Outcome& expected = native ? open_.expected : open_.wide;
    const double tolerance = open_.sample->tolerance_in(open_.dtype);
    const Outcome none;
    const Outcome& other = wide ? open_.wide : none;
    const Outcome& found = open_.found;
    compare("result", found.results, expected.results, other.results, native, tolerance);
    if (open_.values)
      compare("argument afterwards", found.bases, expected.bases, other.bases, native, tolerance);
    if (!open_.gradients || !expected.gradient_error.empty()) return;
    if (!found.gradient_error.empty()) return fail("backward refused: " + first_line(found.gradient_error));
    compare("gradient", found.gradients, expected.gradients, other.gradients, native,
            tolerance * open_.sample->gradient_factor);
  }

  void compare(const std::string& what, const std::vector<at::Tensor>& found,
               const std::vector<at::Tensor>& expected, const std::vector<at::Tensor>& wide, bool kinds,
               double tolerance) {
    if (found.size() != expected.size())
      return fail(what + "s: expected " + std::to_string(expected.size()) + ", found " +
                  std::to_string(found.size()));
    const auto& only = open_.sample->results;
    for (size_t i = 0; i < found.size(); ++i) {
      const bool chosen =
          only.empty() || std::find(only.begin(), only.end(), static_cast<int64_t>(i)) != only.end();
      if (what == "result" && !chosen) continue;
      const at::Tensor* second = wide.size() == found.size() && wide[i].defined() ? &wide[i] : nullptr;
      const std::string message = compare_one(open_, found[i], expected[i], second, kinds, tolerance);
      if (!message.empty()) fail(what + " " + std::to_string(i) + ": " + message);
    }
  }

  const Open& open_;
  Verdict verdict_;
};

}  // namespace

Open open_call(const Sample& sample, const Inputs& inputs, const std::string& what) {
  Open open;
  open.sample = &sample;
  open.dtype = inputs.types.floating;
  open.what = what;
  open.has_wide = inputs.types.floating == "bf16" || inputs.types.floating == "f16";
  open.values = !sample.random;
  return open;
}

Verdict judge(const Open& open) { return Judge(open).verdict(); }

void make_dense(std::vector<at::Tensor>& tensors) {
  for (at::Tensor& tensor : tensors) {
    if (!tensor.defined()) continue;
    bool whole = tensor.is_contiguous() &&
                 tensor.storage().nbytes() == static_cast<size_t>(tensor.numel()) * tensor.element_size();
    if (!whole) tensor = tensor.clone(at::MemoryFormat::Contiguous);
  }
}

std::string error_of_program() {
  try {
    tests::sync();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

std::string first_line(const std::string& text) {
  return text.substr(0, std::min(text.find('\n'), size_t{300}));
}

}  // namespace sluice::conformance
