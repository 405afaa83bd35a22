// A stream of batches, and the rules for samples that do not fit into it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

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
  // Returns the next batch, or nothing at the end of the epoch. Throws the stream's error, also on later
  // calls.
  virtual std::optional<Batch> next() = 0;
  // Returns the position after the last next() as a line of text, for WebDataset::resume(): epoch, number of
  // batches, and everything that the order depends on. It is small, complete, and equal on all parts.
  // Throws if the samples of the shards must be counted for it and cannot be.
  virtual std::string state() const = 0;
  virtual Statistics statistics() const = 0;
};

struct OpenOptions {
  std::int64_t epoch = 0;
  std::int64_t part = 0, parts = 1;  // this process, of all
  // The number of replicas that this part feeds; every other part feeds the same number. A batch holds
  // batch_size() rows for each, one replica after the other.
  std::int64_t replicas = 1;
  std::int64_t skip_batches = 0;
  bool whole_batches = false;  // leaves out a last, smaller batch (Remainder::kKeep)
};

// The treatment of samples that do not fill the last global batch.
enum class Remainder {
  kDrop,   // left out of this epoch (the default after shuffle())
  kPad,    // a full batch, filled with zeros and marked in mask: every shape is the same
  kKeep,   // a smaller batch (the default without shuffle())
  kCarry,  // the first samples of the next epoch: over the epochs nothing is left out, and epochs may differ
           // by one batch
};

// The treatment of a shard or a sample that cannot be read or decoded.
enum class OnError {
  kStop,   // an error that names shard, member, offset and cause
  kSkip,   // up to max_bad() such samples are logged and left out. Their rows become padding with pad(); else
           // copies of the sample before it in the batch (after it, for the first). All other rows, and the
           // rows of other parts, are unchanged.
  kRetry,  // the shard is read again up to three times, after 0.1, 1 and 10 seconds, then as kSkip
};

// The source of streams: a WebDataset, or a Mix of some.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual std::unique_ptr<Stream> open(const OpenOptions& options) const = 0;
  // Continues at the position where a stream was when its state() was taken. The number of parts may differ
  // if a global batch has the same number of samples. Everything else that the order depends on must be
  // unchanged: an error names the differences.
  virtual std::unique_ptr<Stream> resume(const std::string& state, const OpenOptions& options) const = 0;
  // Returns the state of a stream that was opened with these options, after batch skip_batches − 1.
  virtual std::string state(const OpenOptions& options) const = 0;

  virtual std::int64_t size() const = 0;  // samples of one epoch
  // Returns the number of batches in an epoch of each part's stream, for `replicas` replicas in all.
  virtual std::int64_t batches(std::int64_t replicas, std::int64_t epoch) const = 0;
  virtual std::int64_t batch_size() const = 0;  // rows of one replica's batch
  virtual Remainder remainder() const = 0;
  // For the consumer that normalises (on the device): (pixel / 255 − mean) / deviation, one number a channel.
  virtual const std::vector<float>& mean() const = 0;
  virtual const std::vector<float>& deviation() const = 0;
};

}  // namespace sluice::data
SLUICE_API_END
