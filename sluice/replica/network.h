// The network that a process's collectives use. Internal to this room.
#pragma once

#include <string>

#include "sluice/base/result.h"

namespace sluice::replica {

// Returns the address of this machine on the way to host:port, as digits; sends nothing.
base::Result<std::string> address_towards(const std::string& coordinator);
// Returns the address of an interface, "eth0", as digits: IPv4 if it has both.
base::Result<std::string> address_of_interface(const std::string& interface);
bool is_loopback(const std::string& address);

}  // namespace sluice::replica
