#include "sluice/data/tools/shard_set.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <mutex>

#include "sluice/base/file.h"
#include "sluice/base/thread.h"
#include "sluice/cloud/storage.h"
#include "sluice/data/shards/tar_writer.h"
#include "sluice/data/tools/shard_upload.h"

namespace sluice::data {
namespace {

std::string shard_name(const ShardOptions& options, std::int64_t index, std::int64_t count) {
  const std::size_t width = std::max<std::size_t>(4, std::to_string(count - 1).size());
  std::string number = std::to_string(index);
  number.insert(0, width - number.size(), '0');
  return options.prefix + "-" + number + ".tar";
}

bool is_shard_of(const std::string& name, const std::string& prefix) {
  if (!base::starts_with(name, prefix + "-") || !base::ends_with(name, ".tar")) return false;
  const std::string number = name.substr(prefix.size() + 1, name.size() - prefix.size() - 5);
  return !number.empty() && number.find_first_not_of("0123456789") == std::string::npos;
}

base::Result<std::vector<std::string>> existing_shards(const ShardOptions& options) {
  SLUICE_TRY(auto names, base::list_directory(options.folder));
  std::erase_if(names, [&](const std::string& name) { return !is_shard_of(name, options.prefix); });
  return names;
}

// The shards of one set on their way, written by several threads.
class SetWriter {
 public:
  SetWriter(std::int64_t count, const std::function<base::Result<NewSample>(std::int64_t)>& produce,
            const ShardOptions& options, std::string folder)
      : count_(count),
        produce_(produce),
        options_(options),
        folder_(std::move(folder)),
        shards_((count + options.shard_size - 1) / options.shard_size) {
    for (std::int64_t i = 0; i < shards_; ++i) names_.push_back(shard_name(options, i, shards_));
    records_.resize(names_.size());
  }

  base::Status write_all(ShardReport& report) {
    base::ThreadPool pool("sluice-pack", options_.workers > 0 ? static_cast<std::size_t>(options_.workers)
                                                              : base::available_processors());
    std::vector<base::Status> outcomes(names_.size());
    base::parallel_for(pool, names_.size(), [&](std::size_t i) {
      if (failed_) return;
      outcomes[i] = write_one(i);
      if (outcomes[i]) outcomes[i] = record(i);
      if (!outcomes[i]) failed_ = true;
    });
    for (const base::Status& outcome : outcomes) SLUICE_OK(outcome);
    for (const ShardRecord& record : records_) report.bytes += record.sum->bytes;
    report.continued = continued_;
    return {};
  }
  const std::vector<std::string>& names() const { return names_; }
  const ShardRecord& record_of(std::size_t shard) const { return records_[shard]; }

 private:
  std::int64_t first(std::size_t shard) const {
    return static_cast<std::int64_t>(shard) * options_.shard_size;
  }
  std::int64_t last(std::size_t shard) const { return std::min(count_, first(shard) + options_.shard_size); }
  // The index file and the sum, of the file as it is: one that a stopped run wrote is read too.
  base::Status record(std::size_t shard) {
    const std::string path = base::join_path(folder_, names_[shard]);
    ShardSum sum;
    SLUICE_TRY(const ShardIndex index, index_shard(path, &sum));
    records_[shard] = ShardRecord(last(shard) - first(shard), sum);
    return write_index(path, index);
  }
  base::Status write_one(std::size_t shard) {
    const std::string path = base::join_path(folder_, names_[shard]);
    // A shard has its name only when it is whole.
    if (base::path_exists(path)) {
      ++continued_;
      advance(last(shard) - first(shard));
      return {};
    }
    SLUICE_TRY(auto writer, TarWriter::create(path));
    std::int64_t unreported = 0;
    const std::int64_t end = last(shard);
    for (std::int64_t i = first(shard); i < end; ++i) {
      if (failed_) return {};
      SLUICE_TRY(const NewSample sample, produce_(i));
      for (const auto& [extension, payload] : sample.members)
        SLUICE_OK(writer.add(sample.key + "." + extension, payload));
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
  const std::string folder_;
  const std::int64_t shards_;
  std::vector<std::string> names_;
  std::vector<ShardRecord> records_;
  std::atomic<bool> failed_{false};
  std::atomic<std::int64_t> continued_{0};
  std::mutex mutex_;
  std::int64_t done_ = 0;  // samples; under mutex_
};

// The hidden folder, emptied unless a run with the same fingerprint left it.
base::Status prepare(const std::string& folder, const ShardOptions& options) {
  const std::string file = base::join_path(folder, "fingerprint");
  const auto found = base::read_file(file);
  if (found && !options.fingerprint.empty() && *found == options.fingerprint) return {};
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  SLUICE_OK(base::make_directories(folder));
  return options.fingerprint.empty() ? base::Status()
                                     : base::write_file_atomically(file, options.fingerprint);
}

// Old shards of the prefix go away first, with their index files and what sizes.json says of them: a longer
// old set must not be mixed into a shorter new one.
base::Status move_into_place(const std::string& from, const SetWriter& writer,
                             const std::vector<std::string>& old, const ShardOptions& options) {
  const std::string sizes_path = base::join_path(options.folder, "sizes.json");
  SLUICE_TRY(ShardSizes sizes, sizes_of_other_sets(options));
  if (!old.empty()) SLUICE_OK(write_text(sizes_path, format_sizes(sizes)));
  for (const std::string& name : old) {
    const std::string path = base::join_path(options.folder, name), index = index_path(path);
    if (base::path_exists(index)) SLUICE_OK(base::remove_file(index));
    SLUICE_OK(base::remove_file(path));
  }
  for (std::size_t i = 0; i < writer.names().size(); ++i) {
    const std::string& name = writer.names()[i];
    for (const std::string& file : {index_path(name), name}) {
      const std::string target = base::join_path(options.folder, file);
      if (std::rename(base::join_path(from, file).c_str(), target.c_str()) != 0)
        return base::fail_errno(errno, "cannot move a finished shard to", target);
    }
    sizes[name] = writer.record_of(i);
  }
  SLUICE_OK(base::sync_directory(options.folder));
  return write_text(sizes_path, format_sizes(sizes));
}

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

}  // namespace

base::Result<ShardReport> write_shards(std::int64_t count,
                                       const std::function<base::Result<NewSample>(std::int64_t)>& produce,
                                       const ShardOptions& options) {
  SLUICE_OK(check_options(count, options));
  if (cloud::is_gs(options.folder)) return write_shards_to_bucket(count, produce, options);
  SLUICE_OK(base::make_directories(options.folder));
  SLUICE_OK(sizes_of_other_sets(options));  // one that cannot be read is found before the work
  SLUICE_TRY(const auto old, existing_shards(options));
  if (!old.empty() && !options.overwrite)
    return base::fail(Code::kAlreadyExists, options.folder, " already holds ", old.size(),
                      " shard(s) of this set, such as ", old.front(),
                      ": choose another folder or prefix, or overwrite them (--overwrite)");
  const std::string hidden = base::join_path(options.folder, "." + options.prefix + ".partial");
  SLUICE_OK(prepare(hidden, options));
  SetWriter writer(count, produce, options, hidden);
  ShardReport report;
  base::Status outcome = writer.write_all(report);
  if (outcome) outcome = move_into_place(hidden, writer, old, options);
  std::error_code ignored;
  std::filesystem::remove_all(hidden, ignored);
  SLUICE_OK(outcome);
  for (const std::string& name : writer.names())
    report.shards.push_back(base::join_path(options.folder, name));
  report.samples = count;
  return report;
}

base::Result<ShardSizes> sizes_of_other_sets(const ShardOptions& options) {
  SLUICE_TRY(auto sizes, read_sizes(base::join_path(options.folder, "any")));
  if (!sizes) return ShardSizes();
  std::erase_if(*sizes, [&](const auto& item) { return is_shard_of(item.first, options.prefix); });
  return std::move(*sizes);
}

base::Status write_lines(const std::string& path, const std::vector<std::string>& lines) {
  const std::string text = base::join(lines, "\n") + "\n";
  if (!cloud::is_gs(path)) return base::write_file_atomically(path, text);
  SLUICE_TRY(const cloud::Storage* storage, cloud::Storage::shared());
  SLUICE_TRY(const cloud::GsName name, cloud::parse_gs(path));
  SLUICE_TRY([[maybe_unused]] const auto facts, storage->upload_text(text, name));
  return {};
}

std::string sample_key(std::int64_t index) {
  char text[32];
  std::snprintf(text, sizeof text, "%07lld", static_cast<long long>(index));
  return text;
}

}  // namespace sluice::data
