#include "sluice/replica/meeting.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <random>
#include <stdexcept>
#include <thread>
#include <utility>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "sluice/base/clock.h"
#include "sluice/base/strings.h"

namespace sluice::replica {
namespace meeting_detail {

using Store = c10::intrusive_ptr<c10d::Store>;
constexpr const char* kKey = "meeting";  // its value names the latest one

c10::intrusive_ptr<c10d::TCPStore> open(const std::string& host, uint16_t port, bool server,
                                        std::chrono::milliseconds timeout) {
  c10d::TCPStoreOptions options;
  options.port = port;
  options.isServer = server;
  options.waitWorkers = false;
  options.timeout = timeout;
  return c10::make_intrusive<c10d::TCPStore>(host, options);
}

struct Server {
  c10::intrusive_ptr<c10d::TCPStore> store;
  uint64_t id = 0;  // another program's at this address has another one
  int meetings = 0;
};

struct State {
  std::mutex mutex;
  std::map<uint16_t, Server> servers;                          // [port]
  std::map<std::pair<std::string, int>, std::string> been_to;  // [address, process]: the latest one
};
// Its servers answer until the program is gone.
State& state() {
  static auto* all = new State();
  return *all;
}

// Waits until there is one.
std::string latest(c10d::Store& store) {
  const std::vector<uint8_t> value = store.get(kKey);
  return {value.begin(), value.end()};
}

Store named(const Store& store, const std::string& name) {
  return c10::make_intrusive<c10d::PrefixStore>(name, store);
}

Store begin(const std::string& host, uint16_t port, std::chrono::seconds timeout) {
  std::scoped_lock lock(state().mutex);
  auto found = state().servers.find(port);
  if (found == state().servers.end()) {
    std::random_device random;
    Server server{open(host, port, /*server=*/true, timeout), uint64_t{random()} << 32 | random()};
    found = state().servers.emplace(port, std::move(server)).first;
  }
  const std::string name = base::str(found->second.id, " ", ++found->second.meetings);
  found->second.store->set(kKey, std::vector<uint8_t>(name.begin(), name.end()));
  return named(found->second.store, name);
}

Store come_to(const std::string& host, uint16_t port, int process, std::chrono::seconds timeout) {
  const double deadline = base::monotonic_seconds() + std::chrono::duration<double>(timeout).count();
  const std::pair address(base::str(host, ":", port), process);
  const std::string before = [&] {
    std::scoped_lock lock(state().mutex);
    return state().been_to[address];
  }();
  while (true) {
    try {
      const double left = std::max(deadline - base::monotonic_seconds(), 0.001);
      const auto store =
          open(host, port, /*server=*/false, std::chrono::milliseconds(static_cast<int64_t>(1000 * left)));
      std::string name = latest(*store);
      for (; name == before; name = latest(*store)) {
        if (base::monotonic_seconds() > deadline)
          throw std::runtime_error("process 0 is where it was, and has not come to meet again");
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
      store->setTimeout(timeout);
      std::scoped_lock lock(state().mutex);
      state().been_to[address] = name;
      return named(store, name);
    } catch (const std::exception&) {
      // The program that kept the store may have ended, and its successor be about to begin.
      if (before.empty() || base::monotonic_seconds() > deadline) throw;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }
}

}  // namespace meeting_detail

c10::intrusive_ptr<c10d::Store> meet(const std::string& host, uint16_t port, int process,
                                     std::chrono::seconds timeout) {
  return process == 0 ? meeting_detail::begin(host, port, timeout)
                      : meeting_detail::come_to(host, port, process, timeout);
}

}  // namespace sluice::replica
