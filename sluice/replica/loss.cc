#include "sluice/replica/loss.h"

#include "sluice/base/text/join.h"
#include "sluice/base/text/printable.h"
#include "sluice/base/text/quantity.h"

namespace sluice::replica {

namespace {
constexpr const char* kLost = "lost ";
}  // namespace

std::string lost_text(const std::vector<int>& processes, int count, const std::string& sign) {
  return base::str(kLost, base::plural(static_cast<int64_t>(processes.size()), "process"), " ",
                   base::join(processes, ", "), " of ", count, " (", sign,
                   "): killed or stopped, or on a machine that is gone; its own ", "log says why");
}

std::string failed_text(int process, const std::string& reason) {
  return base::str("another process ended: process ", process, ": ", reason);
}

Error ending(const std::string& text) {
  return {text.starts_with(kLost) ? Code::kUnavailable : Code::kAborted, said(text)};
}

std::string said(std::string_view text) {
  constexpr size_t kMaxBytes = 4096;
  return base::printable(text.substr(0, kMaxBytes)) + (text.size() > kMaxBytes ? " …" : "");
}

}  // namespace sluice::replica
