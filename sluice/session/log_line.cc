#include "sluice/session/log_line.h"

#include <iomanip>
#include <sstream>

#include "sluice/base/strings.h"

namespace sluice::sessions {

std::string fixed(double value, int digits) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(digits) << value;
  return std::move(out).str();
}

std::string text_of(const LogLine& line) {
  std::string text = base::str("| Training Device=", line.device, "/", line.process, " Epoch=", line.epoch,
                               " Step=", line.step);
  for (const auto& [name, value] : line.values) text += base::str(" ", name, "=", fixed(value, 5));
  return text + base::str(" Rate=", fixed(line.rates.rate, 2),
                          " GlobalRate=", fixed(line.rates.global_rate, 2), " Time=", line.time);
}

}  // namespace sluice::sessions
