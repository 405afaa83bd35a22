// Connections of processes that have the run's key. Internal to this room.
#pragma once

#include <string>

#include "sluice/replica/run_key.h"
#include "sluice/replica/sockets.h"

namespace sluice::replica {

// The first connection whose other end shows that it has the key for this purpose (run_key.h). Others are
// closed: at most 64 at a time may try, each for five seconds, and the oldest makes room for the next.
base::Result<Descriptor> accept_known(int listener, const std::string& key, const std::string& purpose,
                                      const Patience& patience);
// The other end, on a connection that is made: kPermissionDenied when who listens there does not have the
// key, kUnavailable when it is another program.
base::Status shake_hands(int socket, Handshake& handshake, const Patience& patience);
// Connects, and asks for the same.
base::Result<Descriptor> connect_known(const std::vector<Endpoint>& endpoints, const std::string& key,
                                       const std::string& purpose, const Patience& patience);

}  // namespace sluice::replica
