// The threads of a Stream: one reads, some decode, the consumer takes batches in order.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "sluice/base/clock.h"
#include "sluice/data/decode/collate.h"
#include "sluice/data/decode/decode.h"
#include "sluice/data/order/mixture_order.h"
#include "sluice/data/order/part_reader.h"
#include "sluice/data/stream.h"

namespace sluice::data {

// A set of shards, and how their samples are processed.
struct StreamSource {
  std::unique_ptr<ReadSettings> read;
  DecodePlan decode;
  std::vector<std::function<void(Sample&)>> maps;
  std::uint64_t seed = 0;     // for the order
  std::int64_t capacity = 1;  // in a mixture: samples in the shuffle buffer of a lane
};

// Decodes a sample and changes it by the map functions. May take the bytes of `raw`.
base::Result<Sample> decode_and_map(RawSample& raw, const StreamSource& source);

struct StreamOptions {
  std::vector<StreamSource> sources;  // several in a mixture; on_error and mixup are taken from the first
  std::shared_ptr<const MixtureOrder> mixture;  // null without a mixture
  PartOptions part;
  std::vector<double> padding;          // with part.shapes: for each field
  std::int64_t max_bad = 0;             // samples
  std::function<std::string()> state;   // returns state() without the number of batches
  int workers = 1, max_workers = 1;     // threads that decode: at the start, and at most
  std::function<void(int)> on_workers;  // called with the number when it grows
  int prefetch = 4;
  std::int64_t prefetch_bytes = std::int64_t{256} << 20;
};

// A stream with bounded memory: at most `prefetch` batches and about `prefetch_bytes` are in work or finished
// (but always one), one more is being read, and the shuffle buffers have their own bound. Errors travel in
// the batches' order, so that the error that the consumer sees does not depend on timing.
class PipelineStream : public Stream {
 public:
  explicit PipelineStream(StreamOptions options);
  ~PipelineStream() override;
  std::optional<Batch> next() override;
  std::string state() const override;
  Statistics statistics() const override;

 private:
  // One batch in work.
  struct Work {
    RawBatch raw;
    std::vector<std::optional<base::Result<Sample>>> samples;  // empty: padding, or not decoded
    ImageColumns images;
    std::vector<Error> bad;                 // errors of samples that were left out
    std::int64_t bytes = 0;                 // held by the batch; under mutex_
    std::atomic<std::uint64_t> decoded{0};  // bytes of samples
    std::atomic<std::int64_t> cut{0};       // samples that were longer than the batch
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
  base::Result<std::unique_ptr<PartReader>> make_reader() const;
  const StreamSource& source_of(const RawSample& raw) const {
    return options_.sources[static_cast<std::size_t>(raw.source)];
  }
  OnError on_error() const { return options_.sources.front().read->on_error; }
  std::optional<Batch> take_bytes(RawBatch& raw) const;
  void number(Batch& batch, const RawBatch& raw) const;
  // `length`: the batch's length, if it has one.
  base::Result<Sample> decode_one(RawSample& raw, std::int64_t length) const;
  void decode_chunk(const Chunk& chunk);
  base::Status hold_decoded(Work& work, const Sample& sample) const;
  base::Result<Batch> finish(Work& work);
  base::Status replace_bad(Work& work, std::vector<std::optional<Sample>>& rows) const;
  base::Result<BatchLayout> layout_for_padding(std::int64_t length);
  void count_bad(const Work& work);
  void tune();  // under mutex_

  StreamOptions options_;
  bool hands_on_bytes_;  // nothing is decoded
  std::atomic<bool> stopped_{false};
  base::Stopwatch clock_;

  mutable std::mutex mutex_;
  std::condition_variable room_, chunk_ready_, batch_ready_;
  std::deque<std::shared_ptr<Work>> pending_;  // in the order of the epoch
  std::int64_t pending_bytes_ = 0;
  std::deque<Chunk> chunks_;
  bool ended_ = false;
  Statistics statistics_;
  Statistics tuned_;            // at the last call of tune()
  std::optional<Error> error_;  // the error that the consumer gets
  bool end_reported_ = false;
  std::string last_bad_;                                 // the last logged error
  std::map<std::int64_t, BatchLayout> padding_layouts_;  // of padding batches, by length; under mutex_
  std::vector<std::thread> threads_;
};

}  // namespace sluice::data
