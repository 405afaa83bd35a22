// The meeting over the key-value store that the caller provides, as the CUDA plugin's.
#include <chrono>

#include "sluice/base/environment.h"
#include "tests/pjrt/pod/error.h"
#include "tests/pjrt/pod/settings.h"

namespace emulated_pod {
namespace {

// Made for the callbacks, which may fail.
c::PJRT_Error* callback_error(int code, const char* message, size_t size) {
  return make_error(Error(static_cast<Code>(code), std::string(message, size)));
}

std::string key_of(int node) { return str("emulated_cuda:devices_of_node:", node); }

class Store {
 public:
  explicit Store(const c::PJRT_Client_Create_Args& args) : args_(args) {}

  Status put(const std::string& key, const std::string& value) const {
    auto call = c::make<c::PJRT_KeyValuePutCallback_Args>();
    c::PJRT_CallbackError error = &callback_error;
    call.key = key.data();
    call.key_size = key.size();
    call.value = value.data();
    call.value_size = value.size();
    call.callback_error = &error;
    call.user_arg = args_.kv_put_user_arg;
    return take_status(args_.kv_put_callback(&call));
  }

  Result<std::string> get(const std::string& key, int timeout_ms) const {
    auto call = c::make<c::PJRT_KeyValueGetCallback_Args>();
    c::PJRT_CallbackError error = &callback_error;
    call.key = key.data();
    call.key_size = key.size();
    call.timeout_in_ms = timeout_ms;
    call.callback_error = &error;
    call.user_arg = args_.kv_get_user_arg;
    SLUICE_OK(take_status(args_.kv_get_callback(&call)));
    return taken(call);
  }

  // kNotFound when the key is not there yet.
  Result<std::string> try_get(const std::string& key) const {
    auto call = c::make<c::PJRT_KeyValueTryGetCallback_Args>();
    c::PJRT_CallbackError error = &callback_error;
    call.key = key.data();
    call.key_size = key.size();
    call.callback_error = &error;
    call.user_arg = args_.kv_try_get_user_arg;
    SLUICE_OK(take_status(args_.kv_try_get_callback(&call)));
    return taken(call);
  }

 private:
  static std::string taken(const auto& call) {
    std::string value(call.value, call.value_size);
    if (call.value_deleter_callback != nullptr) call.value_deleter_callback(call.value);
    return value;
  }

  const c::PJRT_Client_Create_Args& args_;
};

Status check_callbacks(const c::PJRT_Client_Create_Args& args, const Settings& settings, bool try_get) {
  const char* missing = args.kv_get_callback == nullptr                  ? "kv_get_callback"
                        : args.kv_put_callback == nullptr                ? "kv_put_callback"
                        : try_get && args.kv_try_get_callback == nullptr ? "kv_try_get_callback"
                                                                         : nullptr;
  if (missing != nullptr) {
    return fail(Code::kInvalidArgument, "num_nodes is set to ", settings.workers, ", but ", missing,
                " is null: several nodes need a key-value store");
  }
  return {};
}

// The value that try_get is to say is not there is looked for first, as a plugin does that looks for a node
// that was here before.
Status check_try_get(const Store& store) {
  const auto found = store.try_get("emulated_cuda:incarnation");
  if (found || found.error().code() == Code::kNotFound) return {};
  return sluice::base::fail_at(found, "kv_try_get_callback");
}

}  // namespace

Status meet_over_store(const c::PJRT_Client_Create_Args& args, const Settings& settings) {
  if (settings.workers == 1) return {};
  const bool try_get = sluice::base::environment_flag("EMULATED_POD_KV_TRY_GET", true);
  SLUICE_OK(check_callbacks(args, settings, try_get));
  const Store store(args);
  if (try_get) SLUICE_OK(check_try_get(store));
  SLUICE_OK(store.put(key_of(settings.worker), str(settings.devices)));
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(settings.timeout);
  for (int node = 0; node < settings.workers; ++node) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    const auto devices = store.get(key_of(node), std::max<int>(1, static_cast<int>(left.count())));
    if (!devices) {
      return fail(devices.error().code(), "node ", settings.worker, " waited ", settings.timeout,
                  " s for node ", node, " of ", settings.workers,
                  ", which did not come: ", devices.error().what());
    }
  }
  return {};
}

}  // namespace emulated_pod
