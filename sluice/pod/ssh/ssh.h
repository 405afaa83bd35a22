// How a host is reached: by OpenSSH's client, or by sh on this machine.
#pragma once

#include <string>
#include <vector>

#include "sluice/pod/job.h"

namespace sluice::pod {

// Returns the command that starts a shell for the worker's host. The shell evaluates the script on its
// standard input: its size in bytes, a newline, the script. The rest is the script's own input.
std::vector<std::string> shell_command(const Job& job, const Worker& worker);
// Returns the bytes to send for a script.
std::string framed(const std::string& script);

// Returns whether ssh ended because there was no connection, or it broke.
inline bool is_ssh_failure(int status) { return status == 255; }
// Explains ssh's messages about a worker's host in one line with what to do: "cannot reach b by ssh: "…"
// (…)". The messages may be the host's own words, so they are quoted, and no command is made from them.
std::string explain_ssh(const Job& job, const Worker& worker, const std::string& messages);
// Returns whether another try may help: not for a wrong name, key or user.
bool is_passing(const std::string& messages);

}  // namespace sluice::pod
