// Memory that a worker shares with the pod.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>

#include "tests/pjrt/pod/launch.h"
#include "tests/pjrt/pod/link.h"

namespace emulated_pod {

class Arena;

// A piece of it, given back at the end. Aligned as XLA's CPU plugin needs it to use it in place.
class Memory {
 public:
  Memory(std::shared_ptr<Arena> arena, Place place, size_t size, char* data)
      : arena_(std::move(arena)), place_(place), size_(size), data_(data) {}
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  char* data() const { return data_; }
  const Place& place() const { return place_; }

  // Copies to the host that are under way: a launch does not write here meanwhile.
  std::atomic<int> readers{0};

 private:
  std::shared_ptr<Arena> arena_;
  Place place_;
  size_t size_;
  char* data_;
};

// Memory files in few large chunks, so that thousands of buffers need few mappings and no open file. Nothing
// of it is on a disk, and it goes with the processes. Threads: any.
class Arena : public std::enable_shared_from_this<Arena> {
 public:
  explicit Arena(std::shared_ptr<Link> link) : link_(std::move(link)) {}
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // kResourceExhausted when the system has no more.
  Result<std::shared_ptr<Memory>> allocate(size_t bytes);

 private:
  friend class Memory;
  struct Chunk {
    uint64_t id = 0;
    char* data = nullptr;
    size_t size = 0;
    std::map<size_t, size_t> free;  // offset to size
  };
  Status add_chunk(size_t bytes);
  void give_back(const Place& place, size_t size);

  const std::shared_ptr<Link> link_;
  std::mutex mutex_;
  uint64_t last_id_ = 0;
  std::map<uint64_t, Chunk> chunks_;
};

}  // namespace emulated_pod
