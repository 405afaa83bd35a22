// How busy the threads of a Stream are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/base/export.h"

SLUICE_API_BEGIN
namespace sluice::data {

// Where the time of a stream went, in seconds since it was opened. Busy and idle times are sums over threads.
struct Statistics {
  std::int64_t samples = 0;     // decoded
  std::int64_t batches = 0;     // handed out
  std::int64_t bytes = 0;       // read from shards
  std::int64_t shards = 0;      // read to their end, or to the end of this part's share of them
  std::int64_t bad = 0;         // samples that on_error() left out
  std::int64_t cut = 0;         // samples that bucket_by_length() cut
  int decoders = 0;             // threads
  bool remote = false;          // at least one shard, in a mixture of any source, is remote
  bool cached = false;          // the remote shards of every source are kept in a local cache
  bool indexed = true;          // the position of each sample in its shard is known
  double seconds = 0;           // since the stream was opened
  double reader_busy = 0;       // reading and shuffling
  double reader_idle = 0;       // waiting because enough is prefetched
  double decoder_busy = 0;      // decoding, augmenting, stacking
  double decoder_idle = 0;      // waiting for the reader
  double consumer_waiting = 0;  // inside next() with nothing ready: the run is input-bound for this long
  std::vector<std::int64_t> sources;  // in a mixture: samples of each source, handed out
};

// "812 samples/s, 3.1 MB/s; reading 12 % busy, decoding 96 % of 2 threads"
std::string summary(const Statistics& statistics);
// Says what would make a stream faster whose slowest stage is "read", "decode" or "upload", on a machine with
// `cores` cores: "more --workers: 2 threads decode, the machine has 8 cores".
std::string advice(const std::string& narrowest, const Statistics& statistics, int cores);
// The shares of the time since opening, 0…1, in which the reading thread and the decoding threads were busy.
double reading_share(const Statistics& statistics);
double decoding_share(const Statistics& statistics);

}  // namespace sluice::data
SLUICE_API_END
