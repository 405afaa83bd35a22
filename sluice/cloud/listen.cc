#include "sluice/cloud/listen.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>

#include "sluice/base/text/join.h"
#include "sluice/base/text/number.h"
#include "sluice/base/text/strings.h"

namespace sluice::cloud {

base::Result<ListenAddress> parse_listen_address(const std::string& text, const std::string& what) {
  ListenAddress address;
  const size_t colon = text.rfind(':');
  const auto port =
      base::number_of<uint16_t>(std::string_view(text).substr(colon == std::string::npos ? 0 : colon + 1));
  if (colon != std::string::npos) address.host = text.substr(0, colon);
  if (base::starts_with(address.host, "[") && base::ends_with(address.host, "]"))
    address.host = address.host.substr(1, address.host.size() - 2);
  if (!port || address.host.empty())
    return base::fail(Code::kInvalidArgument, what,
                      ": expected a port up to 65535, such as 9100, or an address and a port, 0.0.0.0:9100; "
                      "found \"",
                      text, "\"");
  address.port = *port;
  return address;
}

std::string text_of(const ListenAddress& address) {
  const bool is_v6 = address.host.find(':') != std::string::npos;
  return base::str(is_v6 ? "[" : "", address.host, is_v6 ? "]:" : ":", address.port);
}

base::Result<Listener> Listener::open(const ListenAddress& address, const std::string& what) {
  const std::string shown = base::str(address.host, " port ", address.port);
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  const int problem =
      ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (problem != 0)
    return base::fail(Code::kInvalidArgument, what, ": cannot listen at ", shown, ": ",
                      ::gai_strerror(problem), "; give an address of this machine");
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> list(found, ::freeaddrinfo);
  Listener listener(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0), address);
  const int on = 1;
  ::setsockopt(listener.descriptor_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(listener.descriptor_, found->ai_addr, found->ai_addrlen) != 0 ||
      ::listen(listener.descriptor_, 8) != 0) {
    const int number = errno;
    return base::fail(number == EADDRINUSE ? Code::kAlreadyExists : Code::kUnavailable, what,
                      ": cannot listen at ", shown, ": ", std::strerror(number),
                      number == EADDRINUSE ? "; choose another port, or 0 for one that is free" : "");
  }
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  ::getsockname(listener.descriptor_, reinterpret_cast<sockaddr*>(&own), &size);
  listener.address_.port =
      ntohs(own.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(own).sin6_port
                                      : reinterpret_cast<const sockaddr_in&>(own).sin_port);
  return listener;
}

Listener::~Listener() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace sluice::cloud
