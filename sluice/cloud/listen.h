// Where a service of this program listens.
#pragma once

#include <string>
#include <utility>

#include "sluice/base/result.h"

namespace sluice::cloud {

// "9100" is that port of the loopback interface; "0.0.0.0:9100" and "[::]:9100" say another one.
struct ListenAddress {
  std::string host = "127.0.0.1";
  int port = 0;  // 0: one that is free
};
// `what` ("the status port") begins the message.
base::Result<ListenAddress> parse_listen_address(const std::string& text, const std::string& what);
// "127.0.0.1:9100", "[::]:9100"
std::string text_of(const ListenAddress& address);

// A socket that listens, closed at its end. Threads: one at a time, but for what the system allows with the
// descriptor.
class Listener {
 public:
  // kAlreadyExists: the port is in use. `what` begins the messages.
  static base::Result<Listener> open(const ListenAddress& address, const std::string& what);
  Listener(Listener&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)), address_(std::move(other.address_)) {}
  Listener& operator=(Listener&&) = delete;
  ~Listener();

  int descriptor() const { return descriptor_; }
  // With the port that was found, where any was asked for.
  const ListenAddress& address() const { return address_; }

 private:
  Listener(int descriptor, ListenAddress address) : descriptor_(descriptor), address_(std::move(address)) {}
  int descriptor_;
  ListenAddress address_;
};

}  // namespace sluice::cloud
