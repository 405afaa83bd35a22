#include "tests/pjrt/pod/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace emulated_pod {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kChunk = size_t{64} << 20;

// A buffer without elements has an address too.
size_t rounded(size_t bytes) {
  return std::max<size_t>(1, (bytes + kAlignment - 1) / kAlignment) * kAlignment;
}

}  // namespace

Memory::~Memory() { arena_->give_back(place_, size_); }

Arena::~Arena() {
  for (const auto& [id, chunk] : chunks_) ::munmap(chunk.data, chunk.size);
}

Result<std::shared_ptr<Memory>> Arena::allocate(size_t bytes) {
  const size_t size = rounded(bytes);
  if (size < bytes) return fail(Code::kResourceExhausted, "Out of memory allocating ", bytes, " bytes.");
  std::lock_guard lock(mutex_);
  for (bool second = false;; second = true) {
    for (auto& [id, chunk] : chunks_) {
      const auto found = std::find_if(chunk.free.begin(), chunk.free.end(),
                                      [size](const auto& piece) { return piece.second >= size; });
      if (found == chunk.free.end()) continue;
      const auto [offset, room] = *found;
      chunk.free.erase(found);
      if (room > size) chunk.free[offset + size] = room - size;
      return std::make_shared<Memory>(shared_from_this(), Place{id, offset}, size, chunk.data + offset);
    }
    if (second) return fail(Code::kInternal, "a new chunk of shared memory has no room");
    SLUICE_OK(add_chunk(size));
  }
}

Status Arena::add_chunk(size_t bytes) {
  Chunk chunk;
  chunk.id = ++last_id_;
  chunk.size = std::max(bytes, kChunk);
  const auto refused = [bytes] {
    return fail(Code::kResourceExhausted, "Out of memory allocating ", bytes, " bytes. (",
                std::strerror(errno), ")");
  };
  const File file(::memfd_create("emulated-pod", MFD_CLOEXEC));
  if (!file.open() || ::ftruncate(file.fd(), static_cast<off_t>(chunk.size)) != 0) return refused();
  void* data = ::mmap(nullptr, chunk.size, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd(), 0);
  if (data == MAP_FAILED) return refused();
  chunk.data = static_cast<char*>(data);
  chunk.free[0] = chunk.size;
  // A pod that is gone does not stop a worker from reading what it has.
  (void)link_->post(Kind::kChunk, Writer().number(chunk.id).number(chunk.size).take(), file.fd());
  chunks_[chunk.id] = std::move(chunk);
  return {};
}

void Arena::give_back(const Place& place, size_t size) {
  std::lock_guard lock(mutex_);
  Chunk& chunk = chunks_.at(place.chunk);
  auto next = chunk.free.lower_bound(place.offset);
  if (next != chunk.free.end() && next->first == place.offset + size) {
    size += next->second;
    next = chunk.free.erase(next);
  }
  if (next != chunk.free.begin() && std::prev(next)->first + std::prev(next)->second == place.offset) {
    std::prev(next)->second += size;
  } else {
    chunk.free[place.offset] = size;
  }
  // One is kept for what comes next.
  if (chunk.free.begin()->second != chunk.size || chunks_.size() == 1) return;
  ::munmap(chunk.data, chunk.size);
  (void)link_->post(Kind::kDropChunk, Writer().number(chunk.id).take());
  chunks_.erase(place.chunk);
}

}  // namespace emulated_pod
