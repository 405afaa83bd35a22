#include "sluice/replica/transport/sockets.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <memory>
#include <sstream>

#include "sluice/base/clock.h"
#include "sluice/base/files/file.h"
#include "sluice/base/text/hostlist.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/number.h"
#include "sluice/base/text/strings.h"

namespace sluice::replica {
namespace {

constexpr int kQueue = 512;

sockaddr* plain(Endpoint& endpoint) { return reinterpret_cast<sockaddr*>(&endpoint.address); }
const sockaddr* plain(const Endpoint& endpoint) {
  return reinterpret_cast<const sockaddr*>(&endpoint.address);
}

Endpoint anywhere(int family, uint16_t port) {
  Endpoint endpoint;
  if (family == AF_INET6) {
    auto& address = reinterpret_cast<sockaddr_in6&>(endpoint.address);
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(port);
    endpoint.size = sizeof address;
  } else {
    auto& address = reinterpret_cast<sockaddr_in&>(endpoint.address);
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    endpoint.size = sizeof address;
  }
  return endpoint;
}

// Returns the form of /proc/net/tcp and tcp6: the words of the address in this machine's byte order, and the
// port. An IPv4 connection to an IPv6 socket is listed in tcp.
std::string in_table(const Endpoint& endpoint, bool& is_v6) {
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(endpoint.address);
  const auto& v4 = reinterpret_cast<const sockaddr_in&>(endpoint.address);
  uint32_t words[4];
  is_v6 = endpoint.address.ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr) == 0;
  if (endpoint.address.ss_family == AF_INET6)
    std::memcpy(words, &v6.sin6_addr, sizeof words);
  else
    words[3] = v4.sin_addr.s_addr;
  std::string text;
  char part[16];
  for (int i = is_v6 ? 0 : 3; i < 4; ++i) {
    std::snprintf(part, sizeof part, "%08X", words[i]);
    text += part;
  }
  // Both families have the port in the same place.
  std::snprintf(part, sizeof part, ":%04X", ntohs(v4.sin_port));
  return text + part;
}

// Returns whether the name means the machine itself on every machine.
bool means_this_machine(const std::string& host) {
  return host == "localhost" || host == "::1" || host == "[::1]" || host.rfind("127.", 0) == 0;
}

// `both`: an IPv6 socket accepts IPv4 connections too.
base::Result<Descriptor> listen_there(const Endpoint& endpoint, bool both) {
  Descriptor made(::socket(endpoint.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1, only_v6 = both ? 0 : 1;
  ::setsockopt(made.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (endpoint.address.ss_family == AF_INET6)
    ::setsockopt(made.number(), IPPROTO_IPV6, IPV6_V6ONLY, &only_v6, sizeof only_v6);
  if (::bind(made.number(), plain(endpoint), endpoint.size) == 0 && ::listen(made.number(), kQueue) == 0)
    return made;
  const int number = errno;
  const Code code = number == EADDRINUSE                                ? Code::kAlreadyExists
                    : number == EADDRNOTAVAIL || number == EAFNOSUPPORT ? Code::kNotFound
                                                                        : Code::kUnavailable;
  return base::fail(code, "cannot listen at ", text_of(endpoint), ": ", std::strerror(number));
}

// Waits until the socket can be read or written.
base::Status wait_for(int socket, short events, const Patience& patience) {
  while (true) {
    pollfd polled{socket, events, 0};
    const int ready = ::poll(&polled, 1, kPatienceMilliseconds);
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return base::fail_errno(errno, "wait for", "a connection");
    SLUICE_OK(patience());
  }
}

}  // namespace

Descriptor::~Descriptor() {
  if (number_ >= 0) ::close(number_);
}

std::string text_of(const Endpoint& endpoint) {
  char host[NI_MAXHOST], port[NI_MAXSERV];
  if (::getnameinfo(plain(endpoint), endpoint.size, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return "?";
  return base::host_and_port(host, std::atoi(port));
}

bool is_loopback(const Endpoint& endpoint) {
  if (endpoint.address.ss_family == AF_INET6)
    return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(endpoint.address).sin6_addr) != 0;
  return ntohl(reinterpret_cast<const sockaddr_in&>(endpoint.address).sin_addr.s_addr) >> 24 == 127;
}

Endpoint own_endpoint(int socket) {
  Endpoint found;
  found.size = sizeof found.address;
  if (::getsockname(socket, plain(found), &found.size) != 0) found.size = 0;
  return found;
}

Endpoint peer_endpoint(int socket) {
  Endpoint found;
  found.size = sizeof found.address;
  if (::getpeername(socket, plain(found), &found.size) != 0) found.size = 0;
  return found;
}

bool is_of_another_user(int socket) {
  constexpr size_t kLocal = 1, kRemote = 2, kUser = 7;
  bool is_v6 = false;
  const std::string theirs = in_table(peer_endpoint(socket), is_v6),
                    ours = in_table(own_endpoint(socket), is_v6);
  const auto table = base::read_file(is_v6 ? "/proc/net/tcp6" : "/proc/net/tcp");
  for (const std::string& line : base::split(table.value_or(""), '\n')) {
    if (line.find(theirs) == std::string::npos) continue;
    std::istringstream in(line);
    const std::vector<std::string> words{std::istream_iterator<std::string>(in), {}};
    if (words.size() <= kUser || words[kLocal] != theirs || words[kRemote] != ours) continue;
    const auto user = base::number_of<uid_t>(words[kUser]);
    return user && *user != ::geteuid() && *user != 0;
  }
  return false;
}

base::Result<std::vector<Endpoint>> resolve(const std::string& host, uint16_t port) {
  const bool brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
  const std::string name = brackets ? host.substr(1, host.size() - 2) : host;
  addrinfo hints{}, *raw = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  if (const int code = ::getaddrinfo(name.c_str(), std::to_string(port).c_str(), &hints, &raw); code != 0)
    return base::fail(Code::kNotFound, "the name ", name, " has no address: ", ::gai_strerror(code));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> list(raw, ::freeaddrinfo);
  std::vector<Endpoint> found;
  for (const addrinfo* each = list.get(); each != nullptr; each = each->ai_next) {
    Endpoint endpoint;
    endpoint.size = each->ai_addrlen;
    std::memcpy(&endpoint.address, each->ai_addr, each->ai_addrlen);
    found.push_back(endpoint);
  }
  return found;
}

base::Result<Listening> listen_at(const std::string& host, uint16_t port, bool one_machine) {
  Listening result;
  const auto endpoints = resolve(host, port);
  for (const Endpoint& endpoint : endpoints.value_or(std::vector<Endpoint>{})) {
    if (is_loopback(endpoint) && !one_machine && !means_this_machine(host)) continue;
    auto socket = listen_there(endpoint, false);
    if (socket)
      result.sockets.push_back(std::move(*socket));
    else if (socket.error().code() != Code::kNotFound)
      return tl::unexpected<Error>(socket.error());
  }
  if (!result.sockets.empty()) return result;
  if (means_this_machine(host)) return base::fail(Code::kUnavailable, "this machine has no address ", host);
  auto socket = listen_there(anywhere(AF_INET6, port), true);
  if (!socket && socket.error().code() == Code::kNotFound)
    socket = listen_there(anywhere(AF_INET, port), true);
  if (!socket) return tl::unexpected<Error>(socket.error());
  result.sockets.push_back(std::move(*socket));
  result.everywhere = true;
  return result;
}

Patience until(double monotonic_seconds) {
  return [monotonic_seconds]() -> base::Status {
    if (base::monotonic_seconds() < monotonic_seconds) return {};
    return base::fail(Code::kDeadlineExceeded, "it took too long");
  };
}

void set_options(int socket) {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

base::Result<Descriptor> connect_to(const std::vector<Endpoint>& endpoints, const Patience& patience) {
  std::string problem = "there is no address";
  for (const Endpoint& endpoint : endpoints) {
    Descriptor made(::socket(endpoint.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    int wrong = ::connect(made.number(), plain(endpoint), endpoint.size) == 0 ? 0 : errno;
    if (wrong == EINPROGRESS) {
      SLUICE_OK(wait_for(made.number(), POLLOUT, patience));
      socklen_t size = sizeof wrong;
      ::getsockopt(made.number(), SOL_SOCKET, SO_ERROR, &wrong, &size);
    }
    if (wrong == 0) {
      set_options(made.number());
      return made;
    }
    problem = base::str(text_of(endpoint), ": ", std::strerror(wrong));
  }
  return base::fail(Code::kUnavailable, problem);
}

base::Status send_all(int socket, std::string_view bytes, const Patience& patience) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
    } else if (errno == EAGAIN) {
      SLUICE_OK(wait_for(socket, POLLOUT, patience));
    } else if (errno != EINTR) {
      return base::fail(Code::kUnavailable, std::strerror(errno));
    }
  }
  return {};
}

base::Status receive(int socket, size_t count, std::string& received, const Patience& patience) {
  constexpr size_t kBlock = 64 << 10;  // memory grows with the bytes that arrive, not with an announced size
  while (count > 0) {
    const size_t before = received.size(), room = std::min(count, kBlock);
    received.resize(before + room);
    const ssize_t got = ::recv(socket, &received[before], room, MSG_DONTWAIT);
    const int number = errno;
    received.resize(before + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got == 0) return base::fail(Code::kUnavailable, "it was closed by the other end");
    if (got > 0) {
      count -= static_cast<size_t>(got);
    } else if (number == EAGAIN) {
      SLUICE_OK(wait_for(socket, POLLIN, patience));
    } else if (number != EINTR) {
      return base::fail(Code::kUnavailable, std::strerror(number));
    }
  }
  return {};
}

}  // namespace sluice::replica
