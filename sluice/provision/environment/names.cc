#include "sluice/provision/environment/names.h"

#include <algorithm>

#include "sluice/base/text/join.h"

namespace sluice::provision {
namespace {

std::string name(const std::string& environment, const std::string& role) {
  return base::str(kNamePrefix, environment, "-", role);
}

}  // namespace

const char* part_name(Part part) {
  switch (part) {
    case Part::kNetwork:
      return "network";
    case Part::kFirewall:
      return "firewall";
    case Part::kNfs:
      return "nfs";
    case Part::kDisk:
      return "disk";
    case Part::kPrepare:
      return "preparation";
    case Part::kMachine:
      return "machine";
    case Part::kBucket:
      return "bucket";
    case Part::kTpu:
      return "tpu";
  }
  return "?";
}

bool among(const std::vector<Part>& parts, Part part) {
  return std::find(parts.begin(), parts.end(), part) != parts.end();
}

base::Result<std::vector<Part>> parts_of_words(const std::vector<std::string>& words,
                                               const std::string& flag) {
  std::vector<Part> parts;
  for (const std::string& word : words) {
    if (word == "tpu") {
      parts.push_back(Part::kTpu);
    } else if (word == "machines") {
      parts.push_back(Part::kMachine);
    } else if (word == "disk") {
      parts.push_back(Part::kDisk);
      parts.push_back(Part::kPrepare);
    } else if (word == "nfs") {
      parts.push_back(Part::kNfs);
    } else if (word == "bucket") {
      parts.push_back(Part::kBucket);
    } else if (word == "network") {
      parts.push_back(Part::kNetwork);
      parts.push_back(Part::kFirewall);
    } else {
      return base::fail(Code::kInvalidArgument, flag, " ", word,
                        ": expected tpu, machines, disk, nfs, bucket or network, with commas between them");
    }
  }
  return parts;
}

std::string network_name(const std::string& environment) { return name(environment, "network"); }
std::string firewall_name(const std::string& environment, const std::string& rule) {
  return name(environment, rule);
}
std::string nfs_name(const std::string& environment) { return name(environment, "nfs"); }
std::string disk_name(const std::string& environment) { return name(environment, "disk"); }
std::string prepare_name(const std::string& environment) { return name(environment, "prepare"); }
std::string machine_name(const std::string& environment, int number) {
  return name(environment, base::str("machine-", number));
}
std::string tpu_name(const std::string& environment) { return name(environment, "tpu"); }
std::string network_tag(const std::string& environment) { return kNamePrefix + environment; }

std::string bucket_name(const Settings& settings) {
  if (settings.bucket && !settings.bucket->name.empty()) return settings.bucket->name;
  std::string whole = base::str(kNamePrefix, settings.project, "-", settings.name);
  for (char& letter : whole)
    if (letter == ':' || letter == '.')
      letter = '-';  // a domain's project has these; a bucket name with . belongs to a domain
  if (whole.size() <= 63) return whole;
  whole.resize(63);
  while (whole.back() == '-') whole.pop_back();
  return whole;
}

}  // namespace sluice::provision
