// Compiles for devices that are not here.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/pjrt/executable_facts.h"
#include "sluice/pjrt/named_value.h"
#include "sluice/pjrt/optimized_program.h"
#include "sluice/pjrt/plugin.h"

namespace sluice::pjrt {

struct AheadProgram;

// The devices of a machine as a plugin's compiler knows them; no client is needed. Threads: any.
class Topology {
 public:
  // `name` and `options` are the plugin's own ("v3:4x4"); estimate::TpuSlice has them for libtpu. libtpu
  // refuses wrong names and options with an error.
  static base::Result<std::shared_ptr<Topology>> create(std::shared_ptr<Plugin> plugin,
                                                        const std::string& name, const Options& options = {});
  ~Topology();
  Topology(const Topology&) = delete;
  Topology& operator=(const Topology&) = delete;

  int num_devices() const { return num_devices_; }
  // "TPU v3"
  const std::string& device_kind() const { return device_kind_; }
  // Bytes of memory that a program may use on each device, if the plugin reports them. For libtpu's v4
  // without megacore it is twice what the compiler allows.
  std::optional<int64_t> memory_limit() const { return memory_limit_; }

 private:
  friend base::Result<AheadProgram> compile_ahead(const Topology& topology, std::string_view text,
                                                  int num_replicas, const XlaFlags& flags);
  explicit Topology(std::shared_ptr<Plugin> plugin) : plugin_(std::move(plugin)) {}
  base::Status read_devices();
  base::Status read_attributes();

  std::shared_ptr<Plugin> plugin_;
  c::PJRT_TopologyDescription* raw_ = nullptr;
  int num_devices_ = 0;
  std::string device_kind_;
  std::optional<int64_t> memory_limit_;
};

// The result of compiling. All figures are for one device.
struct AheadProgram {
  double seconds = 0;  // of compiling, on this machine
  ProgramMemory memory;
  int64_t total_memory = 0;  // must be free to run the program; see read_total_memory
  ProgramCost cost;          // as the compiler counts it
  int64_t serialized_bytes = 0;
  std::vector<Collective> collectives;
};

// Compiles StableHLO text (MLIR) for `num_replicas` of the topology's devices, one replica each. `flags` are
// added to the plugin's own. A program that needs more memory than a device has is kResourceExhausted
// (memory_shortage).
//
// libtpu ends the process on some inputs: call this in a separate process (sluice/estimate/ahead_worker.h).
base::Result<AheadProgram> compile_ahead(const Topology& topology, std::string_view text, int num_replicas,
                                         const XlaFlags& flags = {});

// The bytes that a program needs and a device has, parsed from the text of a compiler's error, as exact as
// its two decimals. nullopt for a text of another form.
struct MemoryShortage {
  double needed = 0, available = 0;
};
std::optional<MemoryShortage> memory_shortage(std::string_view message);

}  // namespace sluice::pjrt
