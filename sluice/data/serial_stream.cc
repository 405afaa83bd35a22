#include "sluice/data/serial_stream.h"

#include <utility>

#include "sluice/base/text/join.h"

namespace sluice::data {

SerialStream::SerialStream(const OpenOptions& options, std::string order)
    : options_(options), order_(std::move(order)), index_(options.skip_batches) {}

std::optional<Batch> SerialStream::next() {
  const base::Stopwatch busy;
  std::optional<Batch> batch = make();
  if (!batch) return batch;
  batch->count = static_cast<std::int64_t>(batch->keys.size());
  batch->weight = static_cast<float>(static_cast<double>(batch->count * options_.parts) /
                                     static_cast<double>(batch->global_count));
  batch->index = index_++;
  statistics_.samples += batch->count;
  ++statistics_.batches;
  statistics_.decoder_busy += busy.seconds();
  return batch;
}

std::string SerialStream::state() const { return base::str(order_, " batches=", index_); }

Statistics SerialStream::statistics() const {
  Statistics result = statistics_;
  result.decoders = 1;
  result.seconds = clock_.seconds();
  return result;
}

}  // namespace sluice::data
