// The bodies of the requests that create an environment, and the scripts in them.
#pragma once

#include <string>
#include <vector>

#include "sluice/provision/environment/plan.h"

namespace sluice::provision {

// The range of Identity-Aware Proxy: by default only this range reaches port 22.
inline constexpr const char* kProxyRange = "35.235.240.0/20";
// The range of the subnetworks that a network in automatic mode has.
inline constexpr const char* kAutomaticRange = "10.128.0.0/9";
// The guest attributes that the preparing machine writes after its script: exit status and last lines.
inline constexpr const char* kStatusAttribute = "sluice/status";
inline constexpr const char* kTailAttribute = "sluice/tail";
// The text before the exit status on its serial port, for projects that forbid guest attributes.
inline constexpr const char* kStatusLine = "sluice-prepare: exit status ";

google::Json network_body(const Settings& settings, const Mark& mark);
// Returns the ranges that a rule lets in, in order. `rule`: "ssh" or "internal".
std::vector<std::string> firewall_ranges(const Settings& settings, const std::string& rule);
google::Json firewall_body(const Settings& settings, const Mark& mark, const std::string& rule);
google::Json nfs_body(const Settings& settings, const Mark& mark);
// Returns the share with the clients that may mount it: complete, as a change replaces the whole.
google::Json file_shares(const Settings& settings, double size_gb);
// Returns the ranges that may mount the share; empty: all machines of an existing network.
std::vector<std::string> nfs_clients(const Settings& settings);
google::Json disk_body(const Settings& settings, const Mark& mark);
google::Json prepare_body(const Settings& settings, const Mark& mark);
// `share_address`: the address of the NFS share; "" without one. `now`: seconds since 1970, for the time left
// to live.
google::Json machine_body(const Settings& settings, const Mark& mark, const std::string& name,
                          const std::string& share_address, double now);
google::Json bucket_body(const Settings& settings, const Mark& mark);
SliceWish tpu_wish(const Settings& settings, const Mark& mark, const std::string& share_address, double now);

// Returns the script that a host runs when it starts: it mounts share and disk, then runs the metadata entry
// sluice-setup.
std::string start_script(const Settings& settings, const std::string& share_address,
                         const Variables& variables);
std::string prepare_script(const Settings& settings);

}  // namespace sluice::provision
