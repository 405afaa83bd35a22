// The bodies of the requests that make an environment, and the scripts in them.
#pragma once

#include <string>
#include <vector>

#include "sluice/provision/environment/plan.h"

namespace sluice::provision {

// Identity-Aware Proxy's range: by default nobody else reaches port 22.
inline constexpr const char* kProxyRange = "35.235.240.0/20";
// Of the subnetworks that a network in automatic mode has.
inline constexpr const char* kAutomaticRange = "10.128.0.0/9";
// What the preparing machine writes when its script has ended: the exit status, and the last lines.
inline constexpr const char* kStatusAttribute = "sluice/status";
inline constexpr const char* kTailAttribute = "sluice/tail";
// The same on its serial port, where guest attributes are forbidden: this and the exit status.
inline constexpr const char* kStatusLine = "sluice-prepare: exit status ";

google::Json network_body(const Settings& settings, const Mark& mark);
// `rule`: "ssh" or "internal". Whom it lets in, in order.
std::vector<std::string> firewall_ranges(const Settings& settings, const std::string& rule);
google::Json firewall_body(const Settings& settings, const Mark& mark, const std::string& rule);
google::Json nfs_body(const Settings& settings, const Mark& mark);
// The share itself, with who may mount it: all of it, as a change replaces the whole.
google::Json file_shares(const Settings& settings, double size_gb);
// Who may mount the share; none: all machines of an existing network.
std::vector<std::string> nfs_clients(const Settings& settings);
google::Json disk_body(const Settings& settings, const Mark& mark);
google::Json prepare_body(const Settings& settings, const Mark& mark);
// `share_address`: of the NFS share; "" without one. `now`: seconds since 1970, for what is left to live.
google::Json machine_body(const Settings& settings, const Mark& mark, const std::string& name,
                          const std::string& share_address, double now);
google::Json bucket_body(const Settings& settings, const Mark& mark);
SliceWish tpu_wish(const Settings& settings, const Mark& mark, const std::string& share_address, double now);

// What a host runs when it starts: mounts share and disk, then runs what its metadata has as sluice-setup.
std::string start_script(const Settings& settings, const std::string& share_address,
                         const Variables& variables);
std::string prepare_script(const Settings& settings);

}  // namespace sluice::provision
