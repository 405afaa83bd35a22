// sluice data index
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>

#include "sluice/base/files/file.h"
#include "sluice/base/thread.h"
#include "sluice/cli/data/common.h"
#include "sluice/data/shards/shard_index.h"

namespace sluice::cli {
namespace {

struct IndexOptions {
  std::vector<std::string> shards;
  int workers = 0;
  bool json = false;
};

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

using Folders = std::map<std::string, data::ShardSizes>;

// Returns the current contents of each folder's sizes.json.
base::Result<Folders> read_folders(const std::vector<std::string>& urls) {
  Folders folders;
  for (const std::string& url : urls) {
    const auto [folder, is_new] = folders.try_emplace(base::parent_path(url));
    if (!is_new) continue;
    SLUICE_TRY(const auto before, data::read_sizes(url));
    if (before) folder->second = *before;
  }
  return folders;
}

base::Status index_shards(const IndexOptions& options) {
  SLUICE_TRY(const auto urls, expand_arguments(options.shards));
  SLUICE_TRY(Folders folders, read_folders(urls));
  Progress progress;
  std::vector<base::Result<data::ShardRecord>> found(urls.size());
  base::ThreadPool pool("sluice-index", options.workers > 0 ? static_cast<std::size_t>(options.workers)
                                                            : base::available_processors());
  std::mutex mutex;
  std::int64_t done = 0;
  base::parallel_for(pool, urls.size(), [&](std::size_t i) {
    found[i] = [&]() -> base::Result<data::ShardRecord> {
      data::ShardSum sum;
      SLUICE_TRY(const auto index, data::index_shard(urls[i], &sum));
      SLUICE_OK(data::write_index(urls[i], index));
      return data::ShardRecord(static_cast<std::int64_t>(index.samples.size()), sum);
    }();
    std::lock_guard lock(mutex);
    progress.show("shards", ++done, static_cast<std::int64_t>(urls.size()));
  });
  progress.clear();
  std::int64_t total = 0;
  nlohmann::json all = nlohmann::json::array();
  for (std::size_t i = 0; i < urls.size(); ++i) {
    if (!found[i]) continue;
    folders[base::parent_path(urls[i])][file_name(urls[i])] = *found[i];
    total += found[i]->samples;
    all.push_back({{"shard", urls[i]}, {"index", data::index_path(urls[i])}, {"samples", found[i]->samples}});
  }
  // This is written even if a shard is damaged, so that each index file that was written has its line.
  for (const auto& [folder, sizes] : folders)
    if (!sizes.empty())
      SLUICE_OK(data::write_text(base::join_path(folder, "sizes.json"), data::format_sizes(sizes)));
  for (const auto& one : found)
    if (!one)
      return base::fail(one.error().code(), one.error().what(),
                        " (shards that have an index file and a line in sizes.json now: ", all.size(), " of ",
                        urls.size(), ")");
  if (options.json) {
    print_json({{"shards", all}, {"samples", total}});
  } else {
    std::printf("%s in %s: index files and sizes.json are next to them\n", counted(total, "sample").c_str(),
                counted(static_cast<std::int64_t>(urls.size()), "shard").c_str());
  }
  return {};
}

}  // namespace

Verb index_verb() {
  auto options = std::make_shared<IndexOptions>();
  return {
      .name = "index",
      .help = "Write index files and sizes.json beside shards",
      .footer =
          "An index file (train-0000.idx, as DALI's wds2idx makes it) lets a reader begin in the middle of a "
          "shard;\n"
          "sizes.json says how many samples each shard of a folder has, so that nothing need be counted, and "
          "its checksum,\n"
          "so that a shard that was damaged or replaced is found.\n"
          "Example: sluice data index 'shards/train-*.tar'",
      .add_flags =
          [options](CLI::App& app) {
            add_flags(app, shard_rows(options->shards));
            add_flags(app, {read_workers_row(options->workers),
                            {"", "--json", &options->json, "", "One JSON document instead of a line"}});
          },
      .run = guarded("index", [options] { return index_shards(*options); })};
}

}  // namespace sluice::cli
