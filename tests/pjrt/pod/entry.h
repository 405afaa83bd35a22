// The border between the C table and the functions behind it.
#pragma once

#include <exception>

#include "tests/pjrt/pod/client.h"
#include "tests/pjrt/pod/error.h"

namespace emulated_pod {

template <typename Args>
c::PJRT_Error* too_small(size_t found) {
  return make_error(Error(Code::kInvalidArgument, str("Unexpected ", c::CallOf<Args>::kName,
                                                      "_Args size: expected ", c::kStructSize<Args>, ", got ",
                                                      found, ". Check installed software versions.")));
}

// The C function of a `Status function(Args&)`: checks the struct's size, and lets no exception out.
template <auto function>
struct Entry;
template <typename Args, Status (*function)(Args&)>
struct Entry<function> {
  static c::PJRT_Error* call(Args* args) {
    if (args->struct_size < c::kStructSize<Args>) return too_small<Args>(args->struct_size);
    try {
      return make_error(function(*args));
    } catch (const std::exception& error) {
      return make_error(Error(Code::kInternal, str(c::CallOf<Args>::kName, ": ", error.what())));
    }
  }
  static void set(c::PJRT_Api& api) {
    *reinterpret_cast<c::Slot*>(reinterpret_cast<char*>(&api) + c::CallOf<Args>::kOffset) =
        reinterpret_cast<c::Slot>(&call);
  }
};

template <auto... functions>
void set_entries(c::PJRT_Api& api) {
  (Entry<functions>::set(api), ...);
}

// Fills in the functions of one kind of object each.
void set_client_entries(c::PJRT_Api& api);
void set_device_entries(c::PJRT_Api& api);
void set_executable_entries(c::PJRT_Api& api);
void set_buffer_entries(c::PJRT_Api& api);
void set_event_entries(c::PJRT_Api& api);

inline Client& of(c::PJRT_Client* client) { return *reinterpret_cast<Client*>(client); }
inline Device& of(c::PJRT_Device* device) { return *reinterpret_cast<Device*>(device); }
inline Description& of(c::PJRT_DeviceDescription* description) {
  return *reinterpret_cast<Description*>(description);
}
inline Loaded& of(c::PJRT_LoadedExecutable* loaded) { return *reinterpret_cast<Loaded*>(loaded); }
inline ExecutableHandle& of(c::PJRT_Executable* executable) {
  return *reinterpret_cast<ExecutableHandle*>(executable);
}
inline Buffer& of(c::PJRT_Buffer* buffer) { return *reinterpret_cast<Buffer*>(buffer); }
inline std::shared_ptr<Event>& of(c::PJRT_Event* event) {
  return *reinterpret_cast<std::shared_ptr<Event>*>(event);
}

inline c::PJRT_Event* new_event(std::shared_ptr<Event> event) {
  return reinterpret_cast<c::PJRT_Event*>(new std::shared_ptr<Event>(std::move(event)));
}
inline c::PJRT_Event* new_ready_event() {
  auto event = std::make_shared<Event>();
  event->set({});
  return new_event(std::move(event));
}

}  // namespace emulated_pod
