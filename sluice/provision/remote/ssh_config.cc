#include "sluice/provision/remote/ssh_config.h"

#include "sluice/base/strings.h"
#include "sluice/provision/remote/host_keys.h"

namespace sluice::provision {

std::string host_name(const std::string& node, int worker) { return base::str(node, "-w-", worker); }

std::string ssh_config(const std::vector<SshSettings>& nodes) {
  const SshSettings& all = nodes.front();
  std::string text = base::str("# Written by sluice for the TPU ", all.node, ".\n");
  for (const SshSettings& node : nodes) {
    for (size_t i = 0; i < node.workers.size(); ++i) {
      const int worker = static_cast<int>(i);
      text +=
          base::str("Host ", host_name(node.node, node.first + worker), "\n  HostName ",
                    node.workers[i].connect, "\n  HostKeyAlias ", host_key_alias(node.node_id, worker), '\n');
    }
  }
  text += base::str("Host ", all.node, "-w-*\n  User \"", all.user, "\"\n  IdentityFile \"", all.key,
                    "\"\n  UserKnownHostsFile \"", all.known_hosts,
                    "\"\n  GlobalKnownHostsFile none\n  IdentitiesOnly yes\n  CheckHostIP no\n"
                    "  HashKnownHosts no\n  StrictHostKeyChecking yes\n  UpdateHostKeys no\n"
                    "Match all\n  Include ~/.ssh/config\n  Include /etc/ssh/ssh_config\n");
  return text;
}

}  // namespace sluice::provision
