// Answers LibTorch's questions to the device type XLA besides its kernels: generators, pinned memory, the
// owner of a pointer.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/XLAHooksInterface.h>
#include <c10/core/CPUAllocator.h>
#include <torch/library.h>

#include "sluice/base/error.h"
#include "sluice/device/program/record.h"

namespace sluice::device {
namespace {

struct Hooks final : at::XLAHooksInterface {
  void init() const override {}
  bool hasXLA() const override { return true; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return 1; }
  c10::DeviceIndex getCurrentDevice() const override { return 0; }

  // The device draws its keys from generators of the host (random.h).
  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override {
    return at::detail::getDefaultCPUGenerator();
  }
  at::Generator getNewGenerator(c10::DeviceIndex) const override { return at::detail::createCPUGenerator(); }

  // Plugins read any memory of the host.
  at::Allocator* getPinnedMemoryAllocator() const override { return c10::GetCPUAllocator(); }
  bool isPinnedPtr(const void*) const override { return false; }

  at::Device getDeviceFromPtr(void*) const override {
    throw_error(
        Code::kInvalidArgument,
        "from_blob: a tensor on xla:0 cannot use memory of the program; make it on the CPU and copy it: "
        "torch::from_blob(data, sizes).to(xla:0)");
  }
};

// pin_memory() without a device uses the accelerator that LibTorch was built with, and LibTorch for the CPU
// has no accelerator.
at::Tensor pin_memory(const at::Tensor& self, std::optional<at::Device>) {
  return self.clone(at::MemoryFormat::Contiguous);
}

bool is_pinned(const at::Tensor&, std::optional<at::Device>) { return false; }

}  // namespace

void register_hooks() {
  at::XLAHooksRegistry()->Register(
      "torch_xla::detail::XLAHooks",
      [](const auto&...) -> std::unique_ptr<at::XLAHooksInterface> { return std::make_unique<Hooks>(); });
  static auto* library =
      new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::CPU, __FILE__, __LINE__);
  library->impl("_pin_memory", TORCH_FN(pin_memory));
  library->impl("is_pinned", TORCH_FN(is_pinned));
}

}  // namespace sluice::device
