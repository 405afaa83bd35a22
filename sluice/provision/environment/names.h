// Names of an environment's resources, from its name and their role: the same each time, so that existing
// resources are found again without a state file.
#pragma once

#include <string>
#include <vector>

#include "sluice/provision/environment/settings.h"

namespace sluice::provision {

// The longest name of a role then still has at most 63 characters.
inline constexpr int kLongestEnvironmentName = 40;

// The parts of an environment, in the order in which they are created.
enum class Part { kNetwork, kFirewall, kNfs, kDisk, kPrepare, kMachine, kBucket, kTpu };
inline constexpr Part kParts[] = {Part::kNetwork, Part::kFirewall, Part::kNfs,    Part::kDisk,
                                  Part::kPrepare, Part::kMachine,  Part::kBucket, Part::kTpu};
// Returns "network", "firewall", "nfs", "disk", "preparation", "machine", "bucket" or "tpu".
const char* part_name(Part part);
// Returns the parts for the words of --only or --keep: tpu, machines, disk, nfs, bucket, network.
base::Result<std::vector<Part>> parts_of_words(const std::vector<std::string>& words,
                                               const std::string& flag);
bool among(const std::vector<Part>& parts, Part part);

std::string network_name(const std::string& environment);
std::string firewall_name(const std::string& environment, const std::string& rule);  // "ssh", "internal"
std::string nfs_name(const std::string& environment);
std::string disk_name(const std::string& environment);
std::string prepare_name(const std::string& environment);
std::string machine_name(const std::string& environment, int number);
std::string tpu_name(const std::string& environment);
std::string bucket_name(const Settings& settings);
// The network tag of the environment's machines and TPU hosts.
std::string network_tag(const std::string& environment);

}  // namespace sluice::provision
