#include "sluice/device/random.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>

#include "sluice/device/capture/watch.h"
#include "sluice/device/device.h"

namespace sluice::device {
namespace {
thread_local bool shared = false;
}

int64_t random_key(at::Generator generator) {
  std::scoped_lock lock(generator.mutex());
  return static_cast<int64_t>(at::check_generator<at::CPUGeneratorImpl>(generator)->random64());
}

Number random_key(c10::ArrayRef<c10::IValue> arguments, const Signature& signature) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  bool given = false;
  if (signature.generator >= 0) {
    const c10::IValue& argument = arguments[static_cast<size_t>(signature.generator)];
    given = !argument.isNone();
    if (given) generator = argument.toGenerator();
  }
  const int64_t key = random_key(generator);
  if (Watch* watch = Watch::current()) watch->drew(given ? std::optional(generator) : std::nullopt, key);
  return {0, key};
}

bool shared_random() { return shared; }
bool set_shared_random(bool value) { return std::exchange(shared, value); }

}  // namespace sluice::device

namespace sluice {
SharedRandom::SharedRandom() : previous_(device::set_shared_random(true)) {}
SharedRandom::~SharedRandom() { device::set_shared_random(previous_); }
}  // namespace sluice
