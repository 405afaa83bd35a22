#include "sluice/pod/ssh/sync_bucket.h"

#include <poll.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "sluice/base/files/file.h"
#include "sluice/base/formats/sha256.h"
#include "sluice/cloud/object_reader.h"
#include "sluice/pod/console.h"

namespace sluice::pod {
namespace {

constexpr std::uintmax_t kSmallFile = 64 << 10;  // bytes

base::Result<std::string> sha256_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> block(std::size_t{1} << 20);
  base::Sha256 sum;
  while (file.read(block.data(), static_cast<std::streamsize>(block.size())) || file.gcount() > 0)
    sum.add({block.data(), static_cast<std::size_t>(file.gcount())});
  if (!file.eof()) return base::fail(Code::kUnavailable, "cannot read ", path);
  return base::hexadecimal(sum.finish());
}

}  // namespace

base::Status check_sync_bucket(const std::string& url) {
  const auto name = cloud::parse_object_url(url);
  if (name && name->scheme == "gs") return {};
  return base::fail(Code::kInvalidArgument, "--sync-bucket ", url, ": expected gs://BUCKET/PREFIX");
}

SyncBucket::~SyncBucket() {
  for (const cloud::ObjectName& name : objects_) {
    const auto store = cloud::store_of(name);
    const auto removed = store ? (*store)->remove(name) : base::Status();
    if (!removed && removed.error().code() != Code::kNotFound)
      say(base::str("remove ", name.url(), " yourself: ", removed.error().what()));
  }
}

bool SyncBucket::serves(const std::string& path, std::ptrdiff_t hosts) const {
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  return !job_.sync_bucket.empty() && hosts > 1 && !error && bytes > kSmallFile;
}

base::Result<SharedFile> SyncBucket::share(const std::string& path) {
  if (const auto known = shared_.find(path); known != shared_.end()) return known->second;
  SLUICE_TRY(cloud::ObjectName name, cloud::parse_object_url(job_.sync_bucket));
  if (!name.object.empty() && !name.object.ends_with('/')) name.object += '/';
  name.object += base::str(job_.id, '/', std::filesystem::path(path).filename().string());
  SharedFile file;
  SLUICE_TRY(file.sha256, sha256_of_file(path));
  objects_.push_back(name);
  SLUICE_OK(upload(path, name));
  SLUICE_TRY(const cloud::Store* store, cloud::store_of(name));
  SLUICE_TRY(const cloud::Remote remote, store->find(name));
  file.address = remote.address;
  return shared_.emplace(path, file).first->second;
}

base::Status SyncBucket::upload(const std::string& path, const cloud::ObjectName& name) {
  SLUICE_TRY(const cloud::Store* store, cloud::store_of(name));
  std::atomic<bool> cancelled{false}, over{false};
  base::Status status;
  std::thread thread([&] {
    cloud::UploadOptions options;
    options.cancelled = &cancelled;
    if (auto sent = store->upload_file(path, name, options); !sent)
      status = base::fail_at(sent, "--sync-bucket");
    over = true;
  });
  while (!over) {
    pollfd wake{signals_.descriptor(), POLLIN, 0};
    ::poll(&wake, 1, 50);
    if (signals_.count() > 0) cancelled = true;
  }
  thread.join();
  if (signals_.count() > 0) return base::fail(Code::kCancelled, "told to stop while --sync was copying");
  return status;
}

}  // namespace sluice::pod
