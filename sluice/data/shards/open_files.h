// Files that readers hold open, within the limit of the process. The reader that was used longest ago gives
// its file up; it opens the file again when it is read again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <vector>

namespace sluice::data {

// What a reader holds: a file, or a file with a block of kCacheBlock bytes in memory.
enum class HeldKind { kFile, kBlock };

// The file of one reader, as its last member. Threads: any; a Use excludes the others of its object.
class OpenFile {
 public:
  // `close` closes the file. It may be called from any thread while no Use of this object exists.
  OpenFile(HeldKind kind, std::function<void()> close);
  ~OpenFile();
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  // For as long as it lives, the file stays open. The caller opens the file if it is closed. Other files are
  // closed if there are too many; before that, the soft limit of the process is raised to the hard one.
  class Use {
   public:
    explicit Use(OpenFile& file);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    OpenFile& file_;
  };

  // Closes half of the open files, after an attempt to open one found no free descriptor (EMFILE); returns
  // whether there were any.
  static bool make_room();
  // Returns the number of readers whose file is open, and the most that there may be.
  static std::size_t open_now(HeldKind kind);
  static std::size_t limit(HeldKind kind);

 private:
  friend struct OpenFileList;
  const HeldKind kind_;
  const std::function<void()> close_;
  bool open_ = false, used_ = false;
  std::list<OpenFile*>::iterator place_;  // in the list of open files, if open_
};

// The buffer of a reader: 128 KiB, or less if many readers exist, so that their buffers have about 32 MiB
// together (4 KiB each at least).
class ReadBuffer {
 public:
  ReadBuffer();
  ~ReadBuffer();
  ReadBuffer(const ReadBuffer&) = delete;
  ReadBuffer& operator=(const ReadBuffer&) = delete;

  char* data() { return bytes_.data(); }
  std::size_t size() const { return bytes_.size(); }
  // Gives the buffer the size of this reader's share, or of `least` bytes if that is more. What was in it is
  // lost.
  void fit(std::size_t least = 0);
  // Returns the bytes of all buffers of the process.
  static std::uint64_t held();

 private:
  std::vector<char> bytes_;
};

}  // namespace sluice::data
