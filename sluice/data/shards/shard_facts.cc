#include "sluice/data/shards/shard_facts.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>

#include "sluice/base/files/file.h"
#include "sluice/base/log.h"
#include "sluice/base/random.h"
#include "sluice/base/text/quantity.h"
#include "sluice/base/text/strings.h"
#include "sluice/base/thread.h"
#include "sluice/cloud/store.h"
#include "sluice/data/shards/group.h"
#include "sluice/data/shards/remote_source.h"
#include "sluice/data/shards/shard_index.h"
#include "sluice/data/shards/urls.h"

namespace sluice::data {
namespace {

std::string_view file_of(std::string_view url) {
  const std::size_t slash = url.rfind('/');
  return slash == std::string_view::npos ? url : url.substr(slash + 1);
}

// Fewer shards are asked one by one: a few requests are cheaper than a list of unknown length, and their
// indexes take little memory.
constexpr std::size_t kMany = 16;

struct OneShard {
  std::int64_t size = 0;
  std::uint64_t bytes = 0;
  std::vector<std::uint64_t> starts;
  std::uint64_t end = 0;  // of the last sample
  bool headers_read = false;
  bool index_later = false;  // there is an index, which is read when the shard is opened
  bool tagged = false;       // its version is a tag from a list, where a request may give a checksum
  SourceFacts facts;
  std::optional<ShardSum> sum;  // as in sizes.json
};

// What the lists of buckets say about the objects next to shards, shards included.
class Listed {
 public:
  // Lists each folder that has many of the shards. A folder that cannot be listed is left out.
  explicit Listed(const std::vector<std::string>& urls) {
    std::map<std::string, std::vector<cloud::ObjectName>> folders;
    for (const std::string& url : urls) {
      if (!cloud::is_object_url(url)) continue;
      if (auto name = cloud::parse_object_url(url))
        folders[url.substr(0, url.rfind('/') + 1)].push_back(std::move(*name));
    }
    for (const auto& [folder, names] : folders)
      if (names.size() >= kMany) list(folder, names);
  }

  // Returns the facts of an object; nothing if its folder was not listed or has no such object.
  const cloud::ObjectFacts* find(const std::string& url) const {
    const auto found = objects_.find(url);
    return found == objects_.end() ? nullptr : &found->second;
  }

 private:
  void list(const std::string& folder, const std::vector<cloud::ObjectName>& names) {
    std::string_view prefix = names.front().object;
    for (const cloud::ObjectName& name : names) {
      const auto differ = std::mismatch(prefix.begin(), prefix.end(), name.object.begin(), name.object.end());
      prefix = prefix.substr(0, static_cast<std::size_t>(differ.first - prefix.begin()));
    }
    const auto store = cloud::store_of(names.front());
    if (!store) return;
    auto objects = (*store)->list(names.front().bucket, std::string(prefix), /*flat=*/true);
    if (!objects) {
      base::debug("the folder ", folder,
                  " cannot be listed, so each shard is asked for: ", objects.error().what());
      return;
    }
    for (cloud::ObjectFacts& object : *objects) {
      std::string url = names.front().beside(object.name).url();
      objects_.emplace(std::move(url), std::move(object));
    }
  }

  std::unordered_map<std::string, cloud::ObjectFacts> objects_;  // by their URLs
};

// Whether a list's facts pin a shard. The hub's lists have another hash than its answers for a file of git
// itself; the SHA-256 of a large file is the same in both.
bool says_version(const std::string& url, const cloud::ObjectFacts& object) {
  if (base::starts_with(url, "hf://")) return object.generation.size() == 64;
  return object.crc32c || !object.generation.empty();
}

// Adds to an error, if damage may be skipped, that the number of lost samples is not known.
tl::unexpected<Error> uncounted(const Error& error, std::int64_t before, const LearnOptions& options) {
  if (!options.skip_damaged || error.code() == Code::kCancelled) return tl::unexpected<Error>(error);
  return base::fail(
      error.code(), error.what(), ". How many samples are lost after the ", before,
      " before this is not known, so that --max-bad cannot bound them: bring the shard back, or make an "
      "index of a whole copy with 'sluice data index', or leave them out uncounted with "
      "--allow-unknown-loss (in C++ allow_unknown_loss())");
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
  bool damaged = false;
  while (true) {
    if (options.cancelled != nullptr && *options.cancelled) return base::fail(Code::kCancelled, "cancelled");
    const auto found = reader.next(sample);
    if (!found && options.allow_unknown_loss && found.error().code() != Code::kCancelled) {
      base::warn(found.error().what(),
                 "; of its samples, those before this are used: ", base::grouped(one.size));
      damaged = true;
      break;
    }
    if (!found) return uncounted(found.error(), one.size, options);
    if (!*found) break;
    one.starts.push_back(one.end);
    one.end = end_of(sample);
    ++one.size;
  }
  one.bytes = one.end;
  // A damaged shard is read from its start, as here: whether its last sample is whole is judged by the
  // others.
  if (damaged || is_packed(url)) one.starts.clear();
  return one;
}

// Checks that the shard is the one that sizes.json describes. If damage may be skipped, a difference is only
// a warning: reading the shard will show what is left of it.
base::Status check_record(const std::string& url, OneShard& one, const LearnOptions& options) {
  if (!one.sum || one.facts.version.empty()) return {};
  // The checksum is compared too if the object has one of its own.
  const bool summed = one.facts.crc32c.has_value();
  const ShardSum found{one.facts.size, one.facts.crc32c.value_or(one.sum->crc32c)};
  if (found == *one.sum) return {};
  const std::string error =
      not_as_recorded(url, summed ? found.text() : base::str(found.bytes, " bytes"), *one.sum);
  one.sum.reset();
  if (!options.skip_damaged) return base::fail(Code::kFailedPrecondition, error);
  base::warn(error);
  return {};
}

base::Result<OneShard> counted(const std::string& url, const std::optional<ShardRecord>& record,
                               const LearnOptions& options) {
  OneShard one;
  one.size = options.shard_size;
  if (one.size > 0) return one;
  SLUICE_TRY(const auto index, read_index(url));
  if (index) {
    one.size = static_cast<std::int64_t>(index->samples.size());
    if (!is_packed(url)) one.starts = index->starts();
    one.end = index->end();
    return one;
  }
  if (!record) return read_headers(url, options);
  one.size = record->samples;
  return one;
}

// `later`: the index of a local shard is read when the shard is opened, if sizes.json counts it.
base::Result<OneShard> learn_one(const std::string& url, const Listed& listed, bool later,
                                 FolderSizes& folders, const LearnOptions& options) {
  const cloud::ObjectFacts* object = listed.find(url);
  if (object != nullptr && !says_version(url, *object)) object = nullptr;
  const auto facts =
      object != nullptr ? SourceFacts{object->size, version_of(*object), object->crc32c} : stat_source(url);
  std::optional<ShardRecord> record;
  if (options.shard_size == 0) {
    SLUICE_TRY(record, folders.find(url));
  }
  OneShard one;
  if (record && (object != nullptr || (later && !is_remote(url)))) {
    one.size = record->samples;
    const std::string index = index_path(url);
    one.index_later = object != nullptr ? listed.find(index) != nullptr : base::path_exists(index);
  } else {
    SLUICE_TRY(one, counted(url, record, options));
  }
  one.tagged = object != nullptr && base::starts_with(url, "s3://");
  if (facts) one.facts = *facts;
  if (one.bytes == 0) one.bytes = one.facts.size;
  if (record) one.sum = record->sum;
  SLUICE_OK(check_record(url, one, options));
  return one;
}

ShardFacts joined(const std::vector<std::string>& urls, std::vector<OneShard> shards) {
  ShardFacts facts;
  bool all_bytes = true, all_sums = true;
  std::vector<bool> later;
  for (const OneShard& one : shards) later.push_back(one.index_later);
  for (std::size_t i = 0; i < urls.size(); ++i) {
    OneShard& one = shards[i];
    facts.sizes.push_back(one.size);
    facts.total += one.size;
    facts.bytes += one.bytes;
    all_bytes = all_bytes && (one.bytes > 0 || one.size == 0);
    facts.fingerprint =
        base::key({facts.fingerprint, base::key(file_of(urls[i])), static_cast<std::uint64_t>(one.size)});
    facts.starts.push_back(std::move(one.starts));
    facts.ends.push_back(one.end);
    facts.tagged = facts.tagged || one.tagged;
    const std::uint64_t version = base::key(one.facts.version);
    facts.versions.push_back(std::move(one.facts.version));
    // The store's own crc32c was compared above, and is compared again with the bytes as they arrive.
    facts.unread_sums.push_back(one.facts.crc32c ? std::nullopt : one.sum);
    const bool remote = is_remote(urls[i]);
    facts.content = base::key({facts.content, remote ? version : one.facts.size});
    if (remote) continue;
    facts.times = base::key({facts.times.value_or(0), version});
    all_sums = all_sums && one.sum;
    if (all_sums) facts.sums = base::key({facts.sums.value_or(0), one.sum->bytes, one.sum->crc32c});
  }
  if (!all_bytes) facts.bytes = 0;
  if (!all_sums) facts.sums.reset();
  facts.places = std::make_shared<ShardPlaces>(urls, facts.sizes, std::move(later));
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

base::Status for_each_shard(const std::vector<std::string>& urls,
                            const std::function<base::Status(std::size_t)>& work) {
  std::mutex mutex;
  std::optional<std::pair<std::size_t, Error>> first_error;
  std::size_t next = 0;
  const auto work_on = [&] {
    while (true) {
      std::unique_lock lock(mutex);
      if (next == urls.size() || first_error) return;
      const std::size_t i = next++;
      lock.unlock();
      const auto status = work(i);
      lock.lock();
      if (!status && (!first_error || i < first_error->first)) first_error.emplace(i, status.error());
    }
  };
  const bool remote = std::any_of(urls.begin(), urls.end(), [](const auto& url) { return is_remote(url); });
  const std::size_t threads = std::min<std::size_t>(urls.size(), remote ? 16 : base::available_processors());
  std::vector<std::thread> others;
  for (std::size_t i = 1; i < threads; ++i) others.emplace_back(work_on);
  work_on();
  for (std::thread& other : others) other.join();
  if (first_error) return tl::unexpected<Error>(first_error->second);
  return {};
}

bool can_be_read_again(const std::string& url) { return url != "-" && !base::starts_with(url, "pipe:"); }

base::Result<ShardFacts> learn_shards(const std::vector<std::string>& urls, const LearnOptions& options) {
  for (const std::string& url : urls)
    if (!can_be_read_again(url))
      return base::fail(Code::kInvalidArgument, "the samples of '", url,
                        "' cannot be counted: what comes from stdin or a pipe could be read only once");
  std::vector<OneShard> shards(urls.size());
  FolderSizes folders;
  const Listed listed(options.shard_size == 0 ? urls : std::vector<std::string>());
  SLUICE_OK(for_each_shard(urls, [&](std::size_t i) -> base::Status {
    SLUICE_TRY(shards[i], learn_one(urls[i], listed, urls.size() >= kMany, folders, options));
    return {};
  }));
  const auto by_headers =
      std::count_if(shards.begin(), shards.end(), [](const OneShard& one) { return one.headers_read; });
  if (by_headers >= 100)
    base::info("the headers of ", by_headers,
               " shards were read to count their samples: 'sluice data index' would make this unnecessary");
  return joined(urls, std::move(shards));
}

base::Status check_sums(const std::vector<std::string>& urls) {
  FolderSizes folders;
  return for_each_shard(urls, [&](std::size_t i) -> base::Status {
    if (is_remote(urls[i])) return {};
    SLUICE_TRY(const auto record, folders.find(urls[i]));
    if (!record || !record->sum) return {};
    SLUICE_TRY(const ShardSum found, sum_source(urls[i]));
    if (found == *record->sum) return {};
    return base::fail(Code::kFailedPrecondition, not_as_recorded(urls[i], found.text(), *record->sum));
  });
}

}  // namespace sluice::data
