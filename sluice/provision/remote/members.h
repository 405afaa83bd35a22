// The members of a slice, which publish host keys and hold users' keys: a node of the Cloud TPU API for all
// its workers, or each Compute Engine machine of a group for itself.
#pragma once

#include <string>
#include <vector>

#include "sluice/provision/remote/host_keys.h"
#include "sluice/provision/slices.h"

namespace sluice::provision {

struct Member {
  bool is_machine = false;
  std::string zone, name;
  std::string id;  // the number that the service assigned: another one after it was re-created
  google::Texts metadata;
  std::string fingerprint;  // of a machine's metadata: tells the service which version was read
  std::vector<google::Endpoint> endpoints;  // of its workers, in order

  // Returns the name under which ssh keeps the host keys of this worker.
  std::string alias(int worker) const;
};

// Returns the members in worker order.
std::vector<Member> members_of(const Slice& slice);

// Returns the member as it is now.
google::Outcome<Member> look_again(Cloud& cloud, const Member& member);
// Replaces all of its metadata. kWrongState if somebody else has changed them since they were read.
google::Outcome<google::Operation> write_metadata(Cloud& cloud, const Member& member,
                                                  const google::Texts& metadata);
// Returns a list of published host keys for each of these workers; empty: none yet.
google::Outcome<std::vector<std::vector<HostKey>>> published_keys(Cloud& cloud, const Member& member,
                                                                  const std::vector<std::string>& workers);

}  // namespace sluice::provision
