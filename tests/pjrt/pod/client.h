// What stands behind a PJRT_Client* and the objects that it makes.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tests/pjrt/pod/device.h"
#include "tests/pjrt/pod/event.h"
#include "tests/pjrt/pod/facts.h"
#include "tests/pjrt/pod/layout.h"
#include "tests/pjrt/pod/link.h"
#include "tests/pjrt/pod/memory.h"
#include "tests/pjrt/pod/pod.h"
#include "tests/pjrt/pod/settings.h"

namespace emulated_pod {

// A value on a device of this process. Threads: any.
class Buffer {
 public:
  // What it holds until it is deleted.
  struct Content {
    std::shared_ptr<Memory> memory;
    std::shared_ptr<Charge> charge;
    std::shared_ptr<Event> defined;
    uint64_t launch = 0;  // which gives it its value; 0: the host did
  };
  Buffer(const Device& device, Shape shape, Content content)
      : device_(device), shape_(std::move(shape)), content_(std::move(content)) {}

  const Device& device() const { return device_; }
  const Shape& shape() const { return shape_; }
  // kInvalidArgument once it is deleted or donated.
  Result<Content> content() const;
  bool deleted() const;
  // Deletes it: true when nobody reads its memory.
  bool remove();
  // Copies the value to the host once it is there; the event says when.
  Result<std::shared_ptr<Event>> read(void* destination) const;

 private:
  const Device& device_;
  const Shape shape_;
  mutable std::mutex mutex_;
  Content content_;
  bool deleted_ = false;
};

// A program as a worker knows it. The pod keeps it while this lives.
class Executable {
 public:
  Executable(std::shared_ptr<Link> link, Facts facts);
  ~Executable();
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  const Facts& facts() const { return facts_; }
  // kSerialize or kOptimized.
  Result<std::string> ask(Kind what) const { return link_->call(what, Writer().text(facts_.key).take()); }

  // The outputs and the cost in the form in which they are given out.
  std::vector<c::PJRT_Buffer_Type> output_types;
  std::vector<int64_t> output_dims;
  std::vector<size_t> output_ranks;
  std::vector<c::PJRT_NamedValue> cost;

 private:
  const std::shared_ptr<Link> link_;
  const Facts facts_;
};

class Client {
 public:
  static Result<std::unique_ptr<Client>> create(const c::PJRT_Client_Create_Args& args);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  const Settings& settings() const { return settings_; }
  const std::vector<Device*>& devices() const { return all_; }
  const std::vector<Device*>& local_devices() const { return local_; }
  // By the pod's own number.
  Device& device(int number) const { return *all_[static_cast<size_t>(number)]; }
  const Layout& layout() const { return layout_; }

  // A dense copy of the host's value.
  Result<std::unique_ptr<Buffer>> put(const void* data, Shape shape, const Device& device);
  // Asks the pod: kCompile or kLoad.
  Result<std::shared_ptr<Executable>> obtain(Kind how, const std::string& body);

 private:
  friend class Execution;
  explicit Client(Settings settings) : settings_(std::move(settings)) {}
  Status join();
  Result<File> reach_pod();

  const Settings settings_;
  std::unique_ptr<Pod> pod_;  // of worker 0
  std::shared_ptr<Link> link_;
  std::shared_ptr<Arena> arena_;
  Layout layout_;
  std::deque<Device> owned_;
  std::vector<Device*> all_, local_;
  std::mutex launching_;  // launches are sent in the order of their numbers
  uint64_t last_launch_ = 0;
};

// A PJRT_Executable*.
struct ExecutableHandle {
  std::shared_ptr<Executable> executable;
  std::string optimized;  // between the call that asks for its size and the one that takes it
};

// A PJRT_LoadedExecutable*.
struct Loaded {
  Client& client;
  std::shared_ptr<Executable> executable;
  std::vector<Device*> devices;  // this process's, in the order of the program's replicas
};

// Starts the program on this process's devices.
Status execute(const Loaded& loaded, const c::PJRT_LoadedExecutable_Execute_Args& args);

}  // namespace emulated_pod
