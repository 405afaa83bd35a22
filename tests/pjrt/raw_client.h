// The plugin's own functions, for what Sluice's client would not ask of it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sluice/pjrt/api.h"
#include "sluice/pjrt/named_value.h"

namespace emulated_pod::testing {

namespace c = sluice::pjrt::c;
using sluice::base::Result;
using sluice::base::Status;

// The emulated pod's table.
const sluice::pjrt::Api& pod_api();

// An open client and what it makes, all destroyed with it.
class RawClient {
 public:
  // `prepare` may change the arguments, for callbacks.
  static Result<std::unique_ptr<RawClient>> create(
      const sluice::pjrt::Options& options = {},
      const std::function<void(c::PJRT_Client_Create_Args&)>& prepare = {});
  ~RawClient();
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  std::vector<c::PJRT_Device*> devices() const;
  std::vector<c::PJRT_Device*> local_devices() const;
  int process_index() const;

  Result<c::PJRT_Buffer*> put(const std::vector<float>& values, c::PJRT_Device* device);
  Result<std::vector<float>> read(c::PJRT_Buffer* buffer, size_t size) const;
  bool deleted(c::PJRT_Buffer* buffer) const;
  // `options`: a serialised CompileOptionsProto.
  Result<c::PJRT_LoadedExecutable*> compile(const std::string& text, const std::string& options,
                                            const std::string& format = "mlir");
  Result<c::PJRT_LoadedExecutable*> load(const std::string& serialized);
  Result<std::string> serialize(c::PJRT_LoadedExecutable* loaded);
  // One argument for each of this process's devices: its one output for each of them.
  using Buffers = std::vector<c::PJRT_Buffer*>;
  Result<Buffers> execute(c::PJRT_LoadedExecutable* loaded, const Buffers& arguments,
                          size_t arguments_each = 1, const std::vector<int64_t>& kept = {});
  Result<c::PJRT_Device_MemoryStats_Args> memory(c::PJRT_Device* device) const;

 private:
  RawClient() = default;
  c::PJRT_Client* client_ = nullptr;
  std::vector<c::PJRT_Buffer*> buffers_;
  std::vector<c::PJRT_LoadedExecutable*> programs_;
  std::vector<c::PJRT_Executable*> executables_;
};

}  // namespace emulated_pod::testing
