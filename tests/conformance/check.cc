#include "tests/conformance/check.h"

#include <ATen/ATen.h>
#include <torch/version.h>

#include <cstdio>
#include <iterator>
#include <stdexcept>

#include "tests/common/under_test.h"

namespace sluice::conformance {
namespace {

// How many calls may be open before they are compiled together: larger programs compile slower than linearly.
constexpr size_t kMaxOpen = 96;
// A sample that fails in many ways says so this often.
constexpr int kMaxLines = 4;

// To the host. With several replicas all of them must hold the same bits: the inputs are equal on all.
void bring(std::vector<at::Tensor>& tensors, int replicas) {
  for (at::Tensor& tensor : tensors) {
    if (!tensor.defined()) continue;
    at::Tensor last = replicas > 1 ? tests::value_on(tensor, replicas - 1) : at::Tensor();
    tensor = tensor.cpu();
    if (replicas > 1 && compare_values(tensor, last, {0, true}) != "")
      throw std::runtime_error("the replicas differ");
  }
}

// Whether anything but a NaN changed.
bool differs(const at::Tensor& a, const at::Tensor& b) {
  const auto plain = [](const at::Tensor& t) {
    if (t.is_complex()) return at::view_as_real(t).nan_to_num();
    return (c10::isFloat8Type(t.scalar_type()) ? t.to(at::kFloat) : t).nan_to_num();
  };
  return !at::equal(plain(a), plain(b));
}

void damage_first(std::vector<at::Tensor>& tensors, Break damage) {
  for (at::Tensor& tensor : tensors) {
    if (!tensor.defined() || tensor.numel() == 0) continue;
    if (damage == Break::kDType) {
      tensor = tensor.to(tensor.scalar_type() == at::kDouble ? at::kFloat : at::kDouble);
    } else if (damage == Break::kShape) {
      tensor = tensor.unsqueeze(0);
    } else {
      tensor = tensor.clone();
      at::Tensor one = tensor.reshape({-1}).select(0, tensor.numel() - 1);
      if (tensor.scalar_type() == at::kBool) {
        one.logical_not_();
      } else {
        one.add_(1);
      }
    }
    return;
  }
}

}  // namespace

Break break_named(const std::string& name) {
  const std::map<std::string, Break> names = {{"value", Break::kValue}, {"dtype", Break::kDType},
                                              {"shape", Break::kShape}, {"gradient", Break::kGradient},
                                              {"write", Break::kWrite}, {"identity", Break::kIdentity}};
  auto found = names.find(name);
  if (found == names.end()) throw std::runtime_error("unknown --break " + name);
  return found->second;
}

void Checker::add(const Sample& sample) {
  if (sample.until > 0 && TORCH_VERSION_MINOR > sample.until) return;
  ++report_.samples;
  if (sample.random && replicas_ > 1) return;  // random numbers differ on each replica
  auto before = tests::fallbacks();
  try {
    record(sample);
  } catch (const std::exception& error) {
    fail(sample, "sample", first_line(error.what()));
  }
  waiting_.push_back(&sample);
  std::map<std::string, int64_t> counts(before.begin(), before.end());
  for (const auto& [op, count] : tests::fallbacks()) {
    if (count == counts[op] || sample.gradfallback) continue;
    report_.fallbacks += count - counts[op];
    if (!sample.fallback) fail(sample, "fallback", op + " ran on the CPU");
  }
  if (open_.size() >= kMaxOpen) flush();
}

void Checker::record(const Sample& sample) {
  auto op = find_op(sample.op);
  if (!op) throw std::runtime_error("LibTorch has no op of this name");
  auto reference = sample.reference.empty() ? op : find_op(sample.reference);
  if (!reference) throw std::runtime_error("LibTorch has no op " + sample.reference);
  Inputs probe = make_inputs(sample, op->schema(), {sample.dtypes[0], sample.itypes[0]}, View::kPlain);
  // LibTorch's own first seed differs from run to run. Not the inputs': what is drawn would depend on them.
  at::manual_seed(probe.seed + 1'000'003);
  bool floats = false, integers = false;
  for (const auto& argument : sample.arguments) {
    auto visit = [&](const Value& value) {
      bool typed = value.kind == Value::Kind::kTensor && value.tensor.dtype.empty();
      integers = integers || (typed && value.tensor.kind == 'i');
      floats = floats || (typed && value.tensor.kind != 'i' && value.tensor.kind != 'b');
      floats = floats || (value.kind == Value::Kind::kDType && value.text == "float");
    };
    visit(argument.value);
    for (const Value& item : argument.value.items) visit(item);
  }
  bool writes = false;
  for (size_t i = 0; i < (floats ? sample.dtypes.size() : 1); ++i) {
    writes |= record_run(sample, *op, *reference, {sample.dtypes[i], sample.itypes[0]}, View::kPlain);
  }
  for (size_t i = 1; i < (integers ? sample.itypes.size() : 1); ++i) {
    record_run(sample, *op, *reference, {sample.dtypes[0], sample.itypes[i]}, View::kPlain);
  }
  if (sample.noview || sample.random || sample.throws || probe.tensors.empty()) return;
  constexpr View kViews[] = {View::kTransposed, View::kSliced, View::kExpanded};
  const View only = kViews[static_cast<size_t>(sample.line) % std::size(kViews)];
  for (View view : kViews) {
    if (!everything_ && view != only) continue;
    // Elements that share memory cannot be written.
    if (writes && view == View::kExpanded) continue;
    record_run(sample, *op, *reference, {sample.dtypes[0], sample.itypes[0]}, view);
  }
}

bool Checker::record_run(const Sample& sample, const Op& op, const Op& reference, const RunTypes& types,
                         View view) {
  Inputs inputs = make_inputs(sample, op.schema(), types, view);
  bool floats = false;
  for (const TensorInput& input : inputs.tensors)
    floats = floats || at::isFloatingType(input.base.scalar_type()) || input.base.is_complex();
  std::string what = floats || types.integer == "i64" ? types.floating : types.floating + "," + types.integer;
  if (view != View::kPlain) what += std::string(", ") + view_name(view);
  bool gradients = !sample.nograd && floats && !op.schema().is_mutable();
  Open open = open_call(sample, inputs, what);
  open.gradients = gradients;
  open.main = types.floating == sample.dtypes[0] && types.integer == sample.itypes[0];
  const bool with_forms = open.main || everything_;
  if (gradients) probe_gradients(reference, inputs);
  open.expected = call(reference, inputs, {at::kCPU, false, gradients});
  if (open.has_wide) open.wide = call(reference, inputs, {at::kCPU, true, gradients});
  open.found = call(op, inputs, {device_, false, gradients});
  if (sample.throws && open.found.error.empty()) open.found.error = error_of_program();
  ++report_.calls;
  std::vector<at::Tensor> like = open.expected.results;
  bool refused = !open.expected.error.empty();
  bool whole = true;
  for (const at::Tensor& result : like) whole = whole && result.defined();
  if (view != View::kPlain && !open.sample->anystrides) compare_all_strides(open, reference);
  make_dense(open.found.results);
  make_dense(open.found.gradients);
  bool writes = false;
  for (size_t i = 0; i < open.expected.bases.size(); ++i) {
    writes = writes || differs(open.expected.bases[i], inputs.tensors[i].base);
  }
  open_.push_back(std::move(open));
  if (!refused && sample.reference.empty() && with_forms) {
    record_forms(sample, op, inputs, what, whole ? like : decltype(like)(), view);
  }
  return writes;
}

void Checker::record_forms(const Sample& sample, const Op& op, const Inputs& inputs, const std::string& what,
                           const std::vector<at::Tensor>& like, View view) {
  auto in_place = find_in_place(op);
  bool overlapping = !inputs.tensors.empty() && inputs.tensors[0].view == View::kExpanded;
  if (in_place && !sample.noinplace && !overlapping) {
    Open open = open_call(sample, inputs, what + ", in place");
    open.expected = call_in_place(*in_place, inputs, {at::kCPU, false, false});
    if (open.has_wide) open.wide = call_in_place(*in_place, inputs, {at::kCPU, true, false});
    open.found = call_in_place(*in_place, inputs, {device_, false, false});
    make_dense(open.found.results);
    ++report_.calls;
    open_.push_back(std::move(open));
  }
  auto out = find_out(op);
  if (!out || sample.noout || like.empty() || view != View::kPlain) return;
  for (bool shaped : {false, true}) {
    Open open = open_call(sample, inputs, what + (shaped ? ", out" : ", empty out"));
    open.expected = call_out(*out, inputs, {at::kCPU, false, false}, like, shaped);
    if (open.has_wide) open.wide = call_out(*out, inputs, {at::kCPU, true, false}, like, shaped);
    open.found = call_out(*out, inputs, {device_, false, false}, like, shaped);
    ++report_.calls;
    open_.push_back(std::move(open));
  }
}

void Checker::compare_all_strides(const Open& open, const Op& reference) {
  const auto& only = open.sample->results;
  const size_t count = std::min(open.found.results.size(), open.expected.results.size());
  if (!open.sample->reference.empty() || reference.schema().is_mutable()) return;
  for (size_t i = 0; i < count; ++i) {
    if (!only.empty() && std::find(only.begin(), only.end(), static_cast<int64_t>(i)) == only.end()) continue;
    const std::string message = compare_strides(open.expected.results[i], open.found.results[i]);
    if (!message.empty()) fail(*open.sample, open.what, "result " + std::to_string(i) + ": " + message);
  }
}

void Checker::flush() {
  const std::string trouble = first_line(error_of_program());
  auto samples = std::move(waiting_);
  waiting_.clear();
  if (trouble.empty()) {
    compare_open();
    return;
  }
  open_.clear();
  if (samples.size() == 1) {
    fail(*samples[0], "program", trouble);
    return;
  }
  // The program holds many samples: one at a time tells which of them is at fault.
  for (const Sample* sample : samples) {
    try {
      record(*sample);
    } catch (const std::exception&) {
      continue;  // reported when it was added
    }
    waiting_ = {sample};
    flush();
  }
  waiting_.clear();
}

void Checker::compare_open() {
  for (Open& open : open_) {
    try {
      bring_home(open.found);
      const Verdict verdict = judge(open);
      report_.skipped += verdict.skipped;
      for (const std::string& message : verdict.messages) fail(*open.sample, open.what, message);
    } catch (const std::exception& error) {
      fail(*open.sample, open.what, first_line(error.what()));
    }
    open = Open();
  }
  open_.clear();
}

void Checker::bring_home(Outcome& outcome) const {
  at::NoGradGuard no_grad;
  bring(outcome.results, replicas_);
  bring(outcome.gradients, replicas_);
  bring(outcome.bases, replicas_);
  if (damage_ == Break::kValue || damage_ == Break::kDType || damage_ == Break::kShape) {
    damage_first(outcome.results, damage_);
  } else if (damage_ == Break::kGradient) {
    damage_first(outcome.gradients, damage_);
  } else if (damage_ == Break::kWrite) {
    damage_first(outcome.bases, damage_);
  } else if (damage_ == Break::kIdentity) {
    outcome.same_tensor = false;
  }
}

void Checker::fail(const Sample& sample, const std::string& what, const std::string& message) {
  ++report_.failures;
  int lines = ++failures_of_[&sample];
  if (lines <= kMaxLines) {
    std::printf("FAIL %s (%s): %s\n", sample.where().c_str(), what.c_str(), message.c_str());
  } else if (lines == kMaxLines + 1) {
    std::printf("FAIL %s: more\n", sample.where().c_str());
  }
  std::fflush(stdout);
}

}  // namespace sluice::conformance
