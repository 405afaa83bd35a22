#include "sluice/session/export/weight_target.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <vector>

#include "sluice/base/files/file.h"
#include "sluice/cloud/store.h"
#include "sluice/session/export/weight_parts.h"
#include "sluice/session/files/fresh_folders.h"
#include "sluice/session/stored/source_files.h"

namespace sluice::sessions {
namespace weight_target_detail {

tl::unexpected<Error> has_weights(const std::string& folder, const std::string& file) {
  return base::fail(Code::kAlreadyExists, folder, " has weights or a checkpoint already (", file,
                    "): name another folder, or remove the old one first");
}

// A store takes 10,000 chunks of one object.
size_t chunk_for(uint64_t bytes) {
  constexpr uint64_t kMaxChunks = 9'000;
  size_t chunk = cloud::UploadOptions().chunk_bytes;
  while (bytes / chunk > kMaxChunks) chunk *= 2;
  return chunk;
}

base::Result<cloud::ObjectFacts> send(const cloud::Store& store, const cloud::ObjectName& name,
                                      uint64_t bytes, const PassBytes& pass) {
  cloud::UploadOptions options;
  options.chunk_bytes = chunk_for(bytes);
  SLUICE_TRY(const auto upload, store.start_upload(name, options));
  SLUICE_OK(pass([&](std::string_view some) { return upload->write(some); }));
  return upload->finish();
}

base::Status write_object(const std::string& url, uint64_t bytes, const PassBytes& pass) {
  constexpr int kRounds = 3;
  SLUICE_TRY(const cloud::ObjectName name, cloud::parse_object_url(url));
  SLUICE_TRY(const cloud::Store* store, cloud::store_to_write(name));
  for (int round = 1;; ++round) {
    const auto facts = send(*store, name, bytes, pass);
    if (facts) return {};
    if (facts.error().code() != Code::kAborted || round == kRounds)
      return tl::unexpected<Error>(facts.error());
  }
}

// The files are written into a hidden folder first: next to a folder that is new, and in one that exists,
// which may be a mount point.
class LocalFolder : public WeightFolder {
 public:
  static base::Result<std::unique_ptr<WeightFolder>> open(const std::string& folder) {
    auto target = std::make_unique<LocalFolder>();
    target->folder_ = folder;
    target->is_new_ = !base::path_exists(folder);
    if (!target->is_new_) {
      if (!base::is_directory(folder))
        return base::fail(Code::kInvalidArgument, folder, " is a file: expected a folder, or for one file a ",
                          "name that ends in .safetensors, .pt, .pth or .bin");
      SLUICE_TRY(const auto names, base::list_directory(folder));
      const auto found = std::find_if(names.begin(), names.end(), is_weight_file);
      if (found != names.end()) return has_weights(folder, *found);
    }
    SLUICE_TRY(target->written_to_,
               target->fresh_.add(target->is_new_ ? folder : base::join_path(folder, "weights")));
    SLUICE_OK(base::make_directories(target->written_to_));
    return target;
  }

  base::Result<bool> has(const std::string& name) const override {
    return base::path_exists(base::join_path(folder_, name));
  }
  base::Status write(const std::string& name, uint64_t bytes, const PassBytes& pass) override {
    names_.push_back(name);
    return write_whole(base::join_path(written_to_, name), bytes, pass);
  }
  base::Status finish() override {
    SLUICE_OK(base::sync_directory(written_to_));
    if (is_new_) return put_in_place(written_to_, folder_);
    for (size_t i = 0; i < names_.size(); ++i)
      if (const base::Status moved = move(names_[i]); !moved) {
        for (size_t k = 0; k < i; ++k) std::remove(base::join_path(folder_, names_[k]).c_str());
        return moved;
      }
    return base::sync_directory(folder_);
  }

 private:
  base::Status move(const std::string& name) const {
    const std::string to = base::join_path(folder_, name);
    if (std::rename(base::join_path(written_to_, name).c_str(), to.c_str()) == 0) return {};
    return base::fail_errno(errno, "rename to", to);
  }

  std::string folder_, written_to_;
  bool is_new_ = false;
  FreshFolders fresh_;
  std::vector<std::string> names_;
};

class BucketFolder : public WeightFolder {
 public:
  static base::Result<std::unique_ptr<WeightFolder>> open(const std::string& url) {
    auto target = std::make_unique<BucketFolder>();
    SLUICE_TRY(target->folder_, cloud::parse_object_url(url + "/"));
    SLUICE_TRY(target->store_, cloud::store_to_write(target->folder_));
    const std::string& prefix = target->folder_.object;
    SLUICE_TRY(const auto objects, target->store_->list(target->folder_.bucket, prefix, /*flat=*/true));
    for (const auto& object : objects) target->before_.push_back(object.name.substr(prefix.size()));
    for (const std::string& name : target->before_)
      if (is_weight_file(name)) return has_weights(url, name);
    return target;
  }
  ~BucketFolder() override {
    if (is_finished_) return;
    for (const cloud::ObjectName& name : written_)
      [[maybe_unused]] const auto removed =
          store_->remove(name);  // what stays is no weights without an index
  }
  BucketFolder() = default;
  BucketFolder(const BucketFolder&) = delete;
  BucketFolder& operator=(const BucketFolder&) = delete;

  base::Result<bool> has(const std::string& name) const override {
    return std::find(before_.begin(), before_.end(), name) != before_.end();
  }
  base::Status write(const std::string& name, uint64_t bytes, const PassBytes& pass) override {
    const cloud::ObjectName object = folder_.beside(folder_.object + name);
    SLUICE_OK(write_object(object.url(), bytes, pass));
    written_.push_back(object);
    return {};
  }
  base::Status finish() override {
    is_finished_ = true;
    return {};
  }

 private:
  cloud::ObjectName folder_;
  cloud::Store* store_ = nullptr;
  std::vector<std::string> before_;
  std::vector<cloud::ObjectName> written_;
  bool is_finished_ = false;
};

}  // namespace weight_target_detail

base::Status write_whole(const std::string& to, uint64_t bytes, const PassBytes& pass) {
  if (cloud::is_object_url(to)) return weight_target_detail::write_object(to, bytes, pass);
  SLUICE_TRY(auto file, base::AtomicFile::create(to));
  SLUICE_OK(pass([&](std::string_view some) { return file.write(some); }));
  return file.commit();
}

base::Result<std::unique_ptr<WeightFolder>> WeightFolder::open(const std::string& folder) {
  namespace detail = weight_target_detail;
  if (cloud::is_object_url(folder)) return detail::BucketFolder::open(folder);
  if (is_elsewhere(folder))
    return base::fail(Code::kInvalidArgument, "cannot write to the web server of ", folder,
                      ": name a folder of this machine or in a bucket (gs://, s3://, az://)");
  return detail::LocalFolder::open(folder);
}

}  // namespace sluice::sessions
