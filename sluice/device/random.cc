#include "sluice/device/random.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>

#include "sluice/device/device.h"

namespace sluice::device {
namespace {
thread_local bool shared = false;
}

Number random_key(c10::ArrayRef<c10::IValue> arguments, const Signature& signature) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  if (signature.generator >= 0) {
    const c10::IValue& given = arguments[static_cast<size_t>(signature.generator)];
    if (!given.isNone()) generator = given.toGenerator();
  }
  std::scoped_lock lock(generator.mutex());
  auto* cpu = at::check_generator<at::CPUGeneratorImpl>(generator);
  const uint64_t key = cpu->random64();
  return {0, static_cast<int64_t>(key)};
}

bool shared_random() { return shared; }
bool set_shared_random(bool value) { return std::exchange(shared, value); }

}  // namespace sluice::device

namespace sluice {
SharedRandom::SharedRandom() : previous_(device::set_shared_random(true)) {}
SharedRandom::~SharedRandom() { device::set_shared_random(previous_); }
}  // namespace sluice
