#include "sluice/provision/remote/ssh_config.h"

#include "sluice/base/text/join.h"

namespace sluice::provision {

std::string host_name(const std::string& slice, int worker) { return base::str(slice, "-w-", worker); }

namespace {

std::string settings_of_slice(const SshSettings& settings) {
  std::string text = base::str("# Written by sluice for the TPU ", settings.slice, ".\n");
  for (size_t i = 0; i < settings.workers.size(); ++i)
    text += base::str("Host ", host_name(settings.slice, static_cast<int>(i)), "\n  HostName ",
                      settings.workers[i].connect, "\n  HostKeyAlias ", settings.workers[i].alias, '\n');
  text += base::str("Host ", settings.slice, "-w-*\n  User \"", settings.user, "\"\n  IdentityFile \"",
                    settings.key, "\"\n  UserKnownHostsFile \"", settings.known_hosts,
                    "\"\n  GlobalKnownHostsFile none\n  IdentitiesOnly yes\n  CheckHostIP no\n"
                    "  HashKnownHosts no\n  StrictHostKeyChecking yes\n  UpdateHostKeys no\n");
  return text;
}

}  // namespace

std::string ssh_config(const std::vector<SshSettings>& slices) {
  std::string text;
  for (const SshSettings& slice : slices) text += settings_of_slice(slice);
  return text + "Match all\n  Include ~/.ssh/config\n  Include /etc/ssh/ssh_config\n";
}

}  // namespace sluice::provision
