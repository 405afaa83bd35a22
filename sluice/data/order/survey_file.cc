#include "sluice/data/order/survey_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string_view>
#include <thread>

#include "sluice/base/files/file.h"
#include "sluice/base/files/private_file.h"
#include "sluice/base/files/trusted_file.h"
#include "sluice/base/files/user_folders.h"
#include "sluice/base/formats/crc32c.h"
#include "sluice/base/formats/sha256.h"
#include "sluice/base/text/strings.h"

namespace sluice::data {
namespace {

constexpr std::string_view kMark = "sluice-survey-1\n", kSuffix = ".survey";

void append(std::string& bytes, const void* from, std::size_t size) {
  bytes.append(static_cast<const char*>(from), size);
}

bool take(std::string_view& bytes, void* to, std::size_t size) {
  if (bytes.size() < size) return false;
  if (size > 0) std::memcpy(to, bytes.data(), size);
  bytes.remove_prefix(size);
  return true;
}

template <typename Number>
void append_all(std::string& bytes, const std::vector<Number>& numbers) {
  const auto count = static_cast<std::uint64_t>(numbers.size());
  append(bytes, &count, sizeof count);
  append(bytes, numbers.data(), numbers.size() * sizeof(Number));
}

template <typename Number>
bool take_all(std::string_view& bytes, std::vector<Number>& numbers) {
  std::uint64_t count = 0;
  if (!take(bytes, &count, sizeof count) || count > bytes.size() / sizeof(Number)) return false;
  numbers.resize(static_cast<std::size_t>(count));
  return take(bytes, numbers.data(), numbers.size() * sizeof(Number));
}

}  // namespace

std::string usual_survey_folder() {
  const std::string folder = base::user_cache_folder();
  return folder.empty() ? "" : base::join_path(folder, "surveys");
}

void forget_old_surveys(const std::string& folder, std::uint64_t most) {
  struct Kept {
    std::int64_t used;
    std::uint64_t bytes;
    std::string path;
  };
  std::vector<Kept> all;
  const auto files = base::list_directory(folder);
  if (!files) return;
  for (const std::string& file : *files) {
    struct stat facts {};
    const std::string path = base::join_path(folder, file);
    if (!file.ends_with(kSuffix) || ::lstat(path.c_str(), &facts) != 0) continue;
    all.push_back({facts.st_mtime, static_cast<std::uint64_t>(facts.st_size), path});
  }
  std::sort(all.begin(), all.end(), [](const Kept& a, const Kept& b) { return a.used > b.used; });
  std::uint64_t bytes = 0;
  for (const Kept& one : all)
    if ((bytes += one.bytes) > most) ::unlink(one.path.c_str());
}

base::Result<SurveyClaim> SurveyClaim::wait(const std::string& path, const std::atomic<bool>* cancelled) {
  SurveyClaim claim(path + ".turn");
  SLUICE_OK(base::make_private_folder(claim.folder_));
  while (true) {
    if (cancelled != nullptr && *cancelled) return base::fail(Code::kCancelled, "cancelled");
    // The folder goes with the turn of another process: then whoever waits makes it again.
    auto lock = base::FolderLock::take(claim.folder_);
    if (!lock) SLUICE_OK(base::make_private_folder(claim.folder_));
    if (lock && *lock) {
      claim.lock_ = std::move(*lock);
      return claim;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

SurveyClaim::~SurveyClaim() {
  if (lock_) ::rmdir(folder_.c_str());
}

std::string survey_path(const std::string& folder, const std::string& identity) {
  return base::join_path(folder,
                         base::hexadecimal(base::sha256(identity).substr(0, 20)) + std::string(kSuffix));
}

std::optional<std::vector<SurveyedShard>> read_survey(const std::string& path, std::size_t shards) {
  const auto text = base::read_trusted_file(path);
  if (!text) return std::nullopt;
  std::string_view bytes = *text;
  std::uint32_t sum = 0;
  if (!base::starts_with(bytes, kMark) || bytes.size() < kMark.size() + sizeof sum) return std::nullopt;
  std::memcpy(&sum, bytes.data() + bytes.size() - sizeof sum, sizeof sum);
  bytes.remove_suffix(sizeof sum);
  if (base::crc32c(bytes.data(), bytes.size()) != sum) return std::nullopt;
  bytes.remove_prefix(kMark.size());
  std::vector<SurveyedShard> found(shards);
  for (SurveyedShard& shard : found)
    if (!take_all(bytes, shard.taken) || !take_all(bytes, shard.lengths)) return std::nullopt;
  if (!bytes.empty()) return std::nullopt;
  ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
  return found;
}

base::Status write_survey(const std::string& path, const std::vector<SurveyedShard>& shards) {
  std::string bytes(kMark);
  for (const SurveyedShard& shard : shards) {
    append_all(bytes, shard.taken);
    append_all(bytes, shard.lengths);
  }
  const std::uint32_t sum = base::crc32c(bytes.data(), bytes.size());
  append(bytes, &sum, sizeof sum);
  SLUICE_OK(base::make_private_folder(base::parent_path(path)));
  return base::write_private_file(path, bytes);
}

}  // namespace sluice::data
