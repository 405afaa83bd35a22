// TCP connections between the processes of a run. Internal to this room.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::replica {

// A file descriptor, closed at its end.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor();
  int number() const { return number_; }

 private:
  int number_;
};

// An address with its port.
struct Endpoint {
  sockaddr_storage address{};
  socklen_t size = 0;
};
std::string text_of(const Endpoint& endpoint);  // "10.0.0.2:8476"
bool is_loopback(const Endpoint& endpoint);
// Where a socket is bound, and where its other end is.
Endpoint own_endpoint(int socket);
Endpoint peer_endpoint(int socket);

// Whether a connection comes from a process of this machine that belongs to another user (not root). False
// for other machines, whose users nobody here knows.
bool is_of_another_user(int socket);

// Every address of a host, which may be a name, "10.0.0.2", "fd00::2" or "[fd00::2]".
base::Result<std::vector<Endpoint>> resolve(const std::string& host, uint16_t port);

// Sockets that listen at `host`, and at no other address of this machine: at each of its addresses, as
// "localhost" may have two. Where none of them is this machine's (one behind a translated address), or where
// a name means the machine itself although others are to come (`one_machine` is false), at all addresses.
struct Listening {
  std::vector<Descriptor> sockets;
  bool everywhere = false;
};
base::Result<Listening> listen_at(const std::string& host, uint16_t port, bool one_machine);

// What a call that waits asks ten times a second; an error ends the wait.
constexpr int kPatienceMilliseconds = 100;
using Patience = std::function<base::Status()>;
// An error after so many seconds.
Patience until(double monotonic_seconds);

// A connection to one of the endpoints, without a delay for small messages.
base::Result<Descriptor> connect_to(const std::vector<Endpoint>& endpoints, const Patience& patience);
// What both ends set for a connection.
void set_options(int socket);
base::Status send_all(int socket, std::string_view bytes, const Patience& patience);
// Appends so many bytes.
base::Status receive(int socket, size_t count, std::string& received, const Patience& patience);

}  // namespace sluice::replica
