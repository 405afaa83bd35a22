#include "sluice/data/tools/shard_upload.h"

#include <algorithm>

#include "sluice/base/file.h"
#include "sluice/cloud/storage.h"
#include "sluice/data/shards/shard_index.h"
#include "sluice/data/tools/copy.h"

namespace sluice::data {
namespace {

// The objects that are shards of this prefix: PREFIX-NUMBER.tar.
base::Result<std::vector<cloud::GsName>> existing(const cloud::Storage& storage, const cloud::GsName& folder,
                                                  const std::string& prefix) {
  std::vector<cloud::GsName> shards;
  const std::string start = folder.object + prefix + "-";
  SLUICE_TRY(const auto objects, storage.list(folder.bucket, start, /*flat=*/true));
  for (const auto& object : objects) {
    const std::string rest = object.name.substr(start.size());
    const std::size_t digits = rest.find_first_not_of("0123456789");
    if (digits > 0 && digits != std::string::npos && rest.substr(digits) == ".tar")
      shards.push_back({folder.bucket, object.name});
  }
  return shards;
}

}  // namespace

base::Result<ShardReport> write_shards_to_bucket(
    std::int64_t count, const std::function<base::Result<NewSample>(std::int64_t)>& produce,
    const ShardOptions& options) {
  SLUICE_TRY(cloud::Storage * storage, cloud::Storage::shared());
  const std::string url = base::ends_with(options.folder, "/") ? options.folder : options.folder + "/";
  SLUICE_TRY(const cloud::GsName folder, cloud::parse_gs(url));
  const std::string sizes_url = url + "sizes.json";
  SLUICE_TRY(const auto old, existing(*storage, folder, options.prefix));
  if (!old.empty() && !options.overwrite)
    return base::fail(Code::kAlreadyExists, url, " already holds ", old.size(),
                      " shard(s) of this set, such as ", old.front().url(),
                      ": choose another place or prefix, or overwrite them (--overwrite)");
  SLUICE_TRY(const auto local, base::TemporaryDirectory::create("sluice-pack"));
  ShardOptions here = options;
  here.folder = local.path();
  SLUICE_TRY(ShardReport report, write_shards(count, produce, here));

  SLUICE_TRY(ShardSizes sizes, sizes_of_other_sets(options));
  if (!old.empty()) SLUICE_OK(write_text(sizes_url, format_sizes(sizes)));
  CopyOptions copy;
  copy.from = report.shards;
  copy.to = url;
  copy.overwrite = options.overwrite;
  SLUICE_TRY([[maybe_unused]] const auto copied, copy_files(copy));
  SLUICE_TRY(const auto records, read_sizes(report.shards.front()));
  for (std::string& shard : report.shards) {
    const std::string name = shard.substr(shard.rfind('/') + 1);
    sizes[name] = records->at(name);
    shard = url + name;
  }
  for (const cloud::GsName& shard : old)
    if (std::find(report.shards.begin(), report.shards.end(), shard.url()) == report.shards.end())
      SLUICE_OK(storage->remove(shard));
  SLUICE_OK(write_text(sizes_url, format_sizes(sizes)));
  return report;
}

}  // namespace sluice::data
