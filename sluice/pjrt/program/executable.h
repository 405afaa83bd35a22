// A compiled program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/pjrt/buffer.h"
#include "sluice/pjrt/event.h"
#include "sluice/pjrt/program/compile_options.h"
#include "sluice/stablehlo/type.h"

namespace sluice::pjrt {

class Client;
namespace c {
struct PJRT_Executable;
struct PJRT_LoadedExecutable;
}  // namespace c

struct CompileOptions {
  // The number of copies of the program that run at the same time, one on each device, in all processes.
  int num_replicas = 1;
  // Above 1: the devices together run one program, whose arguments and results lie over them as the program
  // says (stablehlo::with_layouts). One of the two numbers is 1. Everything here that is given for each
  // replica is then given for each partition.
  int num_partitions = 1;
  // The device of each replica; empty: the client's first devices.
  std::vector<int> device_ids;
  // The program's arguments, in its order. They must be given (empty for a program without arguments) and are
  // checked before each execute: a plugin runs other types of equal size without an error.
  std::vector<stablehlo::Type> argument_types;
  // The types of the results on one device, if the caller knows them: a program whose results are others is
  // an error. Empty: no check. With partitions, both are the types of one device's blocks.
  std::vector<stablehlo::Type> output_types;
  // XLA's flags for this program, in addition to the plugin's own.
  XlaFlags flags;
  // For messages.
  std::string name = "program";
};

// Bytes on each device.
struct ProgramMemory {
  int64_t arguments = 0, outputs = 0, aliased = 0, temporary = 0, code = 0;
};

// The compiler's estimate of the cost of one run on one device.
struct ProgramCost {
  double flops = 0, bytes_accessed = 0;
};

// One run, whose values may still be under way.
struct Launch {
  std::vector<std::vector<Buffer>> outputs;  // [output][replica], of this process's replicas
  std::vector<Event> done;                   // [replica]
};

// Keeps its client alive. Threads: any; runs on one device start in the order of the calls.
class Executable {
 public:
  ~Executable();
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  // Starts the program on all its devices of this process. `arguments` has a list for each replica, in the
  // order of devices(), with all buffers on that replica's device. `not_donated` has the numbers of arguments
  // that the program must not take over in this run although it was compiled to (it copies them). A wrong
  // number or type of arguments, an empty one, or one on another device is kInvalidArgument, and nothing
  // runs. Later errors are in the events and in the outputs.
  base::Result<Launch> execute(std::span<const std::vector<Buffer*>> arguments,
                               std::span<const int64_t> not_donated = {}) const;
  // Does the same with existing lists, one for each output, which may hold arguments of this very run. Their
  // previous contents are appended to `replaced` (destroying what a program takes over may wait for it).
  // Returns the events. If it fails, nothing is changed.
  base::Result<std::vector<Event>> execute_into(std::span<std::vector<Buffer>* const> outputs,
                                                std::vector<Buffer>& replaced,
                                                std::span<const std::vector<Buffer*>> arguments,
                                                std::span<const int64_t> not_donated = {}) const;

  const std::string& name() const { return name_; }
  // This process's devices, one for each of its replicas.
  std::span<Device* const> devices() const { return devices_; }
  size_t num_arguments() const { return argument_types_.size(); }
  size_t num_outputs() const { return output_types_.size(); }
  const stablehlo::Type& argument_type(size_t i) const { return *argument_types_[i]; }
  const stablehlo::Type& output_type(size_t i) const { return *output_types_[i]; }

  base::Result<ProgramMemory> memory() const;
  base::Result<ProgramCost> cost() const;
  // Returns the bytes from which Client::load restores the program.
  base::Result<std::string> serialize() const;

  // Whether it came from the cache on disk, and the seconds that compiling or loading took.
  bool from_cache() const { return from_cache_; }
  double seconds() const { return seconds_; }

  c::PJRT_LoadedExecutable* raw() const { return loaded_; }

 private:
  friend class Client;
  explicit Executable(std::shared_ptr<Client> client) : client_(std::move(client)) {}
  // Asks the plugin for the outputs and devices of `loaded`; takes ownership of `loaded` in any case.
  static base::Result<std::shared_ptr<Executable>> adopt(std::shared_ptr<Client> client,
                                                         c::PJRT_LoadedExecutable* loaded,
                                                         const CompileOptions& options);
  base::Status read_outputs(const CompileOptions& options);
  base::Status read_devices();
  base::Status check(std::span<const std::vector<Buffer*>> arguments) const;
  base::Status refuse(size_t replica, size_t argument, const Buffer* buffer) const;

  std::shared_ptr<Client> client_;
  std::string name_;
  c::PJRT_LoadedExecutable* loaded_ = nullptr;
  c::PJRT_Executable* executable_ = nullptr;
  std::vector<Device*> devices_;
  std::vector<const stablehlo::Type*> argument_types_, output_types_;  // interned
  bool from_cache_ = false;
  double seconds_ = 0;
};

}  // namespace sluice::pjrt
