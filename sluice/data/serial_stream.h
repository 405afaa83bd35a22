// A stream without threads: it makes each batch when it is asked for it, from memory or a mapped file.
#pragma once

#include <optional>
#include <string>

#include "sluice/base/clock.h"
#include "sluice/data/stream.h"

namespace sluice::data {

class SerialStream : public Stream {
 public:
  // `order`: the text of everything that the order of the epoch depends on.
  SerialStream(const OpenOptions& options, std::string order);

  std::optional<Batch> next() override;
  // Returns the order and the number of batches that were taken.
  std::string state() const override;
  Statistics statistics() const override;

 protected:
  // Makes the next batch: its columns, mask and global_count, and a key for each sample. Returns nothing at
  // the end of the epoch. The caller fills in the other numbers.
  virtual std::optional<Batch> make() = 0;

  const OpenOptions& options() const { return options_; }
  std::int64_t index() const { return index_; }  // of the batch that make() makes

 private:
  const OpenOptions options_;
  const std::string order_;
  std::int64_t index_;
  base::Stopwatch clock_;
  Statistics statistics_;
};

}  // namespace sluice::data
