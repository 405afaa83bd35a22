// Connections between processes that have the run's key. Internal to this room.
#pragma once

#include <string>

#include "sluice/replica/run_key.h"
#include "sluice/replica/transport/sockets.h"

namespace sluice::replica {

// Returns the first connection whose other end proves that it has the key for this purpose (run_key.h).
// Others are closed: at most 64 at a time may try, each for five seconds, and the oldest makes room for the
// next.
base::Result<Descriptor> accept_known(int listener, const std::string& key, const std::string& purpose,
                                      const Patience& patience);
// Carries out the client's part of the handshake on an open connection: kPermissionDenied if the listener
// does not have the key, kUnavailable if it is another program.
base::Status shake_hands(int socket, Handshake& handshake, const Patience& patience);
// Connects, and carries out the client's part of the handshake.
base::Result<Descriptor> connect_known(const std::vector<Endpoint>& endpoints, const std::string& key,
                                       const std::string& purpose, const Patience& patience);

}  // namespace sluice::replica
