#include "sluice/device/report/shortage.h"

#include <algorithm>

#include "sluice/base/text/join.h"
#include "sluice/base/text/quantity.h"
#include "sluice/device/program/trace.h"
#include "sluice/device/report/alive.h"
#include "sluice/device/runtime.h"
#include "sluice/stablehlo/location.h"

namespace sluice::device {
namespace {

using base::memory_text;

constexpr size_t kListed = 8;  // values in each list

// Returns whether an error is a shortage of memory. Plugins word it differently, and do not always set the
// code: XLA's CPU plugin says kInternal if it finds no room for a program's temporary values.
bool is_shortage(const Error& error) {
  if (error.code() == Code::kResourceExhausted) return true;
  const std::string_view text = error.what();
  for (const char* words : {"RESOURCE_EXHAUSTED", "Out of memory", "out of memory", "Ran out of memory"}) {
    if (text.find(words) != std::string_view::npos) return true;
  }
  return false;
}

void add_devices(std::string& out, const Runtime& rt) {
  for (const pjrt::Device* device : rt.devices) {
    const auto memory = device->memory();
    if (!memory) continue;
    out += base::str("\n  device ", device->id(), " (", device->kind(), "): ");
    if (memory->limit) out += base::str(memory_text(*memory->limit), " of memory, ");
    out += base::str(memory_text(memory->in_use), " in use");
    if (memory->peak) out += base::str(", at most ", memory_text(*memory->peak), " so far");
  }
}

void add_program(std::string& out, const Program& program) {
  if (program.executable != nullptr) {
    if (const auto memory = program.executable->memory()) {
      out += base::str("\n  the program needs ", memory_text(memory->arguments), " for its arguments, ",
                       memory_text(memory->outputs), " for its results",
                       memory->aliased > 0 ? base::str(" (", memory_text(memory->aliased),
                                                       " of them in the arguments' place)")
                                           : std::string(),
                       " and ", memory_text(memory->temporary), " for temporary values");
    }
  }
  const stablehlo::MemoryEstimate& estimate = program.estimate;
  if (estimate.largest.empty()) return;
  out += base::str("\n  its largest values at the peak",
                   estimate.peak_location.empty()
                       ? std::string()
                       : base::str(", which is in ", stablehlo::layer_text(estimate.peak_location)),
                   " (estimate: ", memory_text(estimate.peak_bytes),
                   " alive at once in the program's text, nothing fused):");
  for (size_t i = 0; i < std::min(kListed, estimate.largest.size()); ++i) {
    const stablehlo::LiveValue& value = estimate.largest[i];
    out += base::str("\n    ", memory_text(value.bytes), "  ", value.type, "  ", value.operation, "  ",
                     stablehlo::layer_text(value.location));
  }
}

void add_alive(std::string& out) {
  const AliveValues alive = alive_values(kListed);
  if (alive.count == 0) return;
  out += base::str("\n  on each device between programs: ", base::counted(alive.count, "tensor"), " of ",
                   memory_text(alive.bytes), "; the largest:");
  for (const AliveValue& value : alive.largest)
    out += base::str("\n    ", memory_text(value.bytes), "  ", value.type, "  ", value.what);
}

}  // namespace

Error explained(const Error& error, std::string_view doing, const Program* program) {
  std::string text = base::str(doing, ": ", error.what());
  if (!is_shortage(error)) return Error(error.code(), text);
  TraceLock lock = lock_trace();
  text += base::str("\nThe device's memory did not suffice", program != nullptr ? ":" : ".");
  add_devices(text, runtime());
  if (program != nullptr) add_program(text, *program);
  add_alive(text);
  text +=
      "\n  what helps: a smaller --batch-size, with --accumulate for the same step; --precision bf16; more "
      "devices for the same global batch; letting go of tensors that are kept over steps (outputs, losses "
      "that were not detached)";
  return Error(Code::kResourceExhausted, text);
}

void throw_read_error(const Error& error, std::string_view what) {
  if (is_shortage(error)) {
    TraceLock lock = lock_trace();
    wait_for_flights(0);
  }
  throw_error(error.code(), base::str(what, ": ", error.what()));
}

}  // namespace sluice::device
