#include "sluice/session/stored/source_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "sluice/base/text/strings.h"
#include "sluice/cloud/store.h"

namespace sluice::sessions {
namespace source_files_detail {

constexpr uint64_t kPart = uint64_t{1} << 20;  // of a file of this machine

class Descriptor {
 public:
  explicit Descriptor(const std::string& path) : number_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

bool is_same(const struct ::stat& a, const struct ::stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size &&
         a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

base::Result<SourceFile> find_local(const std::string& path, const std::string& name) {
  SourceFile file;
  file.name = name;
  file.path = path;
  if (::stat(path.c_str(), &file.facts) != 0) return base::fail_errno(errno, "open", name);
  if (!S_ISREG(file.facts.st_mode)) return base::fail(Code::kInvalidArgument, name, " is not a file");
  file.size = static_cast<uint64_t>(file.facts.st_size);
  return file;
}

tl::unexpected<Error> replaced(const SourceFile& file) {
  return base::fail(Code::kDataLoss, file.name, " was replaced or changed while it was read: start again");
}

base::Result<int64_t> read_local(const SourceFile& file, uint64_t begin, uint64_t end,
                                 const std::function<void(std::string_view)>& take) {
  const Descriptor opened(file.path);
  struct ::stat now = {};
  if (opened.number() < 0 || ::fstat(opened.number(), &now) != 0)
    return base::fail_errno(errno, "open", file.name);
  if (!is_same(now, file.facts)) return replaced(file);
  std::string part(std::min(kPart, end - begin), '\0');
  while (begin < end) {
    const ssize_t got = ::pread(opened.number(), part.data(), std::min<uint64_t>(part.size(), end - begin),
                                static_cast<off_t>(begin));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return base::fail_errno(errno, "read", file.name);
    if (got == 0) return replaced(file);
    take({part.data(), static_cast<size_t>(got)});
    begin += static_cast<uint64_t>(got);
  }
  return 1;
}

base::Result<int64_t> read_remote(const SourceFile& file, uint64_t begin, uint64_t end,
                                  const std::function<void(std::string_view)>& take) {
  cloud::ReadOptions options;
  options.begin = begin;
  options.end = end;
  options.range_bytes = kSourceRequestBytes;
  options.ranges = 2;
  SLUICE_TRY(const auto reader, cloud::open_reader(*file.remote, options));
  for (uint64_t at = begin; at < end;) {
    SLUICE_TRY(const std::string_view some, reader->next(kPart));
    if (some.empty()) return replaced(file);
    take(some);
    at += some.size();
  }
  return static_cast<int64_t>((end - begin + kSourceRequestBytes - 1) / kSourceRequestBytes);
}

}  // namespace source_files_detail

bool is_elsewhere(const std::string& file) {
  return cloud::is_object_url(file) || base::starts_with(file, "http://") ||
         base::starts_with(file, "https://");
}

base::Result<const SourceFile*> SourceFiles::find(const std::string& file) {
  namespace detail = source_files_detail;
  const std::scoped_lock lock(mutex_);
  if (const auto known = files_.find(file); known != files_.end()) return known->second.get();
  SourceFile found;
  if (!is_elsewhere(file)) {
    SLUICE_TRY(found, detail::find_local(file, file));
  } else {
    SLUICE_TRY(cloud::Remote remote, cloud::find_remote(file));
    if (remote.ranges) {
      found.name = remote.name;
      found.size = remote.size;
      found.remote = std::move(remote);
    } else {
      SLUICE_TRY(auto folder, base::TemporaryDirectory::create("sluice-weights"));
      SLUICE_OK(cloud::download(file, folder.path("weights")));
      SLUICE_TRY(found, detail::find_local(folder.path("weights"), remote.name));
      downloads_.push_back(std::move(folder));
    }
  }
  return files_.emplace(file, std::make_unique<SourceFile>(std::move(found))).first->second.get();
}

base::Result<int64_t> read_range(const SourceFile& file, uint64_t begin, uint64_t end,
                                 const std::function<void(std::string_view)>& take) {
  namespace detail = source_files_detail;
  if (begin > end || end > file.size)
    return base::fail(Code::kDataLoss, file.name, " has ", file.size, " bytes: the bytes from ", begin,
                      " up to ", end, " are not in it");
  if (begin == end) return 0;
  return file.is_remote() ? detail::read_remote(file, begin, end, take)
                          : detail::read_local(file, begin, end, take);
}

base::Result<std::string> read_bytes(const SourceFile& file, uint64_t begin, uint64_t end) {
  std::string bytes;
  SLUICE_TRY([[maybe_unused]] const int64_t requests,
             read_range(file, begin, end, [&](std::string_view some) { bytes += some; }));
  return bytes;
}

}  // namespace sluice::sessions
