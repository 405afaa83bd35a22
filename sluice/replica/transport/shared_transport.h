// Collectives between the processes of one machine through shared memory: no sockets, no copies in the
// kernel. Needs no LibTorch.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "sluice/collectives/transport.h"

namespace sluice::replica {

// A named piece of shared memory for a number of processes. It consists of a header, two pieces for each
// process's values, and two pieces for results.
class SharedSegment {
 public:
  // Creates one under a new name; kResourceExhausted if /dev/shm (64 MB in many containers) has no room.
  static base::Result<std::unique_ptr<SharedSegment>> create(int processes);
  // Opens another process's; kNotFound if it is not on this machine (or in another container).
  static base::Result<std::unique_ptr<SharedSegment>> open(const std::string& name, int processes);
  ~SharedSegment();
  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;

  // Returns "/sluice-…".
  const std::string& name() const { return name_; }
  // Removes the name; processes that have opened the segment keep it. Called when all have opened it.
  static void remove(const std::string& name);

 private:
  friend class SharedTransport;
  SharedSegment(std::string name, int descriptor, void* memory, size_t bytes, bool created)
      : name_(std::move(name)), descriptor_(descriptor), memory_(memory), bytes_(bytes), created_(created) {}

  std::string name_;
  int descriptor_;
  void* memory_;
  size_t bytes_;
  bool created_;  // the creator removes the name
};

// Access to the state of the run, besides the transport.
struct RunState {
  std::function<base::Status()> status;                 // an error once the run has ended; called often
  std::function<Error(const std::string& reason)> end;  // ends it for all; returns the first reason given
};

// Returns the transport of process `index` of `processes`, which all have the segment open. It combines in
// the order of the processes, each process its part of a piece, so that all get the same bits. The others
// notice the end of a process within a tenth of a second; waiting also ends when the run has ended. `timeout`
// is for a process that lives but does not come. From then on every call fails.
std::shared_ptr<collectives::Transport> make_shared_transport(std::unique_ptr<SharedSegment> segment,
                                                              int index, int processes,
                                                              std::chrono::milliseconds timeout,
                                                              RunState run);

}  // namespace sluice::replica
