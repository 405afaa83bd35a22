#include "sluice/data/stream_statistics.h"

#include <algorithm>
#include <cmath>

#include "sluice/base/text/join.h"

namespace sluice::data {
namespace {

double share(double busy, double all) { return all > 0 ? std::clamp(busy / all, 0.0, 1.0) : 0; }

std::int64_t percent(double part) { return std::llround(100 * part); }

}  // namespace

double reading_share(const Statistics& statistics) {
  return share(statistics.reader_busy, statistics.seconds);
}

double decoding_share(const Statistics& statistics) {
  return share(statistics.decoder_busy, statistics.seconds * statistics.decoders);
}

std::string advice(const std::string& narrowest, const Statistics& statistics, int cores) {
  if (narrowest == "decode") {
    if (statistics.decoders < cores)
      return base::str("more --workers: ", statistics.decoders, " threads decode, and there are ", cores,
                       " cores");
    return base::str("images that are stored smaller, a host with more than ", cores,
                     " cores, or more hosts: all cores decode");
  }
  if (narrowest == "upload") return "larger batches, or smaller images";
  if (!statistics.indexed)
    return "index files next to the shards, made by 'sluice data index', if the shards are not packed";
  if (statistics.remote && !statistics.cached)
    return "--cache DIR, from the second epoch on, a bucket in the same region, or more hosts";
  return statistics.remote ? "more hosts, which share the reading"
                           : "a faster disk, or shards that are not packed by gzip or zstd";
}

std::string summary(const Statistics& statistics) {
  const double seconds = std::max(statistics.seconds, 1e-9);
  const auto tenths = std::llround(static_cast<double>(statistics.bytes) / seconds / 1e5);
  return base::str(std::llround(static_cast<double>(statistics.samples) / seconds), " samples/s, ",
                   tenths / 10, ".", tenths % 10, " MB/s; reading ", percent(reading_share(statistics)),
                   " % busy, decoding ", percent(decoding_share(statistics)), " % of ", statistics.decoders,
                   " threads");
}

}  // namespace sluice::data
