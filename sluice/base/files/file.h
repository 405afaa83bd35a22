// Files: whole reads, atomic writes, folders.
//
// A file that is written appears under its name complete or not at all: it is written under a temporary name
// in the same folder, synchronised to the disk and renamed. Errors name the path and the system's reason; a
// full disk is kResourceExhausted, a missing file kNotFound, missing rights kPermissionDenied. Threads: free
// functions from any thread; an AtomicFile belongs to one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::base {

// Returns an error for errno's value `number` with the attempted action: "cannot open /x: No such file or
// directory".
tl::unexpected<Error> fail_errno(int number, std::string_view attempt, const std::string& path);

Result<std::string> read_file(const std::string& path);
Status write_file_atomically(const std::string& path, std::string_view bytes);

// Returns the number of bytes in a regular file.
Result<uint64_t> file_size(const std::string& path);
bool path_exists(const std::string& path);
bool is_directory(const std::string& path);
// Returns the names (without the folder) in alphabetical order, "." and ".." left out.
Result<std::vector<std::string>> list_directory(const std::string& path);
// Makes the folder and its missing parents; an existing folder is no error.
Status make_directories(const std::string& path);
// Removes a file; a missing one is no error.
Status remove_file(const std::string& path);
// Makes the file's bytes survive a power loss. A new file's name needs sync_directory(), too.
Status sync_file(const std::string& path);
// Makes the folder's entries (renames, new files) survive a power loss.
Status sync_directory(const std::string& path);

// Joins "a" and "b" to "a/b"; an absolute second part replaces the first.
std::string join_path(std::string_view folder, std::string_view name);
// Returns "/a/b" for "/a/b/c", and "." for "c".
std::string parent_path(const std::string& path);
// Replaces the tilde of "~" and "~/x" with $HOME; every other path stays as it is.
std::string expand_home(const std::string& path);

// A file that is written piece by piece. Unless commit() succeeds, nothing remains and an older file of that
// name stays as it was.
class AtomicFile {
 public:
  // Opens the temporary file with `mode`, which it has from its first byte on, as open() takes it.
  static Result<AtomicFile> create(const std::string& path, unsigned mode = 0666);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&& other) noexcept;
  ~AtomicFile();

  Status write(const void* bytes, size_t size);
  Status write(std::string_view bytes) { return write(bytes.data(), bytes.size()); }
  // Returns the number of bytes written so far.
  uint64_t size() const { return size_; }
  // Writes at an earlier place, for headers whose content is known only at the end.
  Status write_at(uint64_t offset, const void* bytes, size_t size);
  // Synchronises and renames; closes the file in any case. To be called once only.
  Status commit();
  // Removes the temporary file; the destructor does so too.
  void discard();

 private:
  AtomicFile() = default;
  std::string path_, temporary_;
  int descriptor_ = -1;
  uint64_t size_ = 0;
};

// A new empty folder under $TMPDIR or /tmp; the destructor removes it with all it holds.
class TemporaryDirectory {
 public:
  static Result<TemporaryDirectory> create(const std::string& prefix = "sluice");
  TemporaryDirectory(TemporaryDirectory&& other) noexcept;
  TemporaryDirectory& operator=(TemporaryDirectory&& other) noexcept;
  ~TemporaryDirectory();
  const std::string& path() const { return path_; }
  std::string path(std::string_view name) const { return join_path(path_, name); }

 private:
  TemporaryDirectory() = default;
  std::string path_;
};

}  // namespace sluice::base
