#include "sluice/data/pipeline/tuning.h"

#include <algorithm>

namespace sluice::data {
namespace {

constexpr double kWindow = 0.5;       // seconds
constexpr double kWaiting = 0.05;     // the consumer's share of the window
constexpr double kBusy = 0.8;         // the share of all decoders
constexpr double kReaderIdle = 0.05;  // the reader's idle share; below it the reader is the bottleneck

}  // namespace

int decoders_to_add(const Statistics& before, const Statistics& now, int most) {
  const double seconds = now.seconds - before.seconds;
  if (seconds < kWindow || now.decoders >= most) return 0;
  const bool late = now.consumer_waiting - before.consumer_waiting >= kWaiting * seconds;
  const bool busy = now.decoder_busy - before.decoder_busy >= kBusy * seconds * now.decoders;
  const bool fed = now.reader_idle - before.reader_idle >= kReaderIdle * seconds;
  return late && busy && fed ? std::min(std::max(1, now.decoders / 2), most - now.decoders) : 0;
}

}  // namespace sluice::data
