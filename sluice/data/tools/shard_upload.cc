#include "sluice/data/tools/shard_upload.h"

#include <algorithm>

#include "sluice/base/files/file.h"
#include "sluice/cloud/store.h"
#include "sluice/data/shards/shard_index.h"
#include "sluice/data/tools/shard_store.h"

namespace sluice::data {
namespace {

// A store of objects under FOLDER/.PREFIX.partial/; shards are on this machine only until they are uploaded.
class BucketStore : public ShardStore {
 public:
  static base::Result<BucketStore> create(const ShardOptions& options) {
    SLUICE_TRY(const cloud::ObjectName set, cloud::parse_object_url(base::join_path(options.folder, "")));
    SLUICE_TRY(const cloud::Store* store, cloud::store_to_write(set));
    SLUICE_TRY(auto local, base::TemporaryDirectory::create("sluice-pack"));
    return BucketStore(options, *store, set, std::move(local));
  }

  std::string folder() const override { return local_.path(); }
  std::string place() const override { return hidden_.url(); }
  base::Result<std::vector<std::string>> existing() const override {
    std::vector<std::string> names;
    SLUICE_TRY(const auto objects,
               store_.list(set_.bucket, set_.object + options_.prefix + "-", /*flat=*/true));
    for (const auto& object : objects) {
      std::string name = object.name.substr(set_.object.size());
      if (is_shard_of(name, options_.prefix)) names.push_back(std::move(name));
    }
    return names;
  }
  base::Status clear() override {
    SLUICE_TRY(const auto objects, store_.list(hidden_.bucket, hidden_.object));
    const auto is_last = [&](const cloud::ObjectFacts& object) {
      return object.name == in_hidden(kStoreFile).object;
    };
    for (const auto& object : objects)
      if (!is_last(object)) SLUICE_OK(store_.remove(hidden_.beside(object.name)));
    if (std::any_of(objects.begin(), objects.end(), is_last)) SLUICE_OK(store_.remove(in_hidden(kStoreFile)));
    return {};
  }
  void remove() override { static_cast<void>(clear()); }
  Error give_up(const Error& error) override {
    if (options_.fingerprint.empty()) {
      remove();
      return error;
    }
    return Error(error.code(), base::str(error.what(), "; the uploaded shards are in ", place(),
                                         ": the same command continues after them"));
  }
  // Finds a kept shard. Its index file was uploaded before it.
  base::Result<std::optional<ShardSum>> kept(const std::string& name) override {
    auto sum = sum_of(in_hidden(name));
    if (sum && !*sum && moving_) sum = sum_of(in_set(name));
    return sum;
  }
  base::Status keep(const std::string& path) override {
    for (const std::string& file : {index_path(path), path}) {
      SLUICE_TRY([[maybe_unused]] const auto facts,
                 store_.upload_file(file, in_hidden(file.substr(file.rfind('/') + 1))));
      SLUICE_OK(base::remove_file(file));
    }
    return {};
  }
  void goes_on_moving() override { moving_ = true; }
  base::Status remove_old(const std::string& name) override {
    for (const std::string& file : {index_path(name), name}) {
      const auto removed = store_.remove(in_set(file));
      if (!removed && removed.error().code() != Code::kNotFound) return removed;
    }
    return {};
  }
  base::Status move(const std::vector<std::string>& names) override {
    for (const std::string& name : names)
      for (const std::string& file : {index_path(name), name}) {
        const auto copied = store_.copy(in_hidden(file), in_set(file));
        const bool moved = moving_ && !copied && copied.error().code() == Code::kNotFound;
        if (!copied && !moved) return tl::unexpected<Error>(copied.error());
      }
    return {};
  }

 private:
  BucketStore(const ShardOptions& options, const cloud::Store& store, const cloud::ObjectName& set,
              base::TemporaryDirectory local)
      : options_(options),
        store_(store),
        set_(set),
        hidden_(set.beside(set.object + "." + options.prefix + ".partial/")),
        local_(std::move(local)) {}

  base::Result<std::optional<ShardSum>> sum_of(const cloud::ObjectName& name) const {
    const auto facts = store_.stat(name);
    if (!facts && facts.error().code() == Code::kNotFound) return std::optional<ShardSum>();
    if (!facts) return tl::unexpected<Error>(facts.error());
    if (facts->crc32c) return std::optional(ShardSum{facts->size, *facts->crc32c});
    SLUICE_TRY(const ShardSum sum, sum_source(name.url()));
    return std::optional(sum);
  }
  cloud::ObjectName in_set(const std::string& file) const { return set_.beside(set_.object + file); }
  cloud::ObjectName in_hidden(const std::string& file) const { return hidden_.beside(hidden_.object + file); }

  const ShardOptions& options_;
  const cloud::Store& store_;
  const cloud::ObjectName set_, hidden_;  // objects that end in a slash
  base::TemporaryDirectory local_;
  bool moving_ = false;  // a run that was stopped had begun to move
};

}  // namespace

base::Result<ShardReport> write_shards_to_bucket(
    std::int64_t count, const std::function<base::Result<NewSample>(std::int64_t)>& produce,
    const ShardOptions& options) {
  SLUICE_TRY(BucketStore store, BucketStore::create(options));
  return write_set(count, produce, options, store);
}

}  // namespace sluice::data
