// The address that a service of this program listens on.
#pragma once

#include <string>
#include <utility>

#include "sluice/base/result.h"

namespace sluice::cloud {

// "9100" is that port of the loopback interface; "0.0.0.0:9100" and "[::]:9100" name another one.
struct ListenAddress {
  std::string host = "127.0.0.1";
  int port = 0;  // 0: a free port
};
// Reads an address. `what` ("the status port") begins the message.
base::Result<ListenAddress> parse_listen_address(const std::string& text, const std::string& what);
// Returns "127.0.0.1:9100" or "[::]:9100".
std::string text_of(const ListenAddress& address);

// A listening socket, closed by the destructor. Threads: one at a time, except for what the system allows
// with the descriptor.
class Listener {
 public:
  // kAlreadyExists: the port is in use. `what` begins the messages.
  static base::Result<Listener> open(const ListenAddress& address, const std::string& what);
  Listener(Listener&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)), address_(std::move(other.address_)) {}
  Listener& operator=(Listener&&) = delete;
  ~Listener();

  int descriptor() const { return descriptor_; }
  // Returns the address; its port is the real one if 0 was requested.
  const ListenAddress& address() const { return address_; }

 private:
  Listener(int descriptor, ListenAddress address) : descriptor_(descriptor), address_(std::move(address)) {}
  int descriptor_;
  ListenAddress address_;
};

}  // namespace sluice::cloud
