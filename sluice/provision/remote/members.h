// What gives host keys and takes users' keys: a node of the Cloud TPU API for all its workers, or each
// machine of a group of Compute Engine's for itself.
#pragma once

#include <string>
#include <vector>

#include "sluice/provision/remote/host_keys.h"
#include "sluice/provision/slices.h"

namespace sluice::provision {

struct Member {
  bool is_machine = false;
  std::string zone, name;
  std::string id;  // the number that the service gave it: another one when it was made again
  google::Texts metadata;
  std::string fingerprint;  // of a machine's metadata, by which the service knows what was read
  std::vector<google::Endpoint> endpoints;  // of its workers, in their order

  // The name under which ssh keeps the host keys of its worker of that number.
  std::string alias(int worker) const;
};

// In worker order.
std::vector<Member> members_of(const Slice& slice);

// As it is now.
google::Outcome<Member> look_again(Cloud& cloud, const Member& member);
// Replaces all of its metadata. kWrongState where somebody else has changed them since they were read.
google::Outcome<google::Operation> write_metadata(Cloud& cloud, const Member& member,
                                                  const google::Texts& metadata);
// The host keys that these of its workers have published, a list for each; empty: none yet.
google::Outcome<std::vector<std::vector<HostKey>>> published_keys(Cloud& cloud, const Member& member,
                                                                  const std::vector<std::string>& workers);

}  // namespace sluice::provision
