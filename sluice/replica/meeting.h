// Where the processes of a run find each other. Internal to this room.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <cstdint>
#include <string>

namespace sluice::replica {

// A store for one meeting of the processes. Process 0 keeps a TCPStore at the address until its program ends,
// so that the same programs can meet there again, as for one training behind the other: each meeting has its
// own names in it. A process that was at one waits for process 0's next. Throws std::exception when process 0
// cannot listen there, or no new meeting begins within `timeout`. Threads: any.
c10::intrusive_ptr<c10d::Store> meet(const std::string& host, uint16_t port, int process,
                                     std::chrono::seconds timeout);

}  // namespace sluice::replica
