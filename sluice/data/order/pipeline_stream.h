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
#include "sluice/data/decode/collate.h"
#include "sluice/data/decode/decode.h"
#include "sluice/data/order/part_reader.h"
#include "sluice/data/stream.h"

namespace sluice::data {

struct StreamOptions {
  std::unique_ptr<ReadSettings> read;
  PartOptions part;
  DecodePlan decode;
  std::vector<std::function<void(Sample&)>> maps;
  std::int64_t max_bad = 0;            // samples
  std::function<std::string()> state;  // what state() gives, but for the number of batches
  int workers = 1, prefetch = 4;
  std::int64_t prefetch_bytes = std::int64_t{256} << 20;
};

// Bounded: at most `prefetch` batches and about `prefetch_bytes` are in work or finished (but always one),
// one more is being read, and the shuffle buffers have their own bound. Errors travel in the batches' order,
// so that which one is seen does not depend on timing.
class PipelineStream : public Stream {
 public:
  explicit PipelineStream(StreamOptions options);
  ~PipelineStream() override;
  std::optional<Batch> next() override;
  std::string state() const override;
  Statistics statistics() const override;

 private:
  // One batch on its way.
  struct Work {
    RawBatch raw;
    std::vector<std::optional<base::Result<Sample>>> samples;  // nothing: padding, or not decoded
    ImageColumns images;
    std::vector<Error> bad;                 // of samples that were left out
    std::int64_t bytes = 0;                 // that it holds; under mutex_
    std::atomic<std::uint64_t> decoded{0};  // bytes of samples
    std::size_t chunks_left = 0;            // under mutex_
    bool finished = false;                  // under mutex_
    std::optional<base::Result<Batch>> result;
  };
  struct Chunk {
    std::shared_ptr<Work> work;
    std::size_t begin, end;
  };

  void read();
  base::Status read_epoch();
  bool dispatch(RawBatch raw);
  void fail_in_order(const Error& error);
  void decode();
  bool hands_on_bytes() const;  // nothing is decoded
  std::optional<Sample> take_bytes(RawSample& raw) const;
  base::Result<Sample> decode_one(RawSample& raw) const;  // may take its bytes
  void decode_chunk(const Chunk& chunk);
  base::Status hold_decoded(Work& work, const Sample& sample) const;
  base::Result<Batch> finish(Work& work);
  base::Status replace_bad(Work& work, std::vector<std::optional<Sample>>& rows) const;
  base::Result<BatchLayout> layout_for_padding();
  void count_bad(const Work& work);

  StreamOptions options_;
  std::atomic<bool> stopped_{false};
  base::Stopwatch clock_;

  mutable std::mutex mutex_;
  std::condition_variable room_, chunk_ready_, batch_ready_;
  std::deque<std::shared_ptr<Work>> pending_;  // in the order of the epoch
  std::int64_t pending_bytes_ = 0;
  std::deque<Chunk> chunks_;
  bool ended_ = false;
  Statistics statistics_;
  std::optional<Error> error_;  // the consumer's
  bool bad_reported_ = false;
  std::string last_bad_;                       // what was logged last
  std::optional<BatchLayout> padding_layout_;  // of batches without samples; under mutex_
  std::vector<std::thread> threads_;
};

}  // namespace sluice::data
