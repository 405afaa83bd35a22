// What `sluice run` is asked to run, and where.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::pod {

// One process of the run. Its number is its place in Job::workers.
struct Worker {
  std::string host;     // what ssh connects to ("user@name" too); empty: a process on this machine
  std::string address;  // by which the other workers reach it, and which stands before its lines
  int host_index = 0;   // of its host among the different hosts
  int local_index = 0;  // among the workers of its host
  int local_count = 1;  // workers of its host
};

struct SshOptions {
  std::string user, config;
  std::vector<std::string> options;  // as ssh's -o takes them
  int parallel = 8;                  // connections being made at once
};

struct Job {
  std::string id;
  std::vector<std::string> command;
  std::vector<Worker> workers;
  std::string coordinator;                                       // host name or address of worker 0
  int port = 0;                                                  // there; 0: one that is free on this machine
  std::vector<std::pair<std::string, std::string>> environment;  // of the user; wins over everything else
  std::string folder;                                            // to start in; empty: the home folder
  std::string sync;                       // copied to `folder` on each host; empty: none
  std::vector<std::string> sync_exclude;  // tar's patterns
  std::string setup;                      // a command line for sh, once on each host
  SshOptions ssh;
  int max_restarts = 0;
  int heartbeat_timeout = 600;  // seconds, counted from a worker's first heartbeat; 0: never
  int lease = 60;               // seconds that the workers outlive an attached client
  int grace = 7;                // seconds from SIGINT to SIGKILL
  bool detached = false;
};

// Whether the workers are processes of this machine.
inline bool is_local(const Job& job) { return job.workers.front().host.empty(); }

// `count` processes on this machine.
std::vector<Worker> local_workers(int count);
// One worker for each name of "a,user@b,node[01-04]" or of "@FILE" (one name a line, # comments), in this
// order; a name that comes again is a second worker on that host. Errors: an empty list, an unreadable file.
base::Result<std::vector<Worker>> remote_workers(std::string_view hosts);

// A new run's name: the time and four letters, "1121-140359-k3xa".
std::string new_run_id();

}  // namespace sluice::pod
