// One collective operation among the replicas of this process and, through a transport, of other processes.
// Internal to this room.
#pragma once

#include <atomic>
#include <barrier>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sluice/collectives/reduction.h"
#include "sluice/collectives/transport.h"
#include "sluice/pjrt/program/custom_call.h"

namespace sluice::collectives {

// The request of one replica's call.
struct Contribution {
  enum class Kind : int64_t { kAllReduce, kAllGather };
  Kind kind = Kind::kAllReduce;
  Reduction reduction = Reduction::kSum;
  int64_t program = 0, site = 0;
  std::vector<int64_t> groups;  // rows of group_size global replica numbers; empty: one group of all
  int64_t group_size = 0;
  std::vector<pjrt::CallBuffer> operands, results;

  static base::Result<Contribution> read(const pjrt::CustomCall& call, Kind kind);
  // Returns "sluice_all_reduce at site 3 of program 00000000000000ab (2 operands, 64 bytes)".
  std::string place() const;
  size_t bytes() const;  // of all operands
};

// This process among all.
struct CollectiveWorld {
  int process_index = 0, processes = 1;
  std::shared_ptr<Transport> transport;  // null if there is only one process
};

class Collective {
 public:
  // `replicas`: the contributions of all local replicas, in their order; they live until every replica has
  // left run(). `sequence`: the number of collectives of this process before this one.
  Collective(std::vector<const Contribution*> replicas, CollectiveWorld world, int64_t sequence);

  // Checks that the contributions fit together and to the world.
  base::Status check() const;
  // Does the work; each local replica's thread calls it once, after check() succeeded. Returns when the work
  // is done, the same status for all.
  base::Status run(size_t replica);

 private:
  struct Task {
    size_t buffer, begin, end;  // elements
  };
  using Body = void (Collective::*)(const Task&) const;
  struct Phase {
    std::vector<Task> tasks;
    std::atomic<size_t> next{0};
  };

  const Contribution& first() const { return *replicas_[0]; }
  size_t global_replica(size_t local) const;
  // Returns the local replicas whose operands replica `local`'s result is made of, if they are all local.
  std::vector<size_t> members(size_t local) const;
  base::Status check_shapes(size_t replica) const;
  base::Status check_groups() const;
  bool groups_span_processes() const;
  static void plan(Phase& phase, const std::vector<pjrt::CallBuffer>& buffers);

  // Does tasks until there are no more.
  void work(Phase& phase, Body body) noexcept;
  void sum_locally(const Task& task) const;      // operands → the results of all members of a group
  void sum_to_first(const Task& task) const;     // operands → replica 0's results
  void gather_locally(const Task& task) const;   // operands → their places in all results
  void gather_to_first(const Task& task) const;  // operands → their places in replica 0's results
  void copy_from_first(const Task& task) const;  // replica 0's results → the other replicas'
  void gather_to(const Task& task, size_t results) const;

  // The work that replica 0's thread does for all. Nothing is thrown.
  base::Status compare_headers() const noexcept;
  base::Status talk() const noexcept;
  base::Status reduce_across_processes() const;
  base::Status gather_across_processes() const;
  base::Status reduce_in_groups() const;

  const std::vector<const Contribution*> replicas_;
  const CollectiveWorld world_;
  const int64_t sequence_;
  Phase combine_, copy_;
  std::atomic<bool> broken_{false};
  std::barrier<> together_;
  base::Status status_;  // written by replica 0's thread, read by the others after they met
};

}  // namespace sluice::collectives
