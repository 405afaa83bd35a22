#include "tests/conformance/partitioned/subject.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <vector>

namespace sluice::conformance {
namespace {

// Above this a call tells nothing more and takes long.
constexpr int64_t kMaxElements = 1 << 16;

using Resize = int64_t (*)(int64_t size);

int64_t to_a_multiple_of_four(int64_t n) { return n % 4 == 0 ? n : n % 2 == 0 ? 2 * n : 4 * n; }
int64_t doubled(int64_t n) { return 2 * n; }
int64_t four_times(int64_t n) { return 4 * n; }

void for_each_tensor(Sample& sample, const std::function<void(TensorSpec&)>& visit) {
  for (Argument& argument : sample.arguments) {
    if (argument.value.kind == Value::Kind::kTensor) visit(argument.value.tensor);
    for (Value& item : argument.value.items)
      if (item.kind == Value::Kind::kTensor) visit(item.tensor);
  }
}

// Explicit indices belong to one shape: repeated they would name a place twice, and nobody says which value
// it gets.
bool may_be_resized(Sample& sample) {
  bool may = !sample.random;
  for_each_tensor(sample, [&](const TensorSpec& spec) {
    may = may && (spec.kind != 'i' || spec.values.empty() || spec.dims.empty());
  });
  return may;
}

struct Candidate {
  Sample sample;
  int64_t dims_to_lay_out = 0;
};

// Equal sizes stay equal, sizes of 1 and 0 stay as they are.
std::optional<Candidate> resized(const Sample& sample, Resize resize) {
  Candidate made{sample};
  int64_t elements = 0;
  for_each_tensor(made.sample, [&](TensorSpec& spec) {
    int64_t count = 1;
    for (int64_t& dim : spec.dims) {
      if (resize != nullptr && dim > 1) dim = resize(dim);
      count *= dim;
      made.dims_to_lay_out += dim == 0 ? 0 : (dim % 2 == 0) + (dim % 4 == 0);
    }
    elements += count;
  });
  if (resize != nullptr && elements > kMaxElements) return std::nullopt;
  return made;
}

// The sample and its larger forms; those that can be laid out in most ways come first.
std::vector<Candidate> candidates_of(const Sample& sample, View view) {
  std::vector<Candidate> all;
  Sample copy = sample;
  // The memory of a slice is larger by one in each dimension: odd sizes make even ones.
  const bool resize = may_be_resized(copy) && view != View::kSliced;
  for (const Resize how : {Resize{}, Resize{to_a_multiple_of_four}, Resize{four_times}, Resize{doubled}}) {
    if (how != nullptr && !resize) break;
    if (auto made = resized(sample, how)) all.push_back(std::move(*made));
  }
  std::stable_sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) {
    return a.dims_to_lay_out > b.dims_to_lay_out;
  });
  return all;
}

bool wrote(const Subject& subject) {
  for (size_t i = 0; i < subject.expected.bases.size(); ++i) {
    const at::Tensor& before = subject.inputs.tensors[i].base;
    if (compare_values(before, subject.expected.bases[i], {0, true}) != "") return true;
  }
  return false;
}

void add_in_place(Subject& subject, bool has_wide) {
  const Sample& sample = subject.sample;
  const bool overlapping =
      !subject.inputs.tensors.empty() && subject.inputs.tensors[0].view == View::kExpanded;
  if (sample.noinplace || !sample.reference.empty() || overlapping) return;
  subject.in_place = find_in_place(*subject.op);
  if (!subject.in_place) return;
  subject.expected_in_place = call_in_place(*subject.in_place, subject.inputs, {at::kCPU, false, false});
  if (has_wide)
    subject.wide_in_place = call_in_place(*subject.in_place, subject.inputs, {at::kCPU, true, false});
  if (!subject.expected_in_place.error.empty()) subject.in_place.reset();
}

std::shared_ptr<const Subject> try_candidate(const Sample& sample, View view) {
  auto made = std::make_shared<Subject>();
  made->sample = sample;
  made->op = find_op(sample.op);
  const auto reference = sample.reference.empty() ? made->op : find_op(sample.reference);
  if (!made->op || !reference) throw std::runtime_error("LibTorch has no op of this name");
  made->inputs = make_inputs(sample, made->op->schema(), {sample.dtypes[0], sample.itypes[0]}, view);
  at::manual_seed(made->inputs.seed + 1'000'003);
  bool floats = false;
  for (const TensorInput& input : made->inputs.tensors)
    floats = floats || at::isFloatingType(input.base.scalar_type()) || input.base.is_complex();
  made->what = sample.dtypes[0];
  if (view != View::kPlain) made->what += std::string(", ") + view_name(view);
  made->gradients = !sample.nograd && floats && !made->op->schema().is_mutable();
  if (made->gradients) probe_gradients(*reference, made->inputs);
  made->expected = call(*reference, made->inputs, {at::kCPU, false, made->gradients});
  if (!made->expected.error.empty()) return nullptr;
  const bool has_wide = sample.dtypes[0] == "bf16" || sample.dtypes[0] == "f16";
  if (has_wide) made->wide = call(*reference, made->inputs, {at::kCPU, true, made->gradients});
  // Elements that share memory cannot be written.
  if (view == View::kExpanded && wrote(*made)) return nullptr;
  add_in_place(*made, has_wide);
  return made;
}

}  // namespace

std::shared_ptr<const Subject> make_subject(const Sample& sample, View view) {
  for (const Candidate& candidate : candidates_of(sample, view)) {
    std::shared_ptr<const Subject> made;
    try {
      made = try_candidate(candidate.sample, view);
    } catch (const std::exception&) {
      continue;  // a larger form that does not fit the operation
    }
    if (made != nullptr) return made;
  }
  return nullptr;
}

}  // namespace sluice::conformance
