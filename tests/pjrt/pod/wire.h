// What the processes of a pod say to each other: messages over Unix sockets, with open files beside them.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/base/result.h"

namespace emulated_pod {

using sluice::Code;
using sluice::Error;
using sluice::base::fail;
using sluice::base::Result;
using sluice::base::Status;
using sluice::base::str;

// Builds the body of a message.
class Writer {
 public:
  Writer& number(uint64_t value);
  Writer& text(std::string_view value);
  Writer& status(const Status& value);
  template <typename Number>
  Writer& numbers(const std::vector<Number>& values) {
    number(values.size());
    for (const Number value : values) number(static_cast<uint64_t>(value));
    return *this;
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Reads it again, in the same order. Beyond the end everything is 0 or empty, and broken() says so.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  uint64_t number();
  std::string_view text();
  Status status();
  template <typename Number>
  std::vector<Number> numbers() {
    std::vector<Number> values;
    for (uint64_t count = number(); count > 0 && !broken_; --count)
      values.push_back(static_cast<Number>(number()));
    return values;
  }
  std::string_view rest() const { return rest_; }
  bool broken() const { return broken_; }

 private:
  std::string_view rest_;
  bool broken_ = false;
};

// A file descriptor, closed at the end.
class File {
 public:
  File() = default;
  explicit File(int fd) : fd_(fd) {}
  File(File&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  File& operator=(File&& other) noexcept;
  ~File();
  int fd() const { return fd_; }
  bool open() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

enum class Kind : uint32_t {
  kHello,      // worker to pod: index, count, devices, platform
  kWelcome,    // pod to worker: status, devices of each worker
  kChunk,      // id, size, and the file: memory of the worker
  kDropChunk,  // id: nothing uses it any more
  kCompile,    // request, text, options
  kLoad,       // request, what kSerialize gave
  kSerialize,  // request, program
  kOptimized,  // request, program
  kReply,      // request, status, and the facts or the bytes
  kRelease,    // program
  kLaunch,     // see launch.h
  kLaunched,   // number, status
  kBye,        // the worker leaves of its own will
};

struct Message {
  Kind kind = Kind::kBye;
  std::string body;
  File file;
};

// A connected stream socket. Threads: send() and close() from any, receive() from one.
class Channel {
 public:
  explicit Channel(File socket) : socket_(std::move(socket)) {}
  Status send(Kind kind, std::string_view body, int file = -1);
  // Waits for the next message; kUnavailable when the other side is gone or close() was called.
  Result<Message> receive();
  // Ends both directions: a waiting receive() returns.
  void close();

 private:
  File socket_;
  std::mutex sending_;
};

// Two sockets that are connected with each other.
Result<std::pair<File, File>> connected_sockets();
// The listening socket at the path. A socket that a process left behind is replaced; one that a process still
// listens on is kAlreadyExists.
Result<File> listen_at(const std::string& path);
// A connection to whoever listens there; kUnavailable when nobody does.
Result<File> connect_to(const std::string& path);
// The next connection to a listening socket; an error once stop_listening() was called on it.
Result<File> accept_from(const File& listening);
void stop_listening(const File& listening);

}  // namespace emulated_pod
