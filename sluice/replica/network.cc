#include "sluice/replica/network.h"

#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>

#include "sluice/base/text/hostlist.h"

namespace sluice::replica {

base::Result<std::string> address_towards(const std::string& coordinator) {
  SLUICE_TRY(const base::HostAndPort place, base::split_host_and_port(coordinator));
  const std::string port = std::to_string(place.port > 0 ? place.port : 1);
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;  // connecting a datagram socket only asks the routing table
  addrinfo* raw = nullptr;
  if (const int code = ::getaddrinfo(place.host.c_str(), port.c_str(), &hints, &raw); code != 0) {
    return base::fail(Code::kUnavailable, "the coordinator ", coordinator,
                      " cannot be resolved: ", ::gai_strerror(code));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> list(raw, ::freeaddrinfo);
  for (const addrinfo* way = list.get(); way != nullptr; way = way->ai_next) {
    const int socket = ::socket(way->ai_family, way->ai_socktype, way->ai_protocol);
    if (socket < 0) continue;
    sockaddr_storage mine{};
    socklen_t size = sizeof mine;
    auto* address = reinterpret_cast<sockaddr*>(&mine);
    char text[NI_MAXHOST];
    const bool found = ::connect(socket, way->ai_addr, way->ai_addrlen) == 0 &&
                       ::getsockname(socket, address, &size) == 0 &&
                       ::getnameinfo(address, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0;
    ::close(socket);
    if (found) return std::string(text);
  }
  return base::fail(Code::kUnavailable, "there is no way from this machine to the coordinator ", coordinator,
                    ": is the network up, and the address right?");
}

base::Result<std::string> address_of_interface(const std::string& interface) {
  ifaddrs* raw = nullptr;
  if (::getifaddrs(&raw) != 0) raw = nullptr;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> list(raw, ::freeifaddrs);
  for (const int family : {AF_INET, AF_INET6}) {
    for (const ifaddrs* each = list.get(); each != nullptr; each = each->ifa_next) {
      if (interface != each->ifa_name || each->ifa_addr == nullptr || each->ifa_addr->sa_family != family)
        continue;
      const socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
      char text[NI_MAXHOST];
      if (::getnameinfo(each->ifa_addr, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0)
        return std::string(text);
    }
  }
  return base::fail(Code::kNotFound, "GLOO_SOCKET_IFNAME is \"", interface,
                    "\", and this machine has no interface of that name with an address");
}

bool is_loopback(const std::string& address) { return address.rfind("127.", 0) == 0 || address == "::1"; }

}  // namespace sluice::replica
