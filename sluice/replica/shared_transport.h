// Collectives between the processes of one machine, through memory that they share: no sockets, no copies in
// the kernel. Needs no LibTorch.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "sluice/collectives/transport.h"

namespace sluice::replica {

// A piece of shared memory under a name, for a number of processes. It is laid out as a header, then for each
// process two pieces to speak and two pieces for results.
class SharedSegment {
 public:
  // Makes one under a new name; kResourceExhausted when /dev/shm (64 MB in many containers) has no room.
  static base::Result<std::unique_ptr<SharedSegment>> create(int processes);
  // Opens another process's; kNotFound when it is not on this machine (or in another container).
  static base::Result<std::unique_ptr<SharedSegment>> open(const std::string& name, int processes);
  ~SharedSegment();
  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;

  // "/sluice-…"
  const std::string& name() const { return name_; }
  // Takes the name away; who has it open keeps it. Done when all have opened it.
  static void remove(const std::string& name);

 private:
  friend class SharedTransport;
  SharedSegment(std::string name, int descriptor, void* memory, size_t bytes, bool created)
      : name_(std::move(name)), descriptor_(descriptor), memory_(memory), bytes_(bytes), created_(created) {}

  std::string name_;
  int descriptor_;
  void* memory_;
  size_t bytes_;
  bool created_;  // and so it is ours to take the name away
};

// What the processes know of each other beside the transport.
struct RunState {
  std::function<base::Status()> status;                 // an error once it has ended; asked often
  std::function<Error(const std::string& reason)> end;  // ends it for all; returns the first reason given
};

// The transport of process `index` of `processes`, which all have the segment open. Combines in the order of
// the processes, each its part of a piece, so that all get the same bits. A process that ends in whatever
// way is noticed by the others within a tenth of a second; who waits gives up too when the run has ended;
// `timeout` is for a process that lives and does not come. From then on every call fails.
std::shared_ptr<collectives::Transport> make_shared_transport(std::unique_ptr<SharedSegment> segment,
                                                              int index, int processes,
                                                              std::chrono::milliseconds timeout,
                                                              RunState run);

}  // namespace sluice::replica
