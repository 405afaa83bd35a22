#include "sluice/data/shard_set.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "sluice/base/file.h"
#include "sluice/cloud/storage.h"
#include "sluice/data/shard_upload.h"
#include "sluice/data/tar_writer.h"

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

base::Result<std::uint64_t> write_one(const std::string& path, std::int64_t first, std::int64_t last,
                                      std::int64_t total,
                                      const std::function<base::Result<NewSample>(std::int64_t)>& produce,
                                      const ShardOptions& options) {
  SLUICE_TRY(auto writer, TarWriter::create(path));
  for (std::int64_t i = first; i < last; ++i) {
    SLUICE_TRY(const NewSample sample, produce(i));
    for (const auto& [extension, payload] : sample.members)
      SLUICE_OK(writer.add(sample.key + "." + extension, payload));
    if (options.progress && (i % 256 == 255 || i + 1 == total)) options.progress(i + 1, total);
  }
  SLUICE_OK(writer.finish());
  return base::file_size(path);
}

// Old shards of the prefix go away first: a longer old set must not be mixed into a shorter new one.
base::Status move_into_place(const std::string& from, const std::vector<std::string>& names,
                             const std::vector<std::string>& old, const ShardOptions& options) {
  for (const std::string& name : old) SLUICE_OK(base::remove_file(base::join_path(options.folder, name)));
  for (const std::string& name : names) {
    const std::string target = base::join_path(options.folder, name);
    if (std::rename(base::join_path(from, name).c_str(), target.c_str()) != 0)
      return base::fail_errno(errno, "cannot move a finished shard to", target);
  }
  return base::sync_directory(options.folder);
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
  SLUICE_TRY(const auto old, existing_shards(options));
  if (!old.empty() && !options.overwrite)
    return base::fail(Code::kAlreadyExists, options.folder, " already holds ", old.size(),
                      " shard(s) of this set, such as ", old.front(),
                      ": choose another folder or prefix, or overwrite them (--overwrite)");
  const std::string hidden = base::join_path(options.folder, "." + options.prefix + ".partial");
  std::error_code ignored;
  std::filesystem::remove_all(hidden, ignored);  // of an earlier run that was stopped
  SLUICE_OK(base::make_directories(hidden));

  ShardReport report;
  std::vector<std::string> names;
  const std::int64_t shards = (count + options.shard_size - 1) / options.shard_size;
  base::Status outcome;
  for (std::int64_t i = 0; i < shards && outcome; ++i) {
    names.push_back(shard_name(options, i, shards));
    const auto bytes = write_one(base::join_path(hidden, names.back()), i * options.shard_size,
                                 std::min(count, (i + 1) * options.shard_size), count, produce, options);
    if (!bytes) {
      outcome = tl::unexpected<Error>(bytes.error());
    } else {
      report.bytes += *bytes;
    }
    report.shards.push_back(base::join_path(options.folder, names.back()));
  }
  if (outcome) outcome = move_into_place(hidden, names, old, options);
  std::filesystem::remove_all(hidden, ignored);
  SLUICE_OK(outcome);
  report.samples = count;
  return report;
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
