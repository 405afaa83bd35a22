#include "sluice/pjrt/profiler.h"

#include <cstddef>
#include <utility>

#include "sluice/base/log.h"
#include "sluice/pjrt/proto_reader.h"

namespace sluice::pjrt {
namespace c {

// The profiler's table and argument structs, declared by hand from their documented layout (xla's
// backends/profiler/plugin/profiler_c_api.h). Only the functions for errors have `priv`.
struct PLUGIN_Profiler_Error;
struct PLUGIN_Profiler_Error_Destroy_Args {
  size_t struct_size;
  void* priv;
  PLUGIN_Profiler_Error* error;
};
struct PLUGIN_Profiler_Error_Message_Args {
  size_t struct_size;
  void* priv;
  const PLUGIN_Profiler_Error* error;
  const char* message;  // out, owned by the error
  size_t message_size;  // out
};
struct PLUGIN_Profiler_Error_GetCode_Args {
  size_t struct_size;
  void* priv;
  const PLUGIN_Profiler_Error* error;
  int code;  // out
};
struct PLUGIN_Profiler_Create_Args {
  size_t struct_size;
  const char* options;  // a serialised tensorflow.ProfileOptions
  size_t options_size;
  PLUGIN_Profiler* profiler;  // out
};
struct PLUGIN_Profiler_Destroy_Args {
  size_t struct_size;
  PLUGIN_Profiler* profiler;
};
struct PLUGIN_Profiler_Start_Args {
  size_t struct_size;
  PLUGIN_Profiler* profiler;
};
struct PLUGIN_Profiler_Stop_Args {
  size_t struct_size;
  PLUGIN_Profiler* profiler;
};
struct PLUGIN_Profiler_CollectData_Args {
  size_t struct_size;
  PLUGIN_Profiler* profiler;
  uint8_t* buffer;              // in and out; null: asks for the size and the place of the data
  size_t buffer_size_in_bytes;  // in and out
};
struct PLUGIN_Profiler_Api {
  size_t struct_size;
  void* priv;
  void (*error_destroy)(PLUGIN_Profiler_Error_Destroy_Args*);
  void (*error_message)(PLUGIN_Profiler_Error_Message_Args*);
  PLUGIN_Profiler_Error* (*error_get_code)(PLUGIN_Profiler_Error_GetCode_Args*);
  PLUGIN_Profiler_Error* (*create)(PLUGIN_Profiler_Create_Args*);
  PLUGIN_Profiler_Error* (*destroy)(PLUGIN_Profiler_Destroy_Args*);
  PLUGIN_Profiler_Error* (*start)(PLUGIN_Profiler_Start_Args*);
  PLUGIN_Profiler_Error* (*stop)(PLUGIN_Profiler_Stop_Args*);
  PLUGIN_Profiler_Error* (*collect_data)(PLUGIN_Profiler_CollectData_Args*);
};
struct Profiler_Extension {
  PJRT_Extension_Base base;
  const PLUGIN_Profiler_Api* api;
};

}  // namespace c

namespace {

constexpr int kProfilerExtension = 1;

// Converts the plugin's error to a Status; takes ownership of the error.
base::Status checked(const c::PLUGIN_Profiler_Api& api, const char* what, c::PLUGIN_Profiler_Error* error) {
  if (error == nullptr) return {};
  c::PLUGIN_Profiler_Error_Message_Args message{};
  message.struct_size = sizeof message;
  message.error = error;
  api.error_message(&message);
  const std::string text(message.message, message.message_size);
  c::PLUGIN_Profiler_Error_Destroy_Args destroy{};
  destroy.struct_size = sizeof destroy;
  destroy.error = error;
  api.error_destroy(&destroy);
  return base::fail(Code::kInternal, "the plugin's profiler, ", what, ": ", text);
}

template <typename Args>
base::Status call(const c::PLUGIN_Profiler_Api& api, const char* what,
                  c::PLUGIN_Profiler_Error* (*function)(Args*), c::PLUGIN_Profiler* profiler) {
  Args args{};
  args.struct_size = sizeof args;
  args.profiler = profiler;
  return checked(api, what, function(&args));
}

}  // namespace

std::optional<Profiler> Profiler::of(std::shared_ptr<const Plugin> plugin) {
  for (const c::PJRT_Extension_Base* next = plugin->api().table()->extension_start; next != nullptr;
       next = next->next) {
    if (next->type != kProfilerExtension || next->struct_size < sizeof(c::Profiler_Extension)) continue;
    const auto* api = reinterpret_cast<const c::Profiler_Extension*>(next)->api;
    if (api == nullptr || api->struct_size < sizeof(c::PLUGIN_Profiler_Api)) {
      base::warn("the profiler of the plugin ", plugin->path(), " is left out: its table has ",
                 api == nullptr ? 0 : api->struct_size, " bytes, at least ", sizeof(c::PLUGIN_Profiler_Api),
                 " were expected");
      return std::nullopt;
    }
    return Profiler(std::move(plugin), api);
  }
  return std::nullopt;
}

Profiler::Profiler(Profiler&& other) noexcept
    : plugin_(std::move(other.plugin_)),
      api_(other.api_),
      profiler_(std::exchange(other.profiler_, nullptr)) {}

Profiler::~Profiler() {
  if (profiler_ == nullptr) return;
  if (const auto done = call<c::PLUGIN_Profiler_Destroy_Args>(*api_, "destroy", api_->destroy, profiler_);
      !done)
    base::warn(done.error().what());
}

base::Status Profiler::start() {
  c::PLUGIN_Profiler_Create_Args create{};
  create.struct_size = sizeof create;
  SLUICE_OK(checked(*api_, "create", api_->create(&create)));
  profiler_ = create.profiler;
  return call<c::PLUGIN_Profiler_Start_Args>(*api_, "start", api_->start, profiler_);
}

base::Status Profiler::stop() {
  return call<c::PLUGIN_Profiler_Stop_Args>(*api_, "stop", api_->stop, profiler_);
}

base::Result<std::string> Profiler::collect() {
  c::PLUGIN_Profiler_CollectData_Args args{};
  args.struct_size = sizeof args;
  args.profiler = profiler_;
  SLUICE_OK(checked(*api_, "collect", api_->collect_data(&args)));
  if (args.buffer_size_in_bytes == 0) return std::string();
  std::string bytes(args.buffer_size_in_bytes, '\0');
  if (args.buffer != nullptr) {  // the data is already in memory of the profiler's
    bytes.assign(reinterpret_cast<const char*>(args.buffer), args.buffer_size_in_bytes);
  } else {
    args.buffer = reinterpret_cast<uint8_t*>(bytes.data());
    SLUICE_OK(checked(*api_, "collect", api_->collect_data(&args)));
  }
  // Two plugins from two makers return a length that is one too large.
  if (!is_message(bytes) && is_message(std::string_view(bytes).substr(0, bytes.size() - 1))) bytes.pop_back();
  if (!is_message(bytes))
    return base::fail(Code::kDataLoss, "the plugin's profiler gave ", bytes.size(),
                      " bytes that are not an XSpace");
  return bytes;
}

bool is_message(std::string_view bytes) {
  ProtoReader reader(bytes);
  bool numbered = true;  // field numbers start at 1
  while (reader.next()) numbered = numbered && reader.field() > 0;
  return numbered && !reader.broken();
}

}  // namespace sluice::pjrt
