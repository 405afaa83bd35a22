#include "sluice/base/files/file.h"
#include "sluice/base/environment.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "sluice/base/files/open_file.h"

namespace sluice::base {
namespace fs = std::filesystem;
namespace {

Code code_of_errno(int number) {
  switch (number) {
    case ENOENT:
    case ENOTDIR:
      return Code::kNotFound;
    case EEXIST:
      return Code::kAlreadyExists;
    case EACCES:
    case EPERM:
    case EROFS:
      return Code::kPermissionDenied;
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EFBIG:
      return Code::kResourceExhausted;
    case EISDIR:
    case EINVAL:
    case ENAMETOOLONG:
      return Code::kInvalidArgument;
    default:
      return Code::kUnavailable;
  }
}

const char* advice_for_errno(int number) {
  switch (number) {
    case ENOSPC:
      return " (the disk is full: free some space or choose another folder)";
    case EDQUOT:
      return " (the disk quota is used up: free some space or choose another folder)";
    case EACCES:
    case EPERM:
      return " (this user may not do that here: check the owner and the rights)";
    case EROFS:
      return " (choose a folder that can be written to)";
    default:
      return "";
  }
}

std::string temporary_name(const std::string& path) {
  static std::atomic<uint64_t> counter{0};
  return str(path, ".tmp-", ::getpid(), "-", counter.fetch_add(1));
}

}  // namespace

tl::unexpected<Error> fail_errno(int number, std::string_view attempt, const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  const bool folder_missing =
      number == ENOENT && attempt == "create" && !folder.empty() && !path_exists(folder);
  return fail(code_of_errno(number), "cannot ", attempt, " ", path, ": ",
              std::generic_category().message(number),
              folder_missing ? str(" (there is no folder ", folder, ": make it first)")
                             : std::string(advice_for_errno(number)));
}

Result<std::string> read_to_end(const OpenFile& file, size_t expected, const std::string& path) {
  std::string bytes;
  bytes.resize(expected + 1);  // one more, to detect the end
  size_t filled = 0;
  while (true) {
    if (filled == bytes.size()) bytes.resize(bytes.size() * 2);
    const ssize_t count = ::read(file.descriptor(), bytes.data() + filled, bytes.size() - filled);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail_errno(errno, "read", path);
    if (count == 0) break;
    filled += static_cast<size_t>(count);
  }
  bytes.resize(filled);
  return bytes;
}

Result<std::string> read_file(const std::string& path) {
  OpenFile file(path, O_RDONLY);
  if (file.descriptor() < 0) return fail_errno(errno, "open", path);
  struct stat status {};
  if (::fstat(file.descriptor(), &status) != 0) return fail_errno(errno, "read", path);
  if (S_ISDIR(status.st_mode)) return fail_errno(EISDIR, "read", path);
  return read_to_end(file, static_cast<size_t>(std::max<off_t>(status.st_size, 0)), path);
}

Status write_file_atomically(const std::string& path, std::string_view bytes) {
  SLUICE_TRY(AtomicFile file, AtomicFile::create(path));
  SLUICE_OK(file.write(bytes));
  return file.commit();
}

Result<uint64_t> file_size(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return fail_errno(errno, "read the size of", path);
  if (!S_ISREG(status.st_mode)) {
    return fail(Code::kInvalidArgument, "cannot read the size of ", path, ": it is not a regular file");
  }
  return static_cast<uint64_t>(status.st_size);
}

bool path_exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

bool is_directory(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

Result<std::vector<std::string>> list_directory(const std::string& path) {
  std::error_code error;
  fs::directory_iterator entry(path, error);
  if (error) return fail_errno(error.value(), "list", path);
  std::vector<std::string> names;
  for (const fs::directory_iterator end; entry != end; entry.increment(error)) {
    if (error) return fail_errno(error.value(), "list", path);
    names.push_back(entry->path().filename().string());
  }
  if (error) return fail_errno(error.value(), "list", path);
  std::sort(names.begin(), names.end());
  return names;
}

Status make_directories(const std::string& path) {
  if (path.empty()) return fail(Code::kInvalidArgument, "cannot create a folder: its path is empty");
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return fail_errno(error.value(), "create the folder", path);
  if (!is_directory(path)) return fail_errno(ENOTDIR, "create the folder", path);
  return {};
}

Status remove_file(const std::string& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return fail_errno(errno, "remove", path);
  return {};
}

Status sync_file(const std::string& path) {
  const OpenFile file(path, O_RDONLY);
  if (file.descriptor() < 0) return fail_errno(errno, "open", path);
  if (::fsync(file.descriptor()) != 0) return fail_errno(errno, "synchronise", path);
  return {};
}

Status sync_directory(const std::string& path) {
  OpenFile folder(path, O_RDONLY | O_DIRECTORY);
  if (folder.descriptor() < 0) return fail_errno(errno, "open the folder", path);
  // Some network file systems cannot synchronise a folder and return EINVAL: nothing can be done about it.
  if (::fsync(folder.descriptor()) != 0 && errno != EINVAL) return fail_errno(errno, "synchronise", path);
  return {};
}

std::string join_path(std::string_view folder, std::string_view name) {
  return (fs::path(folder) / fs::path(name)).string();
}

std::string parent_path(const std::string& path) {
  const std::string parent = fs::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

std::string expand_home(const std::string& path) {
  if (path != "~" && !path.starts_with("~/")) return path;
  const auto home = environment("HOME");
  return home ? *home + path.substr(1) : path;
}

Result<AtomicFile> AtomicFile::create(const std::string& path, unsigned mode) {
  if (path.empty()) return fail(Code::kInvalidArgument, "cannot create a file: its path is empty");
  if (is_directory(path)) return fail_errno(EISDIR, "write", path);
  AtomicFile file;
  file.path_ = path;
  do {  // a killed process with the same id may have left a file of this name
    file.temporary_ = temporary_name(path);
    file.descriptor_ = ::open(file.temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  } while (file.descriptor_ < 0 && errno == EEXIST);
  if (file.descriptor_ < 0) {
    const int number = errno;
    file.temporary_.clear();
    return fail_errno(number, "create", path);
  }
  return file;
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_) {}

AtomicFile& AtomicFile::operator=(AtomicFile&& other) noexcept {
  if (this != &other) {
    discard();
    path_ = std::move(other.path_);
    temporary_ = std::exchange(other.temporary_, {});
    descriptor_ = std::exchange(other.descriptor_, -1);
    size_ = other.size_;
  }
  return *this;
}

AtomicFile::~AtomicFile() { discard(); }

Status AtomicFile::write(const void* bytes, size_t size) {
  SLUICE_OK(write_at(size_, bytes, size));
  size_ += size;
  return {};
}

Status AtomicFile::write_at(uint64_t offset, const void* bytes, size_t size) {
  if (descriptor_ < 0)
    return fail(Code::kFailedPrecondition, "cannot write ", path_, ": it is already closed");
  const char* position = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t count = ::pwrite(descriptor_, position, size, static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail_errno(errno, "write", path_);
    position += count;
    offset += static_cast<uint64_t>(count);
    size -= static_cast<size_t>(count);
  }
  return {};
}

Status AtomicFile::commit() {
  if (descriptor_ < 0)
    return fail(Code::kFailedPrecondition, "cannot finish ", path_, ": it is already closed");
  int number = ::fsync(descriptor_) == 0 ? 0 : errno;
  if (::close(std::exchange(descriptor_, -1)) != 0 && number == 0) number = errno;
  if (number == 0 && ::rename(temporary_.c_str(), path_.c_str()) != 0) number = errno;
  if (number != 0) {
    discard();
    return fail_errno(number, "write", path_);
  }
  temporary_.clear();
  return sync_directory(parent_path(path_));
}

void AtomicFile::discard() {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  if (!temporary_.empty()) ::unlink(std::exchange(temporary_, {}).c_str());
}

Result<TemporaryDirectory> TemporaryDirectory::create(const std::string& prefix) {
  std::string path = join_path(environment("TMPDIR").value_or("/tmp"), prefix + "-XXXXXX");
  if (::mkdtemp(path.data()) == nullptr) return fail_errno(errno, "create the folder", path);
  TemporaryDirectory directory;
  directory.path_ = path;
  return directory;
}

TemporaryDirectory::TemporaryDirectory(TemporaryDirectory&& other) noexcept
    : path_(std::exchange(other.path_, {})) {}

TemporaryDirectory& TemporaryDirectory::operator=(TemporaryDirectory&& other) noexcept {
  std::swap(path_, other.path_);
  return *this;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

}  // namespace sluice::base
