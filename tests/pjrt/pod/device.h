// The devices of the pod as a worker sees them.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "sluice/pjrt/c_api.h"
#include "tests/pjrt/pod/wire.h"

namespace emulated_pod {

namespace c = sluice::pjrt::c;

// What is allocated on one device. A launch counts as done when it is sent, as on a device that frees and
// allocates in the order of its stream. Threads: any.
class DeviceMemory {
 public:
  // A limit of 0 is none.
  DeviceMemory(std::string name, int64_t limit) : name_(std::move(name)), limit_(limit) {}

  // Whether a value fits; kResourceExhausted in XLA's words.
  Status admit_value(int64_t bytes) const;
  // Whether a launch's outputs (without those in memory that is taken over) and temporaries fit; said as the
  // runtimes of TPUs or GPUs say it.
  Status admit_launch(int64_t outputs, int64_t temporary);
  // Bytes that come, or go.
  void count(int64_t bytes);

  void report(c::PJRT_Device_MemoryStats_Args& args) const;

 private:
  bool fits(int64_t bytes) const { return limit_ == 0 || bytes <= limit_ - in_use_; }

  const std::string name_;
  const int64_t limit_;
  mutable std::mutex mutex_;
  int64_t in_use_ = 0, peak_ = 0;
};

// Bytes that count on a device while this lives.
class Charge {
 public:
  Charge(std::shared_ptr<DeviceMemory> memory, size_t bytes)
      : memory_(std::move(memory)), bytes_(static_cast<int64_t>(bytes)) {
    memory_->count(bytes_);
  }
  ~Charge() { memory_->count(-bytes_); }
  Charge(const Charge&) = delete;
  Charge& operator=(const Charge&) = delete;

 private:
  const std::shared_ptr<DeviceMemory> memory_;
  const int64_t bytes_;
};

// What a device's description says: the attributes have the names that TPU plugins give them.
struct Description {
  int id = 0, worker = 0;
  std::string kind;
  bool on_tpu = false;
  int64_t coords[3] = {};
  int64_t core_on_chip = 0;
  int64_t slice = -1;  // of several; else -1
  std::vector<c::PJRT_NamedValue> attributes;

  void name_attributes();
};

struct Device {
  Description description;
  int hardware_id = -1;                  // within its host; -1: of another worker
  std::shared_ptr<DeviceMemory> memory;  // null: of another worker
  bool addressable() const { return memory != nullptr; }
  int id() const { return description.id; }
};

struct Settings;
class Layout;
// All devices of the pod, by number.
std::deque<Device> make_devices(const Settings& settings, const Layout& layout);

}  // namespace emulated_pod
