#include "sluice/device/exact.h"

#include <atomic>

#include "sluice/device/runtime.h"

namespace sluice {
namespace {

std::atomic<int> scopes = 0;

}  // namespace

Exact::Exact() { ++scopes; }
Exact::~Exact() { --scopes; }

namespace device {

bool records_exactly() { return scopes > 0 || runtime_options().exact; }

}  // namespace device
}  // namespace sluice
