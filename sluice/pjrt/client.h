// A client, which runs programs on a plugin's devices.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/pjrt/buffer.h"
#include "sluice/pjrt/cache/compile_cache.h"
#include "sluice/pjrt/device.h"
#include "sluice/pjrt/event.h"
#include "sluice/pjrt/key_value.h"
#include "sluice/pjrt/named_value.h"
#include "sluice/pjrt/plugin.h"
#include "sluice/pjrt/program/executable.h"

namespace sluice::pjrt {

struct ClientOptions {
  // The number of devices of XLA's CPU plugin; other plugins have the machine's devices.
  int cpu_device_count = 1;
  // The folder of the cache of compiled programs; "" switches it off.
  std::string cache_dir = default_cache_directory();
  uint64_t cache_limit = kDefaultCacheLimit;
  // Passed on to the plugin unchanged.
  Options plugin_options;
  // This process among those that share their devices. A GPU's plugin gets these numbers and the store,
  // through which its clients find each other; a TPU's plugin reads them from the environment.
  int process_index = 0, processes = 1;
  std::shared_ptr<KeyValueStore> store;
};

// A device of any process.
struct GlobalDevice {
  int id = 0;  // unique over all processes
  int process_index = 0;
  std::string place;  // where it is in its slice, as its programs are keyed; empty except for a TPU
};

// The use of the host memory of put().
enum class HostCopy {
  kDuringCall,  // copied before put() returns
  kBackground,  // copied later: it must stay valid and unchanged until `done`
  kShare,  // the buffer may be this memory itself (XLA's CPU plugin, 64-byte aligned): keep it until `done`,
           // which comes when the buffer is gone; a program that takes over the buffer copies it
  kAdopt,  // as kShare, and a program that takes over the buffer may write to the memory
};

// Threads: any. Buffers and executables keep their client alive. The last of them destroys it after waiting
// for the work in flight.
class Client : public std::enable_shared_from_this<Client> {
 public:
  static base::Result<std::shared_ptr<Client>> create(std::shared_ptr<Plugin> plugin,
                                                      const ClientOptions& options = {});
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // The devices that this process drives, in the plugin's order.
  std::span<Device* const> devices() const { return devices_; }
  // The device with this id, or null if this process has none.
  Device* device(int id) const;
  // The devices of all processes, in the plugin's order. Other processes' devices have only a number here.
  std::span<const GlobalDevice> global_devices() const { return global_devices_; }
  // This process's number in the plugin's counting, and the number of processes whose devices it knows.
  int process_index() const { return process_index_; }
  int processes() const;
  const std::string& platform_name() const { return platform_name_; }
  const std::string& platform_version() const { return platform_version_; }
  const std::shared_ptr<Plugin>& plugin() const { return plugin_; }
  const Api& api() const { return plugin_->api(); }

  // Makes a buffer from the bytes at `host` (dense, last dimension fastest). `done` is called once, from any
  // thread, when the host memory is no longer used, but not if put() fails. It must not block, nor drop the
  // last reference to a client.
  base::Result<Buffer> put(const void* host, const stablehlo::Type& type, Device& device,
                           HostCopy mode = HostCopy::kDuringCall, std::function<void()> done = {});

  // Compiles a StableHLO program (MLIR text), or loads it from the cache on disk.
  base::Result<std::shared_ptr<Executable>> compile(std::string_view text, const CompileOptions& options);
  // Loads the bytes of Executable::serialize(). They must be undamaged: plugins do not check them.
  base::Result<std::shared_ptr<Executable>> load(std::string_view bytes, const CompileOptions& options);

 private:
  explicit Client(std::shared_ptr<Plugin> plugin) : plugin_(std::move(plugin)) {}
  base::Status open(const ClientOptions& options);
  base::Status read_platform();
  base::Status read_devices();
  base::Result<std::string> serialized_options(const CompileOptions& options) const;
  base::Result<std::shared_ptr<Executable>> compile_now(std::string_view text, const std::string& serialized,
                                                        const CompileOptions& options);
  // Compiles a program that is not in the cache, but waits if another process is compiling it.
  base::Result<std::shared_ptr<Executable>> compile_once(std::string_view text, const std::string& serialized,
                                                         const CompileOptions& options);
  CompileClaim claim_program(const std::string& key, const CompileOptions& options);
  base::Result<std::shared_ptr<Executable>> from_cache(const std::optional<std::string>& payload,
                                                       const std::string& key, const CompileOptions& options);
  void to_cache(const std::string& key, const Executable& executable);

  std::shared_ptr<Plugin> plugin_;
  c::PJRT_Client* raw_ = nullptr;
  std::string platform_name_, platform_version_;
  int process_index_ = 0;
  std::vector<GlobalDevice> global_devices_;
  std::shared_ptr<KeyValueStore> store_;  // the plugin's client may call it as long as it lives
  std::vector<std::unique_ptr<Device>> owned_devices_;
  std::vector<Device*> devices_;
  std::unique_ptr<CompileCache> cache_;
  std::string cache_identity_;
  std::atomic<bool> cache_failed_{false};  // so that the warning comes only once
  std::atomic<bool> impatient_{false};     // a wait was in vain: this process waits for no other one
};

}  // namespace sluice::pjrt
