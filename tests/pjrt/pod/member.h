// A worker's connection, as the pod sees it: its shared memory and the programs that it holds.
#pragma once

#include <map>
#include <thread>

#include "tests/pjrt/pod/launch.h"

namespace emulated_pod {

class Member {
 public:
  explicit Member(File socket) : channel(std::move(socket)) {}
  ~Member();
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  Channel channel;
  int worker = -1;  // -1 before it has said who it is
  std::thread reading;
  bool gone = false;  // the pod's lock guards it

  // The message kChunk: maps the worker's memory.
  Status add_chunk(const Message& message);
  void drop_chunk(uint64_t id);

  void hold(std::shared_ptr<Program> program);
  void release(const std::string& key);
  Result<std::shared_ptr<Program>> program(const std::string& key) const;

  // The launch with its places as addresses; kInternal when they are not in the worker's memory.
  Result<Launch> resolve(const LaunchRequest& request) const;

 private:
  struct Chunk {
    char* data = nullptr;
    size_t size = 0;
  };
  struct Held {
    std::shared_ptr<Program> program;
    int count = 0;
  };
  Result<void*> address(const Place& place, size_t bytes) const;

  mutable std::mutex mutex_;
  std::map<uint64_t, Chunk> chunks_;
  std::map<std::string, Held> held_;
};

}  // namespace emulated_pod
