// A stream of batches, and the rules for what does not fit into it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sluice/base/export.h"
#include "sluice/data/batch.h"
#include "sluice/data/stream_statistics.h"

SLUICE_API_BEGIN
namespace sluice::data {

// The batches of one epoch. One thread calls next(); statistics() may be called from any thread.
// Destroying a stream at any time stops its threads.
class Stream {
 public:
  virtual ~Stream() = default;
  // The next batch, or nothing at the end of the epoch. Throws what went wrong, and again on later calls.
  virtual std::optional<Batch> next() = 0;
  // Where the stream stands after the last next(), as a line of text, for WebDataset::resume(): epoch, number
  // of batches, and what the order depends on. Nothing else is needed: it is small, and equal on all parts.
  // Throws where the samples of the shards must be counted for it and cannot be.
  virtual std::string state() const = 0;
  virtual Statistics statistics() const = 0;
};

// What becomes of the samples that do not fill the last global batch.
enum class Remainder {
  kDrop,   // left out of this epoch (the default after shuffle())
  kPad,    // a full batch, filled with zeros and marked in mask: every shape is the same
  kKeep,   // a smaller batch (the default without shuffle())
  kCarry,  // the first samples of the next epoch: over the epochs nothing is left out, and epochs may differ
           // by one batch
};

// What happens when a shard or a sample cannot be read or decoded.
enum class OnError {
  kStop,  // an error that names shard, member, offset and cause
  kSkip,  // up to max_bad() such samples are logged and left out. Their rows become padding with pad(); else
          // copies of the sample before it in the batch (after it, when it is the first). All other rows, and
          // what other parts get, stay as they are.
  kRetry,  // the shard is read again up to three times, after 0.1, 1 and 10 seconds, then as kSkip
};

}  // namespace sluice::data
SLUICE_API_END
