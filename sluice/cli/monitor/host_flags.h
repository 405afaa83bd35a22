// Flags for where a verb looks: at this machine, or through ssh at hosts, where it asks their own `sluice`.
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

// Adds --hosts, --tpu and the flags that go with them.
void add_host_flags(CLI::App& app, HostFlags& flags);

// Returns a job with the hosts, to connect to; nullopt if this machine is meant. `verb` is the prefix of the
// lines of progress. Throws Error and Usage.
std::optional<pod::Job> hosts_of(const HostFlags& flags, const std::string& verb);

// Returns a script for a host's sh that becomes its `sluice` with these words: the `sluice` of the archive
// with this checksum (pod/program.h) if it is there, else the one on PATH, else the newest archive's.
std::string sluice_script(const std::vector<std::string>& words, const std::string& program = "");

}  // namespace sluice::cli
