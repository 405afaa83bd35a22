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
#include "sluice/pjrt/compile_options.h"
#include "sluice/pjrt/event.h"
#include "sluice/stablehlo/type.h"

namespace sluice::pjrt {

class Client;
namespace c {
struct PJRT_Executable;
struct PJRT_LoadedExecutable;
}  // namespace c

struct CompileOptions {
  // How many copies of the program run at once, each on its device; those of other processes count.
  int num_replicas = 1;
  // The device of each replica; empty: the first devices of the client.
  std::vector<int> device_ids;
  // The program's arguments, checked before each execute: a plugin runs other types of equal size without a
  // word. Must be given, in the program's order (empty for a program without arguments).
  std::vector<stablehlo::Type> argument_types;
  // XLA's flags for this program, beside the plugin's own.
  XlaFlags flags;
  // For messages.
  std::string name = "program";
};

// Bytes on each device.
struct ProgramMemory {
  int64_t arguments = 0, outputs = 0, aliased = 0, temporary = 0, code = 0;
};

// What the compiler thinks that one run on one device costs.
struct ProgramCost {
  double flops = 0, bytes_accessed = 0;
};

// One run, whose values may still be on their way.
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
  // order of devices(), all buffers on that replica's device. The numbers in `not_donated` are arguments that
  // the program may not take over in this run although it was compiled to (it copies them). Arguments of
  // another number or type, empty ones and those of another device are kInvalidArgument, and nothing runs.
  // Errors that come later are in the events and in the outputs.
  base::Result<Launch> execute(std::span<const std::vector<Buffer*>> arguments,
                               std::span<const int64_t> not_donated = {}) const;
  // The same into lists that are there, one for each output, which may hold arguments of this very run. What
  // they held is put behind `replaced` (destroying what a program takes over may wait for it). Gives the
  // events. Nothing is changed where it fails.
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
  // The bytes from which Client::load makes it again.
  base::Result<std::string> serialize() const;

  // Whether it came from the cache on disk, and how long compiling or loading took.
  bool from_cache() const { return from_cache_; }
  double seconds() const { return seconds_; }

  c::PJRT_LoadedExecutable* raw() const { return loaded_; }

 private:
  friend class Client;
  explicit Executable(std::shared_ptr<Client> client) : client_(std::move(client)) {}
  // Asks the plugin what `loaded` gives out and where it runs; takes `loaded` in any case.
  static base::Result<std::shared_ptr<Executable>> adopt(std::shared_ptr<Client> client,
                                                         c::PJRT_LoadedExecutable* loaded,
                                                         const CompileOptions& options);
  base::Status read_outputs();
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
