// A value in the memory of one device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "sluice/base/result.h"
#include "sluice/pjrt/event.h"
#include "sluice/stablehlo/type.h"

namespace sluice::pjrt {

class Client;
class Device;
namespace c {
struct PJRT_Buffer;
}

// The memory of a buffer, for reading in place. While a view exists, the buffer cannot be donated (a program
// copies it instead). The view must be destroyed before its buffer.
class HostView {
 public:
  HostView(HostView&& other) noexcept;
  HostView& operator=(HostView&&) = delete;
  ~HostView();
  // Dense, last dimension fastest; as long as the buffer's type says.
  const void* data() const { return data_; }

 private:
  friend class Buffer;
  HostView(Client* client, c::PJRT_Buffer* buffer, const void* data)
      : client_(client), buffer_(buffer), data_(data) {}
  Client* client_;
  c::PJRT_Buffer* buffer_;
  const void* data_;
};

// Move-only; keeps its client alive. An empty buffer has no value and may only be asked whether it is empty.
// The value may still be under way: every use of it waits. Threads: const members from any thread.
class Buffer {
 public:
  Buffer() = default;
  // Takes ownership of the plugin's handle. `type` is interned (types.h), `device` is the client's.
  Buffer(std::shared_ptr<Client> client, Device* device, const stablehlo::Type* type, c::PJRT_Buffer* raw);
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();
  explicit operator bool() const { return raw_ != nullptr; }

  const stablehlo::Type& type() const { return *type_; }
  Device* device() const { return device_; }

  // Starts a copy to host memory. `bytes` must be the size of the type: dense, last dimension fastest. The
  // memory must stay valid until the event is ready.
  base::Result<Event> to_host(void* destination, size_t bytes) const;
  // Copies in the same way, and waits.
  base::Status read(void* destination, size_t bytes) const;
  // Waits for the value. The error is that of the program which should have computed it.
  base::Status await() const;
  base::Result<Event> ready_event() const;
  // Waits for the value and returns it in place; kUnimplemented unless the device's memory is the host's.
  base::Result<HostView> host_view() const;
  // Whether the value is gone because a program took over the buffer (donation).
  bool deleted() const;

  // The number of buffers that are alive in this process.
  static int64_t live() { return made() - freed(); }
  // The numbers of buffers made and freed so far in this process.
  static int64_t made();
  static int64_t freed();

  c::PJRT_Buffer* raw() const { return raw_; }
  const stablehlo::Type* interned_type() const { return type_; }

 private:
  void destroy();

  std::shared_ptr<Client> client_;
  Device* device_ = nullptr;
  const stablehlo::Type* type_ = nullptr;
  c::PJRT_Buffer* raw_ = nullptr;
};

}  // namespace sluice::pjrt
