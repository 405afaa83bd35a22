#include "sluice/data/tools/shard_set.h"

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <optional>
#include <sstream>

#include "sluice/base/files/file.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/number.h"
#include "sluice/base/text/quantity.h"
#include "sluice/base/text/strings.h"
#include "sluice/base/thread.h"
#include "sluice/cloud/store.h"
#include "sluice/data/decode/decode.h"
#include "sluice/data/shards/tar_writer.h"
#include "sluice/data/tools/shard_store.h"
#include "sluice/data/tools/shard_upload.h"

namespace sluice::data {
namespace {

std::string shard_name(const ShardOptions& options, std::int64_t index, std::size_t width) {
  std::string number = std::to_string(index);
  number.insert(0, width - std::min(width, number.size()), '0');
  return options.prefix + "-" + number + ".tar";
}

// The shards of one set while several threads write them.
class SetWriter {
 public:
  SetWriter(std::int64_t count, const std::function<base::Result<NewSample>(std::int64_t)>& produce,
            const ShardOptions& options, const SetStart& start, bool goes_on, ShardStore& store)
      : count_(count),
        produce_(produce),
        options_(options),
        start_(start),
        goes_on_(goes_on),
        store_(store),
        shards_((count + options.shard_size - 1) / options.shard_size) {
    const std::size_t width =
        options.append ? start.width : std::max<std::size_t>(4, std::to_string(shards_ - 1).size());
    for (std::int64_t i = 0; i < shards_; ++i) names_.push_back(shard_name(options, start.shard + i, width));
    records_.resize(names_.size());
  }

  base::Status write_all() {
    base::ThreadPool pool("sluice-pack", options_.workers > 0 ? static_cast<std::size_t>(options_.workers)
                                                              : base::available_processors());
    std::vector<base::Status> outcomes(names_.size());
    base::parallel_for(pool, names_.size(), [&](std::size_t i) {
      if (failed_) return;
      outcomes[i] = write_one(i);
      if (!outcomes[i]) failed_ = true;
    });
    for (const base::Status& outcome : outcomes) SLUICE_OK(outcome);
    return {};
  }
  const std::vector<std::string>& names() const { return names_; }
  const ShardRecord& record_of(std::size_t shard) const { return records_[shard]; }
  std::int64_t continued() const { return continued_; }

 private:
  std::int64_t first(std::size_t shard) const {
    return static_cast<std::int64_t>(shard) * options_.shard_size;
  }
  std::int64_t last(std::size_t shard) const { return std::min(count_, first(shard) + options_.shard_size); }

  base::Status write_one(std::size_t shard) {
    const std::int64_t samples = last(shard) - first(shard);
    std::optional<ShardSum> kept;
    if (goes_on_) {
      SLUICE_TRY(kept, store_.kept(names_[shard]));
    }
    if (kept) {
      ++continued_;
      advance(samples);
      records_[shard] = ShardRecord(samples, *kept);
      return {};
    }
    const std::string path = base::join_path(store_.folder(), names_[shard]);
    SLUICE_OK(write_samples(shard, path));
    if (failed_) return {};
    ShardSum sum;
    SLUICE_TRY(const ShardIndex index, index_shard(path, &sum));
    SLUICE_OK(write_index(path, index));
    records_[shard] = ShardRecord(samples, sum);
    return store_.keep(path);
  }
  base::Status write_samples(std::size_t shard, const std::string& path) {
    SLUICE_TRY(auto writer, TarWriter::create(path));
    std::int64_t unreported = 0;
    const std::int64_t end = last(shard);
    for (std::int64_t i = first(shard); i < end; ++i) {
      if (failed_) return {};
      SLUICE_TRY(const NewSample sample, produce_(i));
      const std::string key = options_.append ? sample_key(start_.key + i) : sample.key;
      for (const auto& [extension, payload] : sample.members)
        SLUICE_OK(writer.add(key + "." + extension, payload));
      if (++unreported < 256 && i + 1 < end) continue;
      advance(unreported);
      unreported = 0;
    }
    return writer.finish();
  }
  void advance(std::int64_t samples) {
    std::lock_guard lock(mutex_);
    done_ += samples;
    if (options_.progress) options_.progress(done_, count_);
  }

  const std::int64_t count_;
  const std::function<base::Result<NewSample>(std::int64_t)>& produce_;
  const ShardOptions& options_;
  const SetStart start_;
  const bool goes_on_;  // continues from the shards that an earlier run kept
  ShardStore& store_;
  const std::int64_t shards_;
  std::vector<std::string> names_;
  std::vector<ShardRecord> records_;
  std::atomic<bool> failed_{false};
  std::atomic<std::int64_t> continued_{0};
  std::mutex mutex_;
  std::int64_t done_ = 0;  // samples; under mutex_
};

// Returns where a set that is appended to continues. `names`: its shards, at least one.
base::Result<SetStart> end_of_set(const ShardOptions& options, const std::vector<std::string>& names) {
  SetStart start;
  for (const std::string& name : names) {
    const std::size_t at = options.prefix.size() + 1;
    const std::string digits = name.substr(at, name.size() - at - 4);
    SLUICE_TRY(const std::int64_t number, parse_whole_number(digits));
    if (number >= start.shard) start.width = digits.size();
    start.shard = std::max(start.shard, number + 1);
    SLUICE_TRY(const auto keys, keys_of_shard(base::join_path(options.folder, name)));
    for (const std::string& key : keys)
      if (const auto number = parse_whole_number(key)) start.key = std::max(start.key, *number + 1);
  }
  return start;
}

// A store of shards in a hidden folder of the set's own.
class LocalStore : public ShardStore {
 public:
  explicit LocalStore(const ShardOptions& options)
      : options_(options), hidden_(base::join_path(options.folder, "." + options.prefix + ".partial")) {}

  std::string folder() const override { return hidden_; }
  std::string place() const override { return hidden_; }
  base::Result<std::vector<std::string>> existing() const override {
    SLUICE_TRY(auto names, base::list_directory(options_.folder));
    std::erase_if(names, [&](const std::string& name) { return !is_shard_of(name, options_.prefix); });
    return names;
  }
  base::Status clear() override {
    remove();
    return base::make_directories(hidden_);
  }
  void remove() override {
    std::error_code ignored;
    std::filesystem::remove_all(hidden_, ignored);
  }
  Error give_up(const Error& error) override {
    remove();
    return error;
  }
  // A shard has its name only when it is whole; it may already be in the set's folder.
  base::Result<std::optional<ShardSum>> kept(const std::string& name) override {
    for (const std::string& folder : {hidden_, moving_ ? options_.folder : hidden_}) {
      const std::string path = base::join_path(folder, name);
      if (!base::path_exists(path)) continue;
      ShardSum sum;
      SLUICE_TRY(const ShardIndex index, index_shard(path, &sum));
      SLUICE_OK(write_index(path, index));
      return std::optional(sum);
    }
    return std::optional<ShardSum>();
  }
  base::Status keep(const std::string& /*path: it is there*/) override { return {}; }
  void goes_on_moving() override { moving_ = true; }
  base::Status remove_old(const std::string& name) override {
    const std::string path = base::join_path(options_.folder, name), index = index_path(path);
    if (base::path_exists(index)) SLUICE_OK(base::remove_file(index));
    return base::remove_file(path);
  }
  base::Status move(const std::vector<std::string>& names) override {
    for (const std::string& name : names)
      for (const std::string& file : {index_path(name), name}) {
        const std::string from = base::join_path(hidden_, file), to = base::join_path(options_.folder, file);
        if (moving_ && !base::path_exists(from)) continue;
        if (std::rename(from.c_str(), to.c_str()) != 0)
          return base::fail_errno(errno, "move a finished shard to", to);
      }
    return base::sync_directory(options_.folder);
  }

 private:
  const ShardOptions& options_;
  const std::string hidden_;
  bool moving_ = false;  // a run that was stopped had begun to move
};

base::Status check_options(std::int64_t count, const ShardOptions& options) {
  if (options.shard_size < 1)
    return base::fail(Code::kInvalidArgument, "a shard size of ", options.shard_size,
                      ": expected 1 sample or more");
  if (options.prefix.empty() || options.prefix.find('/') != std::string::npos)
    return base::fail(Code::kInvalidArgument, "a prefix of '", options.prefix,
                      "': expected a name without slashes, such as train");
  if (count < 1) return base::fail(Code::kInvalidArgument, "no samples to write into ", options.folder);
  return {};
}

constexpr char kMoving[] = "\nmoving";  // the end of a store's small file

// The state that a run finds, and where it begins.
struct Begun {
  SetStart start;
  bool moving = false;           // all shards are written, and an earlier run had begun to move them
  bool goes_on = false;          // an earlier run of the same set may have kept some
  std::vector<std::string> old;  // shards that are replaced
};

std::string text_of(const ShardOptions& options, const SetStart& start) {
  return base::str(options.fingerprint, "\n", start.shard, " ", start.width, " ", start.key);
}

// Empties the store, unless a run with the same fingerprint left it.
base::Result<Begun> begin(const ShardOptions& options, ShardStore& store) {
  Begun begun;
  SLUICE_TRY(const auto found, store.read(kStoreFile));
  const bool ours =
      found && !options.fingerprint.empty() && base::starts_with(*found, options.fingerprint + "\n");
  if (ours && base::ends_with(*found, kMoving)) {
    std::istringstream numbers(found->substr(options.fingerprint.size()));
    numbers >> begun.start.shard >> begun.start.width >> begun.start.key;
    begun.moving = begun.goes_on = true;
    store.goes_on_moving();
    return begun;
  }
  SLUICE_TRY(auto there, store.existing());
  if (options.append && there.empty())
    return base::fail(
        Code::kNotFound, options.folder, " has no shards named ", options.prefix,
        "-0000.tar …: expected a set to add to; 'sluice data pack' makes one, --prefix says its name");
  if (!there.empty() && !options.overwrite && !options.append)
    return base::fail(Code::kAlreadyExists, options.folder, " already holds ",
                      base::counted(static_cast<std::int64_t>(there.size()), "shard"),
                      " of this set, such as ", there.front(),
                      ": choose another place or prefix, overwrite them (--overwrite), or add to them with "
                      "'sluice data append'");
  if (options.append) {
    SLUICE_TRY(begun.start, end_of_set(options, there));
  } else {
    begun.old = std::move(there);
  }
  begun.goes_on = ours && *found == text_of(options, begun.start);
  if (begun.goes_on) return begun;
  SLUICE_OK(store.clear());
  if (!options.fingerprint.empty()) SLUICE_OK(store.write(kStoreFile, text_of(options, begun.start)));
  return begun;
}

}  // namespace

bool is_shard_of(const std::string& name, const std::string& prefix) {
  if (!base::starts_with(name, prefix + "-") || !base::ends_with(name, ".tar")) return false;
  const std::string number = name.substr(prefix.size() + 1, name.size() - prefix.size() - 5);
  return !number.empty() && number.find_first_not_of("0123456789") == std::string::npos;
}

base::Result<std::optional<std::string>> ShardStore::read(const std::string& name) const {
  return read_text(base::join_path(place(), name));
}
base::Status ShardStore::write(const std::string& name, const std::string& text) const {
  return write_text(base::join_path(place(), name), text);
}

base::Result<ShardReport> write_shards(std::int64_t count,
                                       const std::function<base::Result<NewSample>(std::int64_t)>& produce,
                                       const ShardOptions& options) {
  SLUICE_OK(check_options(count, options));
  if (cloud::is_object_url(options.folder)) return write_shards_to_bucket(count, produce, options);
  SLUICE_OK(base::make_directories(options.folder));
  remove_leftovers(options.folder);
  LocalStore store(options);
  remove_leftovers(store.folder());
  return write_set(count, produce, options, store);
}

base::Result<ShardReport> write_set(std::int64_t count,
                                    const std::function<base::Result<NewSample>(std::int64_t)>& produce,
                                    const ShardOptions& options, ShardStore& store) {
  // An unreadable sizes.json is found before the work.
  SLUICE_TRY(ShardSizes sizes, sizes_of_other_sets(options));
  SLUICE_TRY(const Begun begun, begin(options, store));
  SetWriter writer(count, produce, options, begun.start, begun.goes_on, store);
  if (const auto written = writer.write_all(); !written)
    return tl::unexpected<Error>(store.give_up(written.error()));
  const std::string sizes_path = base::join_path(options.folder, "sizes.json");
  if (!begun.moving) {
    if (!begun.old.empty()) SLUICE_OK(write_text(sizes_path, format_sizes(sizes)));
    for (const std::string& name : begun.old) SLUICE_OK(store.remove_old(name));
    if (!options.fingerprint.empty())
      SLUICE_OK(store.write(kStoreFile, text_of(options, begun.start) + kMoving));
  }
  SLUICE_OK(store.move(writer.names()));
  ShardReport report;
  for (std::size_t i = 0; i < writer.names().size(); ++i) {
    const std::string& name = writer.names()[i];
    const ShardRecord& record = writer.record_of(i);
    report.shards.push_back(base::join_path(options.folder, name));
    report.bytes += record.sum->bytes;
    sizes.insert_or_assign(name, record);
  }
  SLUICE_OK(write_text(sizes_path, format_sizes(sizes)));
  if (!options.classes.empty())
    SLUICE_OK(write_lines(base::join_path(options.folder, "classes.txt"), options.classes));
  store.remove();
  report.samples = count;
  report.continued = writer.continued();
  return report;
}

base::Result<ShardSizes> sizes_of_other_sets(const ShardOptions& options) {
  SLUICE_TRY(auto sizes, read_sizes(base::join_path(options.folder, "any")));
  if (!sizes) return ShardSizes();
  if (options.append) return std::move(*sizes);
  std::erase_if(*sizes, [&](const auto& item) { return is_shard_of(item.first, options.prefix); });
  return std::move(*sizes);
}

base::Status write_lines(const std::string& path, const std::vector<std::string>& lines) {
  return write_text(path, base::join(lines, "\n") + "\n");
}

void remove_leftovers(const std::string& folder) {
  const auto names = base::list_directory(folder);
  if (!names) return;
  for (const std::string& name : *names) {
    const std::size_t at = name.rfind(".tmp-");
    if (at == std::string::npos) continue;
    const std::string written = name.substr(0, at);
    const auto numbers = base::split(name.substr(at + 5), '-');
    const auto process = numbers.size() == 2 ? base::number_of<pid_t>(numbers[0]) : std::nullopt;
    if (!process || *process <= 0 || !base::number_of<int>(numbers[1])) continue;
    const bool ours = base::ends_with(written, ".tar") || base::ends_with(written, ".idx") ||
                      written == "sizes.json" || written == "classes.txt";
    if (!ours || ::kill(*process, 0) == 0 || errno != ESRCH) continue;
    std::error_code ignored;
    std::filesystem::remove(base::join_path(folder, name), ignored);
  }
}

std::string sample_key(std::int64_t index) {
  char text[32];
  std::snprintf(text, sizeof text, "%07lld", static_cast<long long>(index));
  return text;
}

}  // namespace sluice::data
