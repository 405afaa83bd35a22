// The threads behind a Stream: one reads, some decode, the consumer takes batches in order.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "sluice/base/clock.h"
#include "sluice/data/collate.h"
#include "sluice/data/dataset.h"
#include "sluice/data/decode.h"
#include "sluice/data/reader.h"

namespace sluice::data {

struct StreamOptions {
  ReaderOptions reader;
  DecodePlan decode;
  std::vector<std::function<void(Sample&)>> maps;
  std::int64_t batch = 1;  // rows of this part
  std::int64_t part = 0, parts = 1;
  std::int64_t skip_batches = 0;
  Remainder remainder = Remainder::kDrop;
  int workers = 1, prefetch = 4;
};

// Bounded: at most `prefetch` batches are in work or finished, one more is being read, and the shuffle buffer
// has its own bound. Errors travel in the batches' order, so that which one is seen does not depend on
// timing.
class PipelineStream : public Stream {
 public:
  explicit PipelineStream(StreamOptions options);
  ~PipelineStream() override;
  std::optional<Batch> next() override;
  Statistics statistics() const override;

 private:
  // One batch on its way.
  struct Work {
    std::int64_t index = 0, rows = 0, global_count = 0;
    std::vector<RawSample> raw;
    std::vector<std::optional<base::Result<Sample>>> samples;
    std::size_t chunks_left = 0;  // under mutex_
    bool finished = false;        // under mutex_
    std::optional<base::Result<Batch>> result;
  };
  struct Chunk {
    std::shared_ptr<Work> work;
    std::size_t begin, end;
  };

  void read();
  base::Status read_epoch();
  bool dispatch(std::vector<RawSample> raw, std::int64_t index, std::int64_t global_count);
  void fail_in_order(const Error& error);
  void decode();
  base::Result<Sample> decode_one(const RawSample& raw) const;
  void decode_chunk(const Chunk& chunk);
  base::Result<Batch> finish(Work& work);
  base::Result<BatchLayout> layout_for_padding();

  StreamOptions options_;
  std::atomic<bool> stopped_{false};
  EpochReader reader_;
  base::Stopwatch clock_;

  mutable std::mutex mutex_;
  std::condition_variable room_, chunk_ready_, batch_ready_;
  std::deque<std::shared_ptr<Work>> pending_;  // in the order of the epoch
  std::deque<Chunk> chunks_;
  bool ended_ = false;
  Statistics statistics_;
  std::optional<Error> error_;  // the consumer's
  std::optional<RawSample>
      specimen_;  // of this epoch, for the layout of batches without samples; under mutex_
  std::vector<std::thread> threads_;
};

}  // namespace sluice::data
