#include "sluice/device/libtorch/backward.h"

#include <c10/core/AutogradState.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>

#include <algorithm>
#include <optional>
#include <thread>

#include "sluice/device/program/trace.h"

namespace sluice::device {
namespace {

using torch::autograd::edge_list;
using torch::autograd::variable_list;

// A scope in which this thread's backward passes stay on this thread.
class WithoutAutogradThreads {
 public:
  WithoutAutogradThreads() { set(false); }
  ~WithoutAutogradThreads() { set(before_); }
  WithoutAutogradThreads(const WithoutAutogradThreads&) = delete;

 private:
  static void set(bool enabled) { c10::AutogradState::get_tls_state().set_multithreading_enabled(enabled); }
  const bool before_ = c10::AutogradState::get_tls_state().get_multithreading_enabled();
};

bool is_on_device(const edge_list& roots) {
  return std::any_of(roots.begin(), roots.end(), [](const torch::autograd::Edge& root) {
    return root.is_valid() && root.function->device().is_xla();
  });
}

// Returns whether this thread records, or no thread does yet.
bool is_recorder() {
  TraceLock lock = lock_trace();
  const std::thread::id owner = Trace::get().owner;
  return owner == std::thread::id() || owner == std::this_thread::get_id();
}

// Passes the work on to LibTorch's own engine. Of all engines in a process, only the first to run gets device
// threads, and LibTorch's was the first if the program trained on the CPU before the device was opened.
class BackwardEngine final : public torch::autograd::Engine {
 public:
  variable_list execute(const edge_list& roots, const variable_list& inputs, bool keep_graph,
                        bool create_graph, bool accumulate_grad, const edge_list& outputs) override {
    std::optional<WithoutAutogradThreads> on_this_thread;
    if (is_on_device(roots) && is_recorder()) on_this_thread.emplace();
    return get_base_engine().execute(roots, inputs, keep_graph, create_graph, accumulate_grad, outputs);
  }
};

}  // namespace

void install_backward_engine() {
  using torch::autograd::Engine;
  if (&Engine::get_default_engine() != &Engine::get_base_engine()) return;
  torch::autograd::set_default_engine_stub([]() -> Engine& {
    static auto* engine = new BackwardEngine();
    return *engine;
  });
}

}  // namespace sluice::device
