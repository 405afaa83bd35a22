#include "sluice/session/log_line.h"

#include <iomanip>
#include <sstream>

#include "sluice/base/text/join.h"

namespace sluice::sessions {

std::string fixed(double value, int digits) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(digits) << value;
  return std::move(out).str();
}

namespace {

// Returns about three significant digits: 0.118, 64.1, 1240.
std::string short_text(double value) {
  return fixed(value, value >= 100 ? 0 : value >= 10 ? 1 : value >= 1 ? 2 : 3);
}

std::string text_of(const StepRates& steps) {
  const auto gib = [](int64_t bytes) { return fixed(static_cast<double>(bytes) / (1 << 30), 1); };
  const auto percent = [](double part, int digits) { return fixed(100 * part, digits) + "%"; };
  std::string text;
  if (steps.p50_ms && steps.p95_ms)
    text += base::str(" StepMs=", short_text(*steps.p50_ms), "/", short_text(*steps.p95_ms));
  if (steps.tokens_per_second) text += " Tokens/s=" + short_text(*steps.tokens_per_second);
  if (steps.flops_per_second) text += " TFLOP/s=" + short_text(*steps.flops_per_second / 1e12);
  if (steps.mfu) text += " MFU=" + percent(*steps.mfu, 1);
  if (steps.causal_mfu) text += " CausalMFU=" + percent(*steps.causal_mfu, 1);
  if (steps.memory_in_use) {
    text += " GiB=" + gib(*steps.memory_in_use);
    if (steps.memory_peak) text += "/" + gib(*steps.memory_peak);
  }
  if (steps.input_share) text += " Input=" + percent(*steps.input_share, 0);
  return text;
}

}  // namespace

std::string text_of(const LogLine& line) {
  std::string text = base::str("| Training Device=", line.device, "/", line.process, " Epoch=", line.epoch,
                               " Step=", line.step);
  for (const auto& [name, value] : line.values) text += base::str(" ", name, "=", fixed(value, 5));
  return text + base::str(" Rate=", fixed(line.rates.rate, 2),
                          " GlobalRate=", fixed(line.rates.global_rate, 2), " Time=", line.time,
                          text_of(line.steps));
}

}  // namespace sluice::sessions
