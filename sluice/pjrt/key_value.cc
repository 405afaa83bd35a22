#include "sluice/pjrt/key_value.h"

#include <algorithm>
#include <exception>

namespace sluice::pjrt {
namespace {

KeyValueStore& store_of(void* user_arg) { return *static_cast<KeyValueStore*>(user_arg); }

// Returns the result of `call`, and keeps its exceptions from the plugin.
template <typename Call>
auto guarded(Call call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::exception& error) {
    return base::fail(Code::kInternal, "the processes' store: ", error.what());
  }
}

template <typename Args>
c::PJRT_Error* refuse(const Args& args, const Error& error) {
  const std::string text = error.what();
  return (*args.callback_error)(static_cast<int>(error.code()), text.data(), text.size());
}

template <typename Args>
c::PJRT_Error* give(Args& args, const base::Result<std::string>& found) {
  if (!found) return refuse(args, found.error());
  args.value = new char[found->size()];
  args.value_size = found->size();
  args.value_deleter_callback = [](char* value) { delete[] value; };
  std::copy(found->begin(), found->end(), args.value);
  return nullptr;
}

// The size of the argument structs is not checked: plugins leave it empty.
c::PJRT_Error* get(c::PJRT_KeyValueGetCallback_Args* args) {
  return give(*args, guarded([&] {
    return store_of(args->user_arg)
        .get(std::string(args->key, args->key_size), std::chrono::milliseconds(args->timeout_in_ms));
  }));
}

c::PJRT_Error* try_get(c::PJRT_KeyValueTryGetCallback_Args* args) {
  return give(*args, guarded([&] {
    return store_of(args->user_arg).try_get(std::string(args->key, args->key_size));
  }));
}

c::PJRT_Error* put(c::PJRT_KeyValuePutCallback_Args* args) {
  const base::Status done = guarded([&] {
    return store_of(args->user_arg)
        .put(std::string(args->key, args->key_size), std::string(args->value, args->value_size));
  });
  return done ? nullptr : refuse(*args, done.error());
}

}  // namespace

void offer_store(KeyValueStore& store, c::PJRT_Client_Create_Args& args) {
  args.kv_get_callback = &get;
  args.kv_put_callback = &put;
  args.kv_try_get_callback = &try_get;
  args.kv_get_user_arg = args.kv_put_user_arg = args.kv_try_get_user_arg = &store;
}

}  // namespace sluice::pjrt
