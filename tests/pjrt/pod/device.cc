#include "tests/pjrt/pod/device.h"

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "sluice/base/text/strings.h"
#include "tests/pjrt/pod/layout.h"
#include "tests/pjrt/pod/settings.h"
#include "tests/pjrt/pod/slices.h"

namespace emulated_pod {
namespace {

// 3.42G, 661.94M, as TPU runtimes print them.
std::string size_text(int64_t bytes) {
  double value = static_cast<double>(bytes);
  const char* unit = "B";
  for (const char* larger : {"K", "M", "G", "T"}) {
    if (value < 1024) break;
    value /= 1024;
    unit = larger;
  }
  char text[32];
  std::snprintf(text, sizeof text, unit[0] == 'B' ? "%.0f%s" : "%.2f%s", value, unit);
  return text;
}

c::PJRT_NamedValue attribute(std::string_view name) {
  auto value = c::make<c::PJRT_NamedValue>();
  value.name = name.data();
  value.name_size = name.size();
  return value;
}

// The smallest width of a grid of about as many columns as rows.
int columns(int count) {
  int width = 1;
  while (width * width < count) ++width;
  return width;
}

// Hosts stand in a grid, the chips of each in a grid within it, two cores or one on each chip.
void place_on_tpu(Description& device, const Settings& settings, const Layout& layout, int local) {
  const int cores = settings.cores_per_chip(layout.count(device.worker));
  const int chips = layout.count(device.worker) / cores;
  const int workers = layout.workers() / settings.slices, worker = device.worker % workers;
  const int wide = columns(chips), high = (chips + wide - 1) / wide, hosts = columns(workers);
  const int chip = local / cores;
  device.on_tpu = true;
  device.coords[0] = worker % hosts * wide + chip % wide;
  device.coords[1] = worker / hosts * high + chip / wide;
  device.core_on_chip = local % cores;
}

}  // namespace

Status DeviceMemory::admit_value(int64_t bytes) const {
  std::lock_guard lock(mutex_);
  if (fits(bytes)) return {};
  return fail(Code::kResourceExhausted, "Out of memory allocating ", bytes, " bytes.");
}

Status DeviceMemory::admit_launch(int64_t outputs, int64_t temporary) {
  std::lock_guard lock(mutex_);
  const int64_t needed = outputs + temporary;
  if (fits(needed)) {
    peak_ = std::max(peak_, in_use_ + needed);
    return {};
  }
  if (!sluice::base::ends_with(name_, "HBM0"))
    return fail(Code::kResourceExhausted, "Out of memory while trying to allocate ", needed, " bytes.");
  return fail(Code::kResourceExhausted, "Error allocating device buffer: Attempting to allocate ",
              size_text(needed), ". That was not possible. There are ",
              size_text(std::max<int64_t>(limit_ - in_use_, 0)), " free.; (", name_, ")");
}

void DeviceMemory::count(int64_t bytes) {
  std::lock_guard lock(mutex_);
  in_use_ += bytes;
  peak_ = std::max(peak_, in_use_);
}

void DeviceMemory::report(c::PJRT_Device_MemoryStats_Args& args) const {
  std::lock_guard lock(mutex_);
  args.bytes_in_use = in_use_;
  args.peak_bytes_in_use = peak_;
  args.peak_bytes_in_use_is_set = true;
  args.bytes_limit = limit_;
  args.bytes_limit_is_set = limit_ > 0;
  args.largest_free_block_bytes = limit_ - in_use_;
  args.largest_free_block_bytes_is_set = limit_ > 0;
}

void Description::name_attributes() {
  if (!on_tpu) return;
  auto place = attribute("coords");
  place.type = c::kInt64List;
  place.int64_array_value = coords;
  place.value_size = 3;
  auto core = attribute("core_on_chip");
  core.type = c::kInt64;
  core.int64_value = core_on_chip;
  core.value_size = 1;
  attributes = {place, core};
  if (slice < 0) return;
  auto index = attribute("slice_index");
  index.type = c::kInt64;
  index.int64_value = slice;
  index.value_size = 1;
  attributes.push_back(index);
}

std::deque<Device> make_devices(const Settings& settings, const Layout& layout) {
  std::deque<Device> devices;
  for (int worker = 0; worker < layout.workers(); ++worker) {
    for (int local = 0; local < layout.count(worker); ++local) {
      Device& device = devices.emplace_back();
      device.description.id = outer_id(layout, settings.slices, layout.first(worker) + local);
      if (settings.slices > 1) device.description.slice = slice_of_worker(layout, settings.slices, worker);
      device.description.worker = worker;
      device.description.kind = settings.kind();
      if (settings.platform == "tpu") place_on_tpu(device.description, settings, layout, local);
      device.description.name_attributes();
      if (worker != settings.worker) continue;
      const int64_t* at = device.description.coords;
      const std::string name = device.description.on_tpu
                                   ? str(at[0], 'x', at[1], 'x', device.description.core_on_chip, "_HBM0")
                                   : str("GPU_", local, "_bfc");
      device.hardware_id = settings.hardware_ids.empty() ? local : settings.hardware_ids[local];
      device.memory = std::make_shared<DeviceMemory>(name, settings.memory);
    }
  }
  return devices;
}

}  // namespace emulated_pod
