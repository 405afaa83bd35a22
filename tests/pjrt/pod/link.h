// A worker's connection to the pod.
#pragma once

#include <condition_variable>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <thread>

#include "sluice/base/queue.h"
#include "tests/pjrt/pod/wire.h"

namespace emulated_pod {

// Threads: any, once welcome() has returned.
class Link {
 public:
  explicit Link(File socket) : socket_(socket.fd()), channel_(std::move(socket)) {}
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  Status greet(int worker, int workers, int devices, const std::string& platform);
  // Waits until all workers have come: the devices of each.
  Result<std::vector<int>> welcome(double timeout);

  // Sends a request and waits for its reply.
  Result<std::string> call(Kind kind, const std::string& body);
  Status post(Kind kind, const std::string& body, int file = -1) { return channel_.send(kind, body, file); }
  // Sends the launch of that number; `done` runs when it is over, on a thread of its own, in any case.
  void launch(uint64_t number, const std::string& body, std::function<void(const Status&)> done);
  // Waits for all launches, then leaves the pod.
  void leave();

 private:
  using Done = std::function<void(const Status&)>;
  void receive();
  void reply(Reader in);
  void launched(Reader in);
  void lose();
  void finish(Done done, Status status);

  const int socket_;
  Channel channel_;
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t last_request_ = 0;
  std::map<uint64_t, std::promise<Result<std::string>>> calls_;
  std::map<uint64_t, Done> launches_;
  size_t unfinished_ = 0;  // launches whose `done` has not returned
  Status lost_;
  // What a callback does may take long, or call back: the receiving thread does not run it.
  sluice::base::Queue<std::function<void()>> finished_{size_t{1} << 30};
  std::thread receiving_, finishing_;
};

}  // namespace emulated_pod
