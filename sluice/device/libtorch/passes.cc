#include "sluice/device/libtorch/passes.h"

#include <ATen/SequenceNumber.h>
#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>

#include <algorithm>

#include "sluice/device/storage.h"

namespace sluice::device {

using stablehlo::Pass;

RecordedIn Passes::operation(uint32_t read) {
  const RecordedIn found = part(read);
  if (found.pass == Pass::kForward) note_forward(read);
  return found;
}

RecordedIn Passes::part(uint32_t read) {
  if (const auto function = torch::autograd::get_current_node()) {
    backward_ = true;
    return {layer_of(*function, read), Pass::kBackward};
  }
  return {read, backward_ && !at::GradMode::is_enabled() ? Pass::kUpdate : Pass::kForward};
}

void Passes::cut() {
  backward_ = false;
  // A backward pass over operations that were recorded so long ago is not to be expected.
  constexpr size_t kMaxBegins = size_t{1} << 16;
  if (begins_.size() > kMaxBegins) begins_.erase(begins_.begin(), begins_.begin() + kMaxBegins / 2);
}

// If the operation has a function of autograd, it is the last one that was made.
void Passes::note_forward(uint32_t layer) {
  static thread_local char here;
  if (&here != noting_) {
    // A new thread may have the address of one that has ended, but not its number.
    begins_.clear();
    thread_ = at::RecordFunction::currentThreadId();
    noting_ = &here;
    noted_ = 0;
  }
  const uint64_t made = at::sequence_number::peek();
  // If several operations saw no newer function, it belongs to the first of them.
  if (made <= noted_) return;
  noted_ = made;
  if (begins_.empty() || begins_.back().layer != layer) begins_.push_back({made - 1, layer});
}

uint32_t Passes::layer_of(torch::autograd::Node& function, uint32_t read) const {
  // Only functions without a sequence number can be gradient sums; this check is faster than asking for the
  // class.
  constexpr uint64_t kUnnumbered = ~uint64_t{0};
  auto* const sum = function.sequence_nr() == kUnnumbered
                        ? dynamic_cast<torch::autograd::AccumulateGrad*>(&function)
                        : nullptr;
  if (sum != nullptr) {
    if (!sum->variable.defined() || !sum->variable.is_xla()) return read;
    return LazyStorage::of(sum->variable)->name;
  }
  if (function.thread_id() != thread_) return read;
  const auto behind =
      std::upper_bound(begins_.begin(), begins_.end(), function.sequence_nr(),
                       [](uint64_t number, const Begin& begin) { return number < begin.function; });
  return behind == begins_.begin() ? read : std::prev(behind)->layer;
}

}  // namespace sluice::device
