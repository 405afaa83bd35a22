#include "sluice/pjrt/cache/compile_cache.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <mutex>
#include <set>
#include <vector>

#include "sluice/base/environment.h"
#include "sluice/base/files/file.h"
#include "sluice/base/files/trusted_file.h"
#include "sluice/base/files/user_folders.h"
#include "sluice/base/formats/sha256.h"
#include "sluice/base/log.h"
#include "sluice/base/text/strings.h"
#include "sluice/pjrt/cache/remote_cache.h"

namespace sluice::pjrt {
namespace {

constexpr std::string_view kMagic = "SLUICEXP";
constexpr uint32_t kFormat = 1;
constexpr std::string_view kSuffix = ".program";
constexpr std::string_view kLockSuffix = ".program.lock";
// A temporary file, or a lock's file, this old belongs to a process that died.
constexpr time_t kStaleSeconds = 3600;

template <typename Number>
void put_little_endian(std::string& out, Number number) {
  for (size_t i = 0; i < sizeof number; ++i) out.push_back(static_cast<char>(number >> (8 * i)));
}

// Returns everything before the payload of an entry.
std::string entry_header(const std::string& key, std::string_view payload) {
  std::string header(kMagic);
  put_little_endian(header, kFormat);
  put_little_endian(header, static_cast<uint32_t>(key.size()));
  header += key;
  put_little_endian(header, static_cast<uint64_t>(payload.size()));
  return header + base::sha256(payload);
}

struct Entry {
  std::string path;
  uint64_t bytes;
  timespec used;
};

bool used_earlier(const Entry& a, const Entry& b) {
  return a.used.tv_sec != b.used.tv_sec ? a.used.tv_sec < b.used.tv_sec : a.used.tv_nsec < b.used.tv_nsec;
}

// Lists the entries of the folder, and removes abandoned temporary files.
std::vector<Entry> list_entries(const std::string& directory) {
  std::vector<Entry> entries;
  const auto names = base::list_directory(directory);
  if (!names) return entries;
  for (const std::string& name : *names) {
    const std::string path = base::join_path(directory, name);
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    if (base::ends_with(name, kSuffix)) {
      entries.push_back({path, static_cast<uint64_t>(status.st_size), status.st_mtim});
    } else if ((name.find(std::string(kSuffix) + ".tmp-") != std::string::npos ||
                base::ends_with(name, kLockSuffix)) &&
               status.st_mtim.tv_sec + kStaleSeconds < ::time(nullptr)) {
      (void)base::remove_file(path);
    }
  }
  return entries;
}

// Entries are machine code: those that another user may have written are not run, unless the user says that
// every user with write access to the folder is trusted.
base::Result<std::string> read_entry(const std::string& file) {
  if (base::environment_flag("SLUICE_CACHE_TRUST", false)) return base::read_file(file);
  return base::read_trusted_file(file);
}

void report_unread(const Error& error) {
  if (error.code() != Code::kPermissionDenied) return base::debug("compile cache: ", error.what());
  static std::once_flag once;
  std::call_once(once, [&] {
    base::warn(
        "the compile cache holds programs that others may have written, which are not run but compiled "
        "again: ",
        error.what(),
        ". Set SLUICE_CACHE_TRUST=1 if all who may write there are trusted, or SLUICE_CACHE_DIR to a "
        "folder of your own");
  });
}

// Makes the folder and its parents. If the folder itself is new, only the user may read and write it.
base::Status make_private_folder(const std::string& path) {
  if (base::is_directory(path)) return {};
  if (const std::string above = base::parent_path(path); !above.empty())
    SLUICE_OK(base::make_directories(above));
  if (::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return {};
  return base::fail_errno(errno, "make the folder", path);
}

// The keys of entries that turned out to be unusable. A place beyond this machine has them too; the program
// that is compiled instead replaces them there.
class Unusable {
 public:
  void add(const std::string& key) {
    const std::lock_guard lock(mutex_);
    keys_.insert(key);
  }
  bool contains(const std::string& key) {
    const std::lock_guard lock(mutex_);
    return keys_.count(key) > 0;
  }
  // Whether it was there.
  bool remove(const std::string& key) {
    const std::lock_guard lock(mutex_);
    return keys_.erase(key) > 0;
  }

 private:
  std::mutex mutex_;
  std::set<std::string> keys_;
};
Unusable& unusable() {
  static auto* const keys = new Unusable;  // threads that compile may outlive static objects
  return *keys;
}

}  // namespace

std::string default_cache_directory() {
  const auto chosen = base::environment("SLUICE_CACHE_DIR");
  if (chosen && is_remote_cache(*chosen)) {
    const std::string above = base::user_cache_folder();
    return above.empty() ? "" : local_folder_of(*chosen, above);
  }
  if (chosen) return *chosen == "off" ? "" : base::expand_home(*chosen);
  return base::user_cache_folder();
}

std::string CompileCache::key(std::initializer_list<std::string_view> parts) {
  base::Sha256 hash;
  for (std::string_view part : parts) {
    std::string length;  // so that moving a character from one part to the next changes the key
    put_little_endian(length, static_cast<uint64_t>(part.size()));
    hash.add(length);
    hash.add(part);
  }
  return base::hexadecimal(hash.finish());
}

std::string CompileCache::path(const std::string& key) const {
  return base::join_path(directory_, key + std::string(kSuffix));
}

std::optional<std::string> CompileCache::find(const std::string& key) const {
  const std::string file = path(key);
  auto bytes = read_entry(file);
  if (!bytes && bytes.error().code() == Code::kNotFound && stands_for_place(directory_) &&
      make_private_folder(directory_) && fetch_entry(directory_, key + std::string(kSuffix)))
    bytes = read_entry(file);
  if (!bytes) {
    if (bytes.error().code() != Code::kNotFound) report_unread(bytes.error());
    return std::nullopt;
  }
  const size_t header = entry_header(key, "").size();
  const std::string_view payload = bytes->size() < header ? "" : std::string_view(*bytes).substr(header);
  if (bytes->size() < header || bytes->compare(0, header, entry_header(key, payload)) != 0) {
    base::warn("the compile cache entry ", file, " is damaged or foreign; the program is compiled again");
    unusable().add(key);
    return std::nullopt;
  }
  // Marks the entry as used now. It does no harm if this is not allowed (a shared, read-only cache).
  (void)::utimensat(AT_FDCWD, file.c_str(), nullptr, 0);
  return bytes->erase(0, header);
}

base::Status CompileCache::store(const std::string& key, std::string_view payload) const {
  const std::string header = entry_header(key, payload);
  if (header.size() + payload.size() > limit_) {
    base::debug("compile cache: a program of ", payload.size(), " bytes is beyond the limit of ", limit_);
    return {};
  }
  SLUICE_OK(make_private_folder(directory_));
  SLUICE_TRY(base::AtomicFile file, base::AtomicFile::create(path(key)));
  SLUICE_OK(file.write(header));
  SLUICE_OK(file.write(payload));
  SLUICE_OK(file.commit());
  // In a shared and trusted folder the other users may read the entry, too.
  if (!base::environment_flag("SLUICE_CACHE_TRUST", false)) (void)::chmod(path(key).c_str(), 0600);
  store_entry(directory_, key + std::string(kSuffix), /*replace=*/unusable().remove(key));
  shrink(path(key));
  return {};
}

CompileClaim CompileCache::claim(const std::string& key, const std::string& program,
                                 const WaitTimes& times) const {
  if (!make_private_folder(directory_)) return {};
  if (!base::environment_flag("SLUICE_CACHE_TRUST", false) && !base::check_private_folder(directory_))
    return {};
  return CompileClaim::take(directory_, key + std::string(kSuffix), program, times);
}

std::optional<std::string> CompileCache::find_after(const CompileClaim& claim, const std::string& key) const {
  if (!claim.waited() && unusable().contains(key)) return std::nullopt;  // it would be reported a second time
  // A file system of a network may remember that the entry was missing, until the folder is read.
  if (claim.waited()) (void)base::list_directory(directory_);
  return find(key);
}

void CompileCache::remove(const std::string& key) const {
  unusable().add(key);
  if (auto status = base::remove_file(path(key)); !status)
    base::debug("compile cache: ", status.error().what());
}

void CompileCache::shrink(const std::string& keep) const {
  std::vector<Entry> entries = list_entries(directory_);
  uint64_t total = 0;
  for (const Entry& entry : entries) total += entry.bytes;
  if (total <= limit_) return;
  std::sort(entries.begin(), entries.end(), used_earlier);
  for (const Entry& entry : entries) {
    if (total <= limit_) break;
    if (entry.path == keep) continue;
    // Another process may have removed the file already; one that has it open keeps its contents.
    if (!base::remove_file(entry.path)) continue;
    total -= entry.bytes;
  }
}

}  // namespace sluice::pjrt
