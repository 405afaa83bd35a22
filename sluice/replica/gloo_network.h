// Which network a process's collectives use. Internal to this room.
#pragma once

#include <string>

#include "sluice/base/result.h"

namespace sluice::replica {

// The address of this machine on the way to host:port, as digits; nothing is sent.
base::Result<std::string> address_towards(const std::string& coordinator);
bool is_loopback(const std::string& address);

}  // namespace sluice::replica
