// What `sluice run` is asked for, and where.
//
// The words of this room: a job is what is asked for; a run is the job once it has been started, with an id
// and a folder, until its end (record.h); a round is one script on the workers until all have ended
// (round.h); an attempt is a round of the job's command, of which a run has more than one where workers fail.
#pragma once

#include <cstdint>
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

// An archive of the program that the hosts are given (program.h); no path: none.
struct Program {
  std::string path, sha256;
  uint64_t bytes = 0;
  std::string tar_sha256;  // of what is packed in it
  uint64_t tar_bytes = 0;
};

struct Job {
  std::string id;
  std::vector<std::string> command;
  std::vector<Worker> workers;
  std::string coordinator;  // host name or address of worker 0
  int port = 0;             // there; 0: one that is free on this machine
  std::string tpu_chips;    // "4,4,1" for one process per chip; else empty
  std::vector<std::pair<std::string, std::string>> environment;  // of the user; wins over everything else
  std::string folder;                                            // to start in; empty: the home folder
  std::string sync;                       // copied to `folder` on each host; empty: none
  std::vector<std::string> sync_exclude;  // tar's patterns
  Program program;                        // its bin/ comes first in the workers' PATH
  std::string setup;                      // a command line for sh, once on each host
  SshOptions ssh;
  int max_restarts = 0;
  int heartbeat_timeout = 600;  // seconds, counted from a worker's first heartbeat; 0: never
  int lease = 60;               // seconds that the workers outlive an attached client
  int grace = 7;                // seconds from SIGINT to SIGKILL
  int join_timeout = 0;         // seconds in which all workers must have met; 0: as long as they like
  bool detached = false;
  bool raw = false;  // the workers' bytes are shown as they are
};

// Whether the workers are processes of this machine.
inline bool is_local(const Job& job) { return job.workers.front().host.empty(); }

// `count` processes on this machine.
std::vector<Worker> local_workers(int count);
// `per_host` workers for each name of "a,user@b,node[01-04]" or of "@FILE" (one name a line, # comments), in
// this order, those of a host one after the other; a name that comes again is another worker on that host.
// Errors: an empty list, an unreadable file, a name that comes again where several per host are asked for.
base::Result<std::vector<Worker>> remote_workers(std::string_view hosts, int per_host = 1);
// Addresses of the different hosts.
std::vector<std::string> host_addresses(const Job& job);

// A new run's name: the time and four letters, "1121-140359-k3xa".
std::string new_run_id();

}  // namespace sluice::pod
