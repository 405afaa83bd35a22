#include "sluice/data/tools/update.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "sluice/base/files/file.h"
#include "sluice/base/log.h"
#include "sluice/base/text/lower_case.h"
#include "sluice/base/text/quantity.h"
#include "sluice/base/text/strings.h"
#include "sluice/cloud/store.h"
#include "sluice/data/decode/decode.h"
#include "sluice/data/shards/group.h"
#include "sluice/data/shards/shard_facts.h"
#include "sluice/data/shards/shard_index.h"
#include "sluice/data/shards/tar_writer.h"
#include "sluice/data/shards/urls.h"
#include "sluice/data/tools/shard_set.h"

namespace sluice::data {
namespace {

// The files of each key: by extension in lower case, the extension as written and the path.
struct NewMember {
  std::string extension, path;
};
using NewMembers = std::map<std::string, NewMember>;
using Changes = std::map<std::string, NewMembers, std::less<>>;

base::Result<Changes> changes_in(const UpdateOptions& options) {
  namespace fs = std::filesystem;
  Changes changes;
  std::vector<std::string> hidden;
  std::error_code failed;
  for (auto entry = fs::recursive_directory_iterator(options.folder, failed);
       !failed && entry != fs::recursive_directory_iterator(); entry.increment(failed)) {
    const std::string file = entry->path().filename().string();
    if (file[0] == '.') {  // files of a version control, a notebook or a Mac
      if (entry->is_directory()) entry.disable_recursion_pending();
      hidden.push_back(entry->path().string());
      continue;
    }
    if (!entry->is_regular_file()) continue;
    const std::string path = entry->path().string();
    const std::string name = entry->path().lexically_relative(options.folder).string();
    const auto split = split_name(name);
    if (!split || split->extension.empty())
      return base::fail(Code::kInvalidArgument, path, " is not a member of a sample: expected files named ",
                        "KEY.EXTENSION, as 'sluice data cat --out' writes them");
    const std::string extension = base::lower_case(split->extension);
    if (!changes[std::string(split->key)]
             .emplace(extension, NewMember{std::string(split->extension), path})
             .second)
      return base::fail(Code::kInvalidArgument, path,
                        ": there is another file with this key and extension, in ",
                        "other letters: expected one");
    if (!options.check) continue;
    SLUICE_TRY(const std::string bytes, base::read_file(path));
    if (const auto sound = check_decodes(extension, bytes); !sound) return base::fail_at(sound, path);
  }
  if (!hidden.empty())
    base::warn("passed over ", base::counted(static_cast<std::int64_t>(hidden.size()), "name"),
               " that begin with a dot, the first being ", hidden.front());
  if (failed)
    return base::fail(Code::kNotFound, "cannot list ", options.folder, ": ", failed.message(),
                      ": expected a folder of files named KEY.EXTENSION");
  if (changes.empty())
    return base::fail(Code::kInvalidArgument, options.folder,
                      " has no files: expected some named KEY.EXTENSION");
  return changes;
}

bool has_dots(const Changes& changes) {
  return std::any_of(changes.begin(), changes.end(), [](const auto& change) {
    return std::any_of(change.second.begin(), change.second.end(), [](const auto& member) {
      return member.first.find('.') != std::string::npos && !base::ends_with(member.first, ".gz");
    });
  });
}

// Returns the shards that hold one of the keys.
base::Result<std::vector<std::string>> shards_with(const Changes& changes,
                                                   const std::vector<std::string>& urls) {
  std::vector<std::string> shards;
  std::set<std::string> missing;
  for (const auto& [key, members] : changes) missing.insert(key);
  for (const std::string& url : urls) {
    SLUICE_TRY(const auto keys, keys_of_shard(url));
    bool holds = false;
    for (const std::string& key : keys) {
      if (!changes.contains(key)) continue;
      missing.erase(key);
      holds = true;
    }
    if (!holds) continue;
    if (is_packed(url))
      return base::fail(Code::kUnimplemented, url,
                        " is packed: expected a plain archive; pack the set again");
    if (cloud::is_object_url(url)) {
      SLUICE_TRY(const auto name, cloud::parse_object_url(url));
      SLUICE_TRY([[maybe_unused]] const auto* store, cloud::store_to_write(name));
    } else if (is_remote(url)) {
      return base::fail(Code::kInvalidArgument, "cannot write ", url,
                        ": expected a file or an object such as gs://bucket/object");
    }
    shards.push_back(url);
  }
  if (missing.empty()) return shards;
  return base::fail(
      Code::kNotFound, "no sample has the key '", *missing.begin(), "'",
      missing.size() > 1 ? base::str(", nor have any ", missing.size() - 1, " other keys") : "",
      ": expected files named after samples of these shards; 'sluice data ls --keys' lists them",
      has_dots(changes) ? ". The key of a file ends at the first dot of its name" : "");
}

class Rewriting {
 public:
  Rewriting(const Changes& changes, UpdateReport& report) : changes_(changes), report_(report) {}

  // Writes the shard with its changed members to `path`.
  base::Status write(const std::string& url, const std::string& path) {
    SLUICE_TRY(auto source, open_source(url));
    TarReader reader(std::move(source));
    SLUICE_TRY(auto writer, TarWriter::create(path));
    Member member;
    std::string payload;
    while (true) {
      SLUICE_TRY(const bool found, reader.next(member));
      if (!found) break;
      if (member.kind != MemberKind::kFile) continue;
      const auto name = split_name(member.name);
      if (name && name->key != key_) SLUICE_OK(begin_sample(std::string(name->key), writer));
      const auto change = name ? left_.find(base::lower_case(name->extension)) : left_.end();
      if (change == left_.end()) {
        SLUICE_OK(reader.read_payload(payload));
      } else {
        SLUICE_TRY(payload, base::read_file(change->second.path));
        left_.erase(change);
        ++report_.replaced;
      }
      SLUICE_OK(writer.add(member.name, payload));
    }
    SLUICE_OK(begin_sample({}, writer));
    return writer.finish();
  }

 private:
  // Begins a sample, after adding the members that the sample before it did not have.
  base::Status begin_sample(std::string key, TarWriter& writer) {
    for (const auto& [extension, file] : left_) {
      SLUICE_TRY(const std::string payload, base::read_file(file.path));
      SLUICE_OK(writer.add(*key_ + "." + file.extension, payload));
      ++report_.added;
    }
    left_.clear();
    const auto change = changes_.find(key);
    if (change != changes_.end()) {
      left_ = change->second;
      ++report_.samples;
    }
    key_ = std::move(key);
    return {};
  }

  const Changes& changes_;
  UpdateReport& report_;
  std::optional<std::string> key_;  // of the sample that is being written
  NewMembers left_;                 // files of this sample that are still to be added
};

// Replaces a shard. Its old index is removed first, because readers would take it for the new shard's.
base::Status replace_shard(const std::string& url, Rewriting& rewriting) {
  if (!is_remote(url)) {
    const std::string index = index_path(url);
    if (base::path_exists(index)) SLUICE_OK(base::remove_file(index));
    return rewriting.write(url, url);
  }
  SLUICE_TRY(const auto name, cloud::parse_object_url(url));
  SLUICE_TRY(const cloud::Store* store, cloud::store_to_write(name));
  SLUICE_TRY(const auto local, base::TemporaryDirectory::create("sluice-update"));
  SLUICE_OK(rewriting.write(url, local.path("shard.tar")));
  SLUICE_TRY(const auto index, cloud::parse_object_url(index_path(url)));
  const auto removed = store->remove(index);
  if (!removed && removed.error().code() != Code::kNotFound) return removed;
  SLUICE_TRY([[maybe_unused]] const auto facts, store->upload_file(local.path("shard.tar"), name));
  return {};
}

// Changes the entries of these shards, by `change`, in the sizes.json of each folder that has the file.
template <typename Change>
base::Status change_sizes(const std::vector<std::string>& shards, const Change& change) {
  std::map<std::string, ShardSizes> folders;
  std::map<std::string, std::string> any;  // one shard of each folder
  for (const std::string& url : shards) {
    const std::string folder = base::parent_path(url);
    if (!any.emplace(folder, url).second) continue;
    SLUICE_TRY(auto sizes, read_sizes(url));
    if (sizes) folders[folder] = std::move(*sizes);
  }
  for (const std::string& url : shards) {
    const auto folder = folders.find(base::parent_path(url));
    if (folder == folders.end()) continue;
    const auto record = folder->second.find(url.substr(url.rfind('/') + 1));
    if (record != folder->second.end()) change(url, record->second);
  }
  for (const auto& [folder, sizes] : folders)
    SLUICE_OK(write_text(base::join_path(folder, "sizes.json"), format_sizes(sizes)));
  return {};
}

}  // namespace

base::Result<UpdateReport> update_samples(const UpdateOptions& options) {
  SLUICE_TRY(const Changes changes, changes_in(options));
  for (const std::string& url : options.urls)
    if (!is_remote(url)) remove_leftovers(base::parent_path(url));
  UpdateReport report;
  SLUICE_TRY(report.shards, shards_with(changes, options.urls));
  // Until the end, no checksum is recorded for these shards.
  SLUICE_OK(change_sizes(report.shards, [](const std::string&, ShardRecord& record) { record.sum.reset(); }));
  std::map<std::string, ShardSum> sums;
  std::int64_t done = 0;
  for (const std::string& url : report.shards) {
    Rewriting rewriting(changes, report);
    SLUICE_OK(replace_shard(url, rewriting));
    SLUICE_TRY(const ShardIndex index, index_shard(url, &sums[url]));
    SLUICE_OK(write_index(url, index));
    if (options.progress) options.progress(++done, static_cast<std::int64_t>(report.shards.size()));
  }
  SLUICE_OK(change_sizes(report.shards,
                         [&](const std::string& url, ShardRecord& record) { record.sum = sums[url]; }));
  return report;
}

}  // namespace sluice::data
