#include "sluice/data/tools/dataset_statistics.h"

#include <cmath>
#include <mutex>

#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/base/thread.h"
#include "sluice/data/decode/decode.h"
#include "sluice/data/shards/group.h"

namespace sluice::data {
namespace {

const Field* find_any(const RawSample& sample, const std::vector<std::string>& extensions) {
  for (const std::string& extension : extensions)
    if (const Field* field = sample.find(extension)) return field;
  return nullptr;
}

void add_image(const Pixels& pixels, DatasetStatistics& stats) {
  const auto channels = static_cast<std::size_t>(pixels.channels);
  ++stats.images;
  ++stats.sizes[{pixels.height, pixels.width}];
  stats.pixels += pixels.height * pixels.width;
  // A histogram first: adding up 256 products is cheap compared with the pixels.
  std::vector<std::uint64_t> counts(channels * 256);
  for (std::size_t i = 0; i < pixels.bytes.size(); ++i) ++counts[i % channels * 256 + pixels.bytes[i]];
  for (std::size_t c = 0; c < channels; ++c) {
    for (std::uint64_t level = 0; level < 256; ++level) {
      stats.sums[c] += counts[c * 256 + level] * level;
      stats.squares[c] += counts[c * 256 + level] * level * level;
    }
  }
}

base::Result<DatasetStatistics> shard_stats(const std::string& url, const DatasetStatisticsOptions& options) {
  const auto images = base::split(options.images, ';'), labels = base::split(options.labels, ';');
  Wanted wanted{false, {images.begin(), images.end()}};
  wanted.extensions.insert(labels.begin(), labels.end());
  for (const Filter& filter : options.filters)
    wanted.extensions.insert(filter.members.begin(), filter.members.end());
  SLUICE_TRY(auto source, open_source(url));
  ShardReader reader(std::move(source), wanted);
  DatasetStatistics stats;
  stats.sums.resize(static_cast<std::size_t>(options.model));
  stats.squares.resize(static_cast<std::size_t>(options.model));
  RawSample sample;
  while (true) {
    SLUICE_TRY(const bool found, reader.next(sample));
    if (!found) return stats;
    if (sample.failed) return tl::unexpected<Error>(*sample.failed);
    SLUICE_TRY(const bool taken, is_taken(options.filters, sample));
    ++(taken ? stats.samples : stats.left_out);
    if (!taken) continue;
    const auto where = [&](const Field& field) {
      return base::str(url, ": member ", field.member, " (header at byte ", field.offset, ")");
    };
    if (const Field* label = find_any(sample, labels)) {
      const auto number = parse_whole_number(label->bytes);
      if (!number) return base::fail_at(number, where(*label));
      ++stats.classes[*number];
    }
    if (const Field* image = find_any(sample, images)) {
      const auto pixels = decode_image(image->bytes, options.model);
      if (!pixels) return base::fail_at(pixels, where(*image));
      ++stats.extensions[image->extension];
      stats.image_bytes += image->bytes.size();
      add_image(*pixels, stats);
    }
  }
}

void add(const DatasetStatistics& shard, DatasetStatistics& total) {
  total.samples += shard.samples;
  total.left_out += shard.left_out;
  total.images += shard.images;
  total.pixels += shard.pixels;
  total.image_bytes += shard.image_bytes;
  for (const auto& [extension, count] : shard.extensions) total.extensions[extension] += count;
  for (const auto& [label, count] : shard.classes) total.classes[label] += count;
  for (const auto& [size, count] : shard.sizes) total.sizes[size] += count;
  total.sums.resize(shard.sums.size());
  total.squares.resize(shard.squares.size());
  for (std::size_t c = 0; c < shard.sums.size(); ++c) {
    total.sums[c] += shard.sums[c];
    total.squares[c] += shard.squares[c];
  }
}

}  // namespace

std::vector<double> DatasetStatistics::mean() const {
  std::vector<double> result;
  for (const std::uint64_t sum : sums)
    result.push_back(static_cast<double>(sum) / static_cast<double>(pixels) / 255);
  return result;
}

std::vector<double> DatasetStatistics::deviation() const {
  std::vector<double> result;
  for (std::size_t c = 0; c < sums.size(); ++c) {
    const double count = static_cast<double>(pixels), mean = static_cast<double>(sums[c]) / count;
    result.push_back(std::sqrt(std::max(0.0, static_cast<double>(squares[c]) / count - mean * mean)) / 255);
  }
  return result;
}

base::Result<DatasetStatistics> dataset_statistics(const DatasetStatisticsOptions& options) {
  if (options.urls.empty()) return base::fail(Code::kInvalidArgument, "no shards to look at");
  std::vector<base::Result<DatasetStatistics>> shards(options.urls.size());
  base::ThreadPool pool("sluice-stats", options.workers > 0 ? static_cast<std::size_t>(options.workers)
                                                            : base::available_processors());
  std::mutex mutex;
  std::int64_t done = 0;
  base::parallel_for(pool, options.urls.size(), [&](std::size_t i) {
    shards[i] = shard_stats(options.urls[i], options);
    std::lock_guard lock(mutex);
    ++done;
    if (options.progress) options.progress(done, static_cast<std::int64_t>(options.urls.size()));
  });
  DatasetStatistics total;
  for (const auto& shard : shards) {
    if (!shard) return tl::unexpected<Error>(shard.error());
    add(*shard, total);
  }
  return total;
}

}  // namespace sluice::data
