// The emulated pod: a PJRT plugin for tests that looks like a slice of TPUs, or like GPUs, of several
// processes.
//
// Each process sees the devices of all and drives its own. They meet in worker 0's process, which compiles
// every program once and runs each launch once for all of them on XLA's CPU plugin, in memory that they share
// (pod.h). settings.h says what can be set.
#include "tests/pjrt/pod/entry.h"
#include "tests/pjrt/pod/settings.h"

namespace emulated_pod {
namespace {

void error_destroy(c::PJRT_Error_Destroy_Args* args) { (void)take_status(args->error); }

void error_message(c::PJRT_Error_Message_Args* args) {
  const Error& error = reinterpret_cast<const ErrorObject*>(args->error)->error;
  args->message = error.what();
  args->message_size = std::char_traits<char>::length(error.what());
}

Status error_code(c::PJRT_Error_GetCode_Args& args) {
  args.code = static_cast<int>(reinterpret_cast<const ErrorObject*>(args.error)->error.code());
  return {};
}

Status plugin_initialize(c::PJRT_Plugin_Initialize_Args&) { return {}; }

// Those of the compiler underneath, which say what programs it takes.
Status plugin_attributes(c::PJRT_Plugin_Attributes_Args& args) {
  SLUICE_TRY(const Api api, cpu_plugin());
  return api.call(args);
}

// A profiler with a table of so many bytes, as another version of the extension would have it.
const c::PJRT_Extension_Base* profiler_of_another_version() {
  struct Profiler {
    c::PJRT_Extension_Base base;
    const size_t* table;  // begins with its size
  };
  static size_t size = 0;
  static Profiler profiler{};
  const auto bytes = environment_number("EMULATED_POD_PROFILER", 1, 1000);
  if (!bytes || !*bytes) return nullptr;
  size = static_cast<size_t>(**bytes);
  profiler.base.struct_size = sizeof profiler;
  profiler.base.type = 1;
  profiler.table = &size;
  return &profiler.base;
}

c::PJRT_Api make_table() {
  c::PJRT_Api api{};
  api.struct_size = sizeof api;
  api.extension_start = const_cast<c::PJRT_Extension_Base*>(profiler_of_another_version());
  api.pjrt_api_version.struct_size = sizeof api.pjrt_api_version;
  api.pjrt_api_version.major_version = c::kApiMajor;
  api.pjrt_api_version.minor_version = c::kApiMinor;
  api.PJRT_Error_Destroy = reinterpret_cast<c::Slot>(&error_destroy);
  api.PJRT_Error_Message = reinterpret_cast<c::Slot>(&error_message);
  set_entries<&error_code, &plugin_initialize, &plugin_attributes>(api);
  set_client_entries(api);
  set_device_entries(api);
  set_executable_entries(api);
  set_buffer_entries(api);
  set_event_entries(api);
  return api;
}

}  // namespace
}  // namespace emulated_pod

extern "C" __attribute__((visibility("default"))) const sluice::pjrt::c::PJRT_Api* GetPjrtApi() {
  static const sluice::pjrt::c::PJRT_Api api = emulated_pod::make_table();
  return &api;
}
