// Calls of operations that the device defines itself, in the namespace "sluice".
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace sluice::device {

// call_own<Result>("sluice::name", …): through the dispatcher, as LibTorch calls its own. The arguments'
// types are those of the schema.
template <typename Result, typename... Arguments>
Result call_own(const char* name, const Arguments&... arguments) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Result(const Arguments&...)>().call(
      arguments...);
}

}  // namespace sluice::device
