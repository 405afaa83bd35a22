// The file of an environment: the wanted resources, as TOML (docs/environments.md has all keys).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/provision/slices.h"

namespace sluice::provision {

// A script of the user: its path as in the file, and its content.
struct Script {
  std::string path, text;
};
// The file may come from anywhere, and the content of its scripts is sent. So a script must be in the file's
// folder and not in a hidden part of it, or the user must name it.
struct ScriptRules {
  bool read = true;                  // false: scripts have only a path, and nothing is sent
  std::vector<std::string> allowed;  // by --allow-script
};
using Variables = std::map<std::string, std::string>;

struct TpuSettings {
  std::string type;     // "v3-32"
  std::string runtime;  // "": the generation's
  Capacity capacity = Capacity::kOnDemand;
  std::string reservation;   // for kReservation
  double flex_duration = 0;  // for kFlexStart, seconds
  double wait = 0;           // seconds to queue and search for capacity; 0: one look at each zone
  int slices = 1;
  std::optional<Script> setup;  // runs on every worker host when it starts
  Variables variables;          // for the script
};

struct MachineSettings {
  std::string type = "n1-standard-16";
  int count = 0;  // with "auto" it is computed: one for each host of the slices (cores / 8 of v2 to v5p)
  bool automatic = true;
  std::string image = "projects/ubuntu-os-cloud/global/images/family/ubuntu-2204-lts";
  double boot_disk_gb = 110;
  bool spot = false;
  std::optional<Script> setup;
  Variables variables;
};

struct NfsSettings {
  std::string tier = "BASIC_HDD", share = "share", mount = "/mnt/nfs";
  double size_gb = 1024;
  std::vector<std::string> clients;    // ranges that may mount it; empty: the environment's own network
  std::vector<std::string> root_from;  // where root stays root; empty: on all clients
};

struct DiskSettings {
  std::string type;  // "": pd-balanced; for v6e and tpu7x hyperdisk-ml
  double size_gb = 0;
  std::string mount = "/mnt/data";
  std::string snapshot;          // a disk made from it needs no script
  std::optional<Script> script;  // fills the disk, which is mounted for writing
  Variables variables;
  std::string machine = "n1-standard-16";  // runs the script; with Hyperdisk c3-standard-8
  std::string image = "projects/ubuntu-os-cloud/global/images/family/ubuntu-2204-lts";
  double timeout = 86400;  // seconds that the script may take
};

struct BucketSettings {
  std::string name;           // "": sluice-PROJECT-ENVIRONMENT
  std::string location;       // "": the region of the first zone
  std::string storage_class;  // "": STANDARD
};

struct Settings {
  std::string path;
  std::string name, project;
  std::vector<std::string> zones;  // the first is the zone of disks, share and machines
  std::string network;             // an existing one; "": the environment has its own
  std::string owner;
  std::string ttl;  // as written; "": none
  double max_cost = 0;
  double idle = 0;                    // seconds
  std::vector<std::string> ssh_from;  // ranges that may reach port 22 besides IAP's
  std::string service_account;        // the account of machines and TPU; "": the project's default
  std::vector<std::string> scopes = {kCloudPlatform};  // scopes of its tokens on the machines, as URLs
  std::optional<TpuSettings> tpu;
  std::optional<MachineSettings> machines;
  std::optional<NfsSettings> nfs;
  std::optional<DiskSettings> disk;
  std::optional<BucketSettings> bucket;
  Variables tasks;  // "install", "test", "update", "run", "resume": command lines

  std::string zone() const { return zones.empty() ? "" : zones.front(); }
};

// kInvalidArgument with path and line if the text is not TOML, for an unknown key (names the nearest one),
// for a value that is not valid, and for a script that may not or cannot be read. `folder`: scripts are
// relative to it.
base::Result<Settings> settings_of(const std::string& toml, const std::string& path,
                                   const std::string& folder, const ScriptRules& rules = {});
// The file in the current folder that verbs read if none is named.
inline constexpr char kSettingsFile[] = "sluice-env.toml";
base::Result<Settings> read_settings(const std::string& path, const ScriptRules& rules = {});

// Returns the type of the disk, or its default if the file names no type.
std::string disk_type(const Settings& settings);

// Returns a file to start from, with a comment for each key.
std::string settings_template(const std::string& name, const std::string& project, const std::string& zone,
                              const std::string& type);

}  // namespace sluice::provision
