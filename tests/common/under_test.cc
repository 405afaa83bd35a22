#include "tests/common/under_test.h"

#include <stdexcept>

#ifdef SLUICE_HAVE_DEVICE
#include "sluice/device/device.h"
#include "sluice/device/sharding/shard.h"
#endif

namespace sluice::tests {
namespace {

at::Device chosen = at::kCPU;

}  // namespace

at::Device device() { return chosen; }
bool is_xla() { return chosen.type() == at::kXLA; }

#ifdef SLUICE_HAVE_DEVICE

namespace {

DeviceOptions plain_options() {
  DeviceOptions options;
  options.cache = false;
  options.host_shapes = false;  // what runs on the host says nothing of the device
  return options;
}

}  // namespace

void start(const std::string& name, int replicas) {
  if (name == "cpu") return;
  if (name != "xla") throw std::runtime_error("expected --device xla or cpu, found " + name);
  DeviceOptions options = plain_options();
  options.devices = replicas;
  init(options);
  chosen = at::Device(at::kXLA, 0);
}

void start_mesh(const std::string& mesh) {
  init(Mesh::parse(mesh), plain_options());
  chosen = at::Device(at::kXLA, 0);
}

void sync() {
  if (is_xla()) sluice::sync_and_wait();
}

void finish() {
  if (is_xla()) sluice::shutdown();
}

std::vector<std::pair<std::string, int64_t>> fallbacks() {
  return is_xla() ? sluice::fallback_counts() : std::vector<std::pair<std::string, int64_t>>();
}
int64_t fallback_total() { return is_xla() ? sluice::counters().fallbacks : 0; }
int64_t programs() { return is_xla() ? sluice::counters().programs : 0; }

at::Tensor value_on(const at::Tensor& tensor, int replica) {
  return is_xla() ? sluice::on_replica(tensor, replica) : tensor.clone();
}

#else

void start(const std::string& name, int) {
  if (name != "cpu") throw std::runtime_error("this build has no " + name + " device");
}
void start_mesh(const std::string&) { throw std::runtime_error("this build has no xla device"); }
void sync() {}
void finish() {}
std::vector<std::pair<std::string, int64_t>> fallbacks() { return {}; }
int64_t fallback_total() { return 0; }
int64_t programs() { return 0; }
at::Tensor value_on(const at::Tensor& tensor, int) { return tensor.clone(); }

#endif

}  // namespace sluice::tests
