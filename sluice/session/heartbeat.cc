#include "sluice/session/heartbeat.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sluice/base/clock.h"
#include "sluice/base/environment.h"

namespace sluice::sessions {

Heartbeat::Heartbeat() : file_(base::environment("SLUICE_HEARTBEAT_FILE")) {}

void Heartbeat::beat() {
  const double now = base::monotonic_seconds();
  if (!file_ || now - last_ < 1) return;
  last_ = now;
  // A launcher that has ended needs no sign of life, so failures are ignored.
  const int fd = open(file_->c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return;
  futimens(fd, nullptr);
  close(fd);
}

}  // namespace sluice::sessions
