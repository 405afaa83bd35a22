#include "sluice/device/report/alive.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "sluice/base/text/join.h"
#include "sluice/device/program/trace.h"
#include "sluice/device/runtime.h"
#include "sluice/device/sharding/layouts.h"

namespace sluice::device {
namespace {

std::mutex mutex;  // guards the list and the names of its members
Data* first = nullptr;

std::string what_of(const Data& data) {
  if (data.name != 0) return Names::name(data.name);
  if (data.made_by.row == nullptr) return "from the host";
  return base::str(
      "of ", data.made_by.row->name,
      data.made_by.layer != 0 ? base::str(" in layer ", Names::name(data.made_by.layer)) : std::string());
}

int64_t bytes_of(const Data& data) {
  return static_cast<int64_t>(data.type->type.bytes()) / (data.layout == nullptr ? 1 : data.layout->parts);
}

}  // namespace

void note_alive(std::span<Data* const> values) {
  std::scoped_lock lock(mutex);
  for (Data* const data : values) {
    if (data->alive) continue;
    data->alive = true;
    data->next_alive = first;
    if (first != nullptr) first->previous_alive = data;
    first = data;
  }
}

namespace {
std::atomic<uint64_t> last_serial = 0;
uint64_t new_serial() { return last_serial.fetch_add(1, std::memory_order_relaxed) + 1; }
}  // namespace

Data::Data() : serial(new_serial()), opening(opening_now()) {}

void Data::renew(const ValueFacts& facts, int64_t launch) {
  static_cast<ValueFacts&>(*this) = facts;
  serial = new_serial();
  name = 0;
  this->launch = launch;
  on_host.reset();
  with_host = false;
}

Data::~Data() {
  if (!alive) return;
  std::scoped_lock lock(mutex);
  (previous_alive != nullptr ? previous_alive->next_alive : first) = next_alive;
  if (next_alive != nullptr) next_alive->previous_alive = previous_alive;
}

AliveValues alive_values(size_t count) {
  TraceLock names = lock_trace();
  std::scoped_lock lock(mutex);
  AliveValues found;
  std::vector<const Data*> all;
  for (const Data* data = first; data != nullptr; data = data->next_alive) {
    all.push_back(data);
    found.bytes += bytes_of(*data);
  }
  found.count = static_cast<int64_t>(all.size());
  const auto more = [](const Data* a, const Data* b) { return bytes_of(*a) > bytes_of(*b); };
  count = std::min(count, all.size());
  std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count), all.end(), more);
  for (size_t i = 0; i < count; ++i) {
    found.largest.push_back({bytes_of(*all[i]), all[i]->type->type.str(), what_of(*all[i])});
  }
  return found;
}

}  // namespace sluice::device
