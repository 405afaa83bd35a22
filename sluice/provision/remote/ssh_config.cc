#include "sluice/provision/remote/ssh_config.h"

#include "sluice/base/strings.h"
#include "sluice/provision/remote/host_keys.h"

namespace sluice::provision {

std::string host_name(const std::string& node, int worker) { return base::str(node, "-w-", worker); }

std::string ssh_config(const SshSettings& settings) {
  std::string text = base::str("# Written by sluice for the TPU ", settings.node, ".\n");
  for (size_t i = 0; i < settings.workers.size(); ++i) {
    const int worker = static_cast<int>(i);
    text += base::str("Host ", host_name(settings.node, worker), "\n  HostName ", settings.workers[i].connect,
                      "\n  HostKeyAlias ", host_key_alias(settings.node_id, worker), '\n');
  }
  text += base::str("Host ", settings.node, "-w-*\n  User \"", settings.user, "\"\n  IdentityFile \"",
                    settings.key, "\"\n  UserKnownHostsFile \"", settings.known_hosts, "\"\n",
                    "  GlobalKnownHostsFile none\n  IdentitiesOnly yes\n  CheckHostIP no\n"
                    "  HashKnownHosts no\n  StrictHostKeyChecking yes\n  UpdateHostKeys no\n"
                    "Match all\n  Include ~/.ssh/config\n  Include /etc/ssh/ssh_config\n");
  return text;
}

}  // namespace sluice::provision
