// The host keys of a slice's workers. A worker publishes its keys as guest attributes, which Google's service
// passes on; ssh then accepts no other. No connection is made to a worker whose key nobody vouches for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::provision {

struct HostKey {
  std::string type, blob;  // "ssh-ed25519", "AAAA…"
  friend bool operator==(const HostKey&, const HostKey&) = default;
};

// Returns the name under which ssh keeps a worker's keys: a re-created node has another id, so that its keys
// are new, not changed.
std::string host_key_alias(std::string_view node_id, int worker);

// Returns the keys in the answer of :getGuestAttributes with queryPath "hostkeys/" (JSON): one list for each
// entry, in their order. kDataLoss if the answer has another form.
base::Result<std::vector<std::vector<HostKey>>> parse_guest_attributes(const std::string& json);

// Adds lines for an alias to ssh's known-hosts text. An alias that is already there stays as it is, so that a
// worker that shows another key is refused.
bool knows_host(std::string_view known_hosts, std::string_view alias);
std::string with_host(std::string_view known_hosts, std::string_view alias, const std::vector<HostKey>& keys);

}  // namespace sluice::provision
