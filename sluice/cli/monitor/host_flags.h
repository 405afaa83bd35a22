// Where a verb looks: at this machine, or at hosts by ssh, on which it asks their own `sluice`.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sluice/cli/cloud/reach_flags.h"
#include "sluice/pod/job.h"

namespace sluice::cli {

struct HostFlags {
  TpuFlags tpu;
  std::string hosts, ssh_config;
};

// --hosts, --tpu and what belongs to them.
void add_host_flags(CLI::App& app, HostFlags& flags);

// A job that stands for the hosts, to connect to; nothing: this machine is meant. `verb` stands before the
// lines of progress. Throws Error and Usage.
std::optional<pod::Job> hosts_of(const HostFlags& flags, const std::string& verb);

// A script for a host's sh that becomes its `sluice` with these words: the one of the archive with this
// checksum (pod/program.h), if it is there, else the one on PATH, else that of the archive that came last.
std::string sluice_script(const std::vector<std::string>& words, const std::string& program = "");

}  // namespace sluice::cli
