// How a host is reached: by OpenSSH's client, or by sh on this machine.
#pragma once

#include <string>
#include <vector>

#include "sluice/pod/job.h"

namespace sluice::pod {

// The command that starts a shell for the worker's host, which evaluates the script that it gets on standard
// input: its size in bytes, a newline, the script. What follows is the script's own input.
std::vector<std::string> shell_command(const Job& job, const Worker& worker);
// The bytes to send for a script.
std::string framed(const std::string& script);

// Whether ssh ended because there was no connection, or it broke.
inline bool is_ssh_failure(int status) { return status == 255; }
// What ssh's messages about a worker's host mean, in one line with what to do: "cannot reach b by ssh: "…"
// (…)". They may also be the host's own words, so they stand in quotes, and no command comes from them.
std::string explain_ssh(const Job& job, const Worker& worker, const std::string& messages);
// Whether it may help to try again: not for a wrong name, key or user.
bool is_passing(const std::string& messages);

}  // namespace sluice::pod
