#include "sluice/replica/connect.h"

#include <chrono>
#include <thread>

#include "sluice/base/clock.h"
#include "sluice/base/result.h"
#include "sluice/device/agree.h"
#include "sluice/device/runtime.h"
#include "sluice/replica/launch_check.h"
#include "sluice/replica/transport/transport.h"

namespace sluice::replica {
namespace {

// Returns the store's key for a plugin's key, so that it differs from the processes' own keys.
std::string plugin_key(const std::string& key) { return "plugin " + key; }

// Gives plugins access to the store of the processes.
class PluginStore : public pjrt::KeyValueStore {
 public:
  explicit PluginStore(std::shared_ptr<Processes> processes) : processes_(std::move(processes)) {}

  base::Status put(const std::string& key, const std::string& value) override {
    return processes_->put(plugin_key(key), value);
  }

  base::Result<std::string> try_get(const std::string& key) override {
    SLUICE_TRY(auto found, processes_->try_get(plugin_key(key)));
    if (!found) return base::fail(Code::kNotFound, "no process has put \"", key, "\"");
    return std::move(*found);
  }

  base::Result<std::string> get(const std::string& key, std::chrono::milliseconds timeout) override {
    const double deadline = base::monotonic_seconds() + std::chrono::duration<double>(timeout).count();
    while (true) {
      auto found = try_get(key);
      if (found || found.error().code() != Code::kNotFound) return found;
      SLUICE_OK(processes_->status());
      if (base::monotonic_seconds() > deadline)
        return base::fail(Code::kDeadlineExceeded, "no process has put \"", key, "\" within ",
                          timeout.count(), " ms");
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

 private:
  const std::shared_ptr<Processes> processes_;
};

}  // namespace

void connect_device(const std::shared_ptr<Processes>& processes) {
  if (processes == nullptr) {
    device::set_peers({});
    device::set_peer_slices({});
    device::set_launch_check({});
    return;
  }
  device::set_peers({processes->placement().source,
                     [processes](const std::string& name, const std::string& bytes) {
                       return processes->gather(name, bytes);
                     },
                     [processes] { return processes->status(); }, std::make_shared<PluginStore>(processes),
                     [processes] { return base::value_or_throw(make_transport(processes)); }});
  const SlicePlace& slice = processes->placement().slice;
  device::set_peer_slices({slice.index, slice.count});
  device::set_launch_check([check = std::make_shared<LaunchCheck>(processes)](
                               const device::LaunchRecord& launch) { (*check)(launch); });
}

}  // namespace sluice::replica
