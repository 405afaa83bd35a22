// One process's part of a launch, as it goes to the pod.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "tests/pjrt/pod/engine.h"

namespace emulated_pod {

// Bytes in a worker's shared memory.
struct Place {
  uint64_t chunk = 0, offset = 0;
};

// The message: what a worker asks for. Lists are those of its own devices, in the order of the program's
// placement.
struct LaunchRequest {
  uint64_t number = 0;  // counts the worker's launches from 1
  std::string program;  // its key
  // Launches whose outputs are arguments of this one and were not done when it was sent.
  std::vector<uint64_t> after;
  // Not in order: an argument has an error already.
  Status arguments_status;
  struct Input {
    Place place;
    bool donated = false;
  };
  std::vector<std::vector<Input>> inputs;
  std::vector<std::vector<Place>> outputs;

  std::string write() const;
  static Result<LaunchRequest> read(std::string_view body);
};

// The same as the pod keeps it, until the other workers have come to the same launch.
struct Launch {
  int worker = 0;
  uint64_t number = 0;
  std::shared_ptr<Program> program;
  std::vector<uint64_t> after;
  Status arguments_status;
  std::vector<std::vector<Argument>> arguments;
  std::vector<std::vector<void*>> outputs;
  std::chrono::steady_clock::time_point arrived = std::chrono::steady_clock::now();

  const std::string& key() const { return program->facts().key; }
  const std::string& name() const { return program->facts().name; }
};

}  // namespace emulated_pod
