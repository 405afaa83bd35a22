// The host keys of a slice's workers. A worker publishes its own as guest attributes, which reach us through
// Google's service; ssh then takes no other. No worker is ever connected to with a key that nobody vouches
// for.
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

// The name under which ssh keeps a worker's keys: a node that was made again has another id, so that its keys
// are new ones and no changed ones.
std::string host_key_alias(std::string_view node_id, int worker);

// The keys in the answer of :getGuestAttributes with queryPath "hostkeys/" (JSON): those of each entry, in
// their order. kDataLoss when it is not of that form.
base::Result<std::vector<std::vector<HostKey>>> parse_guest_attributes(const std::string& json);

// ssh's known-hosts text with lines added for an alias that it does not have; one that it has stays as it is,
// so that a worker that shows another key is refused.
bool knows_host(std::string_view known_hosts, std::string_view alias);
std::string with_host(std::string_view known_hosts, std::string_view alias, const std::vector<HostKey>& keys);

}  // namespace sluice::provision
