#include "sluice/replica/pulse.h"

#include <cstdlib>

#include "sluice/base/environment.h"
#include "sluice/base/log.h"
#include "sluice/base/text/join.h"
#include "sluice/base/thread.h"
#include "sluice/replica/loss.h"

namespace sluice::replica {
namespace {
constexpr const char* kLeft = "left";
}  // namespace

std::string Pulse::beat_key(int process) { return base::str("beat ", process); }

Pulse::Pulse(int index, int count, Board board, const Times& times)
    : index_(index), count_(count), board_(std::move(board)), times_(times), watched_((index + 1) % count) {
  thread_ = std::thread([this] { work(); });
}

Pulse::~Pulse() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  thread_.join();
  if (!ended_) (void)board_.put(beat_key(index_), kLeft);
}

base::Status Pulse::status() const {
  std::lock_guard lock(mutex_);
  if (ended_) return tl::unexpected<Error>(*ended_);
  return {};
}

void Pulse::work() {
  base::name_thread("sluice-pulse");
  std::unique_lock lock(mutex_);
  do {
    lock.unlock();
    const base::Status status = beat();
    lock.lock();
    if (!status) {
      ended_ = status.error();
      return;
    }
  } while (!stop_.wait_for(lock, times_.beat, [this] { return stopping_; }));
}

base::Status Pulse::beat() {
  SLUICE_OK(board_.put(beat_key(index_), std::to_string(++beats_)));
  SLUICE_TRY(const auto ended, board_.try_get(kEnded));
  if (ended) return tl::unexpected<Error>(ending(*ended));
  if (watched_ == index_) return {};
  SLUICE_TRY(const auto theirs, board_.try_get(beat_key(watched_)));
  if (theirs == kLeft) watched_ = (watched_ + 1) % count_;
  if (theirs == kLeft || !theirs || theirs != seen_) {
    seen_ = theirs;
    still_ = {};
    return {};
  }
  still_ += times_.beat;
  if (times_.patience.count() == 0 || still_ < times_.patience) return {};
  const std::string sign =
      base::str("no sign of life for ", static_cast<double>(times_.patience.count()) / 1000, " s");
  SLUICE_TRY(const auto first, board_.put_first(kEnded, lost_text({watched_}, count_, sign)));
  return tl::unexpected<Error>(ending(first));
}

std::chrono::milliseconds lost_after() {
  constexpr std::chrono::duration<double> kUsual = Pulse::Times{}.patience;
  const double seconds = base::environment_seconds("SLUICE_LOST_AFTER", kUsual.count(), 0);
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

}  // namespace sluice::replica
