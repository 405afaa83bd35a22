// Calls of operations that the device defines itself, in the namespace "sluice".
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace sluice::device {

// Calls call_own<Result>("sluice::name", …) through the dispatcher, as LibTorch calls its own operations. The
// arguments must have the schema's types.
template <typename Result, typename... Arguments>
Result call_own(const char* name, const Arguments&... arguments) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Result(const Arguments&...)>().call(
      arguments...);
}

}  // namespace sluice::device
