// Compiles for devices that are not here.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/pjrt/named_value.h"
#include "sluice/pjrt/plugin.h"
#include "sluice/pjrt/program/executable_facts.h"
#include "sluice/pjrt/program/optimized_program.h"

namespace sluice::pjrt {

struct AheadProgram;

// How many devices a program is compiled for: replicas of it, or partitions of the one program.
struct AheadCount {
  int devices = 1;
  bool partitions = false;
};

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
  // The numbers of the devices in the order of a program's replicas: worker by worker.
  const std::vector<int>& device_ids() const { return device_ids_; }
  // Each device's device_place() (cache/cache_identity.h), in the plugin's order.
  const std::vector<std::string>& places() const { return places_; }

 private:
  friend base::Result<AheadProgram> compile_ahead(const Topology& topology, std::string_view text,
                                                  AheadCount count, const XlaFlags& flags);
  explicit Topology(std::shared_ptr<Plugin> plugin) : plugin_(std::move(plugin)) {}
  base::Status read_devices();
  base::Status read_attributes();

  std::shared_ptr<Plugin> plugin_;
  c::PJRT_TopologyDescription* raw_ = nullptr;
  int num_devices_ = 0;
  std::vector<int> device_ids_;
  std::vector<std::string> places_;
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
  // With partitions: of the results on one device, "tensor<256x1024xf32>".
  std::vector<std::string> output_types;
  // For a program of all devices of a TPU slice: what a client of this slice finds in its cache of programs,
  // and under which key (CompileCache); else empty.
  std::string serialized, cache_key;
};

// Compiles StableHLO text (MLIR) for that many of the topology's devices: one replica each, or all of them
// together as the partitions of one program, which only libtpu does and only with all devices of a slice.
// `flags` are added to the plugin's own. A program that needs more memory than a device has is
// kResourceExhausted (memory_shortage).
//
// libtpu ends the process on some inputs: call this in a separate process (sluice/estimate/ahead_worker.h).
base::Result<AheadProgram> compile_ahead(const Topology& topology, std::string_view text, AheadCount count,
                                         const XlaFlags& flags = {});

// The bytes that a program needs and a device has, parsed from the text of a compiler's error, as exact as
// its two decimals. nullopt for a text of another form.
struct MemoryShortage {
  double needed = 0, available = 0;
};
std::optional<MemoryShortage> memory_shortage(std::string_view message);

// Returns a compiler's error about a program's text. For an operation that no TPU has (Fourier transforms of
// f64, products of 64-bit integers) the error begins with the operation's location, "fc.weight/aten::mm", and
// says what to do. Any other error stays as it is.
Error with_operation(const Error& refused, std::string_view text);

}  // namespace sluice::pjrt
