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

// A file descriptor, closed by the destructor.
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
// Return the addresses of the socket's own end and of its other end.
Endpoint own_endpoint(int socket);
Endpoint peer_endpoint(int socket);

// Returns whether a connection comes from a process of this machine that belongs to another user (not root).
// False for other machines, whose users are unknown here.
bool is_of_another_user(int socket);

// Returns every address of a host, which may be a name, "10.0.0.2", "fd00::2" or "[fd00::2]".
base::Result<std::vector<Endpoint>> resolve(const std::string& host, uint16_t port);

// Sockets that listen at each address of `host` ("localhost" may have two), and at no other address of this
// machine. If none of them belongs to this machine (it is behind a translated address), or if a name means
// the machine itself although processes of other machines are to come (`one_machine` is false), they listen
// at all addresses.
struct Listening {
  std::vector<Descriptor> sockets;
  bool everywhere = false;
};
base::Result<Listening> listen_at(const std::string& host, uint16_t port, bool one_machine);

// A callback that a waiting call runs ten times a second; an error ends the wait.
constexpr int kPatienceMilliseconds = 100;
using Patience = std::function<base::Status()>;
// Returns a Patience that fails from this monotonic time on.
Patience until(double monotonic_seconds);

// Connects to one of the endpoints, without a delay for small messages.
base::Result<Descriptor> connect_to(const std::vector<Endpoint>& endpoints, const Patience& patience);
// Sets the options that both ends need.
void set_options(int socket);
base::Status send_all(int socket, std::string_view bytes, const Patience& patience);
// Receives `count` bytes and appends them.
base::Status receive(int socket, size_t count, std::string& received, const Patience& patience);

}  // namespace sluice::replica
