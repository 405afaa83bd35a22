#include "sluice/data/shards/shard_facts.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "sluice/base/log.h"
#include "sluice/base/random.h"
#include "sluice/base/thread.h"
#include "sluice/data/shards/group.h"
#include "sluice/data/shards/shard_index.h"
#include "sluice/data/shards/urls.h"

namespace sluice::data {
namespace {

std::string_view file_of(std::string_view url) {
  const std::size_t slash = url.rfind('/');
  return slash == std::string_view::npos ? url : url.substr(slash + 1);
}

struct OneShard {
  std::int64_t size = 0;
  std::uint64_t bytes = 0;
  std::vector<std::uint64_t> starts;
  bool headers_read = false;
};

// The sizes.json of each folder, read once.
class FolderSizes {
 public:
  base::Result<std::optional<std::int64_t>> find(const std::string& url) {
    const std::string_view file = file_of(url);
    const std::string folder = url.substr(0, url.size() - file.size());
    std::lock_guard lock(mutex_);
    auto known = folders_.find(folder);
    if (known == folders_.end()) {
      SLUICE_TRY(auto sizes, read_sizes(url));
      known = folders_.emplace(folder, std::move(sizes)).first;
    }
    if (!known->second) return std::optional<std::int64_t>();
    const auto size = known->second->find(file);
    return size == known->second->end() ? std::optional<std::int64_t>() : std::optional(size->second);
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::optional<ShardSizes>, std::less<>> folders_;
};

// Where damage may be skipped, what it costs must be known.
tl::unexpected<Error> uncounted(const Error& error, std::int64_t before, const LearnOptions& options) {
  if (!options.skip_damaged || error.code() == Code::kCancelled) return tl::unexpected<Error>(error);
  return base::fail(
      error.code(), error.what(), ". How many samples are lost after the ", before,
      " before this is not known, so that --max-bad cannot bound them: bring the shard back, or make an "
      "index of a whole copy with 'sluice data index', or leave them out uncounted with "
      "--allow-unknown-loss (allow_unknown_loss())");
}

base::Result<OneShard> read_headers(const std::string& url, const LearnOptions& options) {
  OneShard one;
  one.headers_read = true;
  SourceOptions source_options;
  source_options.cancelled = options.cancelled;
  source_options.cache_folder = options.cache_folder;
  source_options.cache_bytes = options.cache_bytes;
  SLUICE_TRY(auto source, open_source(url, source_options));
  ShardReader reader(std::move(source), Wanted{false, {}});
  RawSample sample;
  std::uint64_t end = 0;
  bool damaged = false;
  while (true) {
    if (options.cancelled != nullptr && *options.cancelled) return base::fail(Code::kCancelled, "cancelled");
    const auto found = reader.next(sample);
    if (!found && options.allow_unknown_loss && found.error().code() != Code::kCancelled) {
      base::warn(found.error().what(), "; only the ", one.size, " samples before this are used");
      damaged = true;
      break;
    }
    if (!found) return uncounted(found.error(), one.size, options);
    if (!*found) break;
    one.starts.push_back(end);
    end = (sample.fields.back().payload + sample.fields.back().size + 511) / 512 * 512;
    ++one.size;
  }
  one.bytes = end;
  // A damaged one is read from its start, as here: whether its last sample is whole is judged by those
  // before.
  if (damaged || is_packed(url)) one.starts.clear();
  return one;
}

base::Result<OneShard> learn_one(const std::string& url, FolderSizes& folders, const LearnOptions& options) {
  OneShard one;
  const auto facts = stat_source(url);
  if (facts) one.bytes = facts->size;
  SLUICE_TRY(const auto index, read_index(url));
  if (index) {
    one.size = static_cast<std::int64_t>(index->samples.size());
    if (!is_packed(url)) one.starts = index->starts();
    return one;
  }
  SLUICE_TRY(const auto size, folders.find(url));
  if (!size) return read_headers(url, options);
  one.size = *size;
  return one;
}

ShardFacts joined(const std::vector<std::string>& urls, std::vector<OneShard> shards) {
  ShardFacts facts;
  bool all_bytes = true;
  for (std::size_t i = 0; i < urls.size(); ++i) {
    OneShard& one = shards[i];
    facts.sizes.push_back(one.size);
    facts.total += one.size;
    facts.bytes += one.bytes;
    all_bytes = all_bytes && (one.bytes > 0 || one.size == 0);
    facts.fingerprint =
        base::key({facts.fingerprint, base::key(file_of(urls[i])), static_cast<std::uint64_t>(one.size)});
    facts.starts.push_back(std::move(one.starts));
  }
  if (!all_bytes) facts.bytes = 0;
  return facts;
}

}  // namespace

bool is_packed(const std::string& url) {
  for (const char* ending : {".gz", ".tgz", ".zst", ".tzst"})
    if (base::ends_with(url, ending)) return true;
  if (is_remote(url)) return false;
  auto source = open_file_source(url);
  char first[10] = {};
  if (!source || !(*source)->read(first, sizeof first)) return false;
  return packing_of({first, sizeof first}) != Packing::kNone;
}

bool can_be_read_again(const std::string& url) { return url != "-" && !base::starts_with(url, "pipe:"); }

base::Result<ShardFacts> learn_shards(const std::vector<std::string>& urls, const LearnOptions& options) {
  for (const std::string& url : urls)
    if (!can_be_read_again(url))
      return base::fail(Code::kInvalidArgument, "the samples of '", url,
                        "' cannot be counted: what comes from stdin or a pipe could be read only once");
  std::vector<OneShard> shards(urls.size());
  if (options.shard_size > 0) {
    for (OneShard& one : shards) one.size = options.shard_size;
    return joined(urls, std::move(shards));
  }
  FolderSizes folders;
  std::mutex mutex;
  std::optional<std::pair<std::size_t, Error>> first_error;  // of the first shard in the list that has one
  std::size_t next = 0, by_headers = 0;
  const auto work = [&] {
    while (true) {
      std::unique_lock lock(mutex);
      if (next == urls.size() || first_error) return;
      const std::size_t i = next++;
      lock.unlock();
      auto one = learn_one(urls[i], folders, options);
      lock.lock();
      if (!one && (!first_error || i < first_error->first)) first_error.emplace(i, one.error());
      if (!one) continue;
      by_headers += one->headers_read ? 1 : 0;
      shards[i] = std::move(*one);
    }
  };
  const bool remote = std::any_of(urls.begin(), urls.end(), [](const auto& url) { return is_remote(url); });
  const std::size_t threads = std::min<std::size_t>(urls.size(), remote ? 16 : base::available_processors());
  std::vector<std::thread> others;
  for (std::size_t i = 1; i < threads; ++i) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  if (first_error) return tl::unexpected<Error>(first_error->second);
  if (by_headers >= 100)
    base::info("the headers of ", by_headers,
               " shards were read to count their samples: 'sluice data index' would make this unnecessary");
  return joined(urls, std::move(shards));
}

}  // namespace sluice::data
