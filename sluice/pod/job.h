// The request of `sluice run`: what to run, and where.
//
// Terms of this room: a job is the request. A run is a started job until its end, with an id and a folder
// (record.h). A round is one script on the workers until all have ended (round.h). An attempt is a round of
// the job's command; a run has several if workers fail.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::pod {

// One process of the run. Its number is its index in Job::workers.
struct Worker {
  std::string host;     // the target of ssh ("user@name" too); empty: a process on this machine
  std::string address;  // the other workers' address for it, and the prefix of its lines
  int host_index = 0;   // index of its host among the different hosts
  int local_index = 0;  // index among the workers of its host
  int local_count = 1;  // number of workers on its host
  int slice = 0;        // the TPU slice of its host; workers are numbered slice by slice
};

struct SshOptions {
  std::string user, config;
  std::vector<std::string> options;  // in the form of ssh's -o
  int parallel = 8;                  // connections that may be opening at once
};

// An archive of the program for the hosts (program.h); no path: none.
struct Program {
  std::string path, sha256;
  uint64_t bytes = 0;
  std::string tar_sha256;  // of the unpacked tar archive
  uint64_t tar_bytes = 0;
};

struct Job {
  std::string id;
  std::vector<std::string> command;
  std::vector<Worker> workers;
  std::string coordinator;  // host name or address of worker 0
  int port = 0;             // on that host; 0: a free one of this machine
  std::string tpu_chips;    // "4,4,1" of each slice for one process per chip; else empty
  int slices = 1;           // TPU slices that run one program; each has the same number of workers
  std::string slice_type;   // of each, "v5p-32"; empty: unknown
  std::vector<std::pair<std::string, std::string>> environment;  // from the user; wins over everything else
  std::string folder;                                            // to start in; empty: the home folder
  std::string sync;                       // copied to `folder` on each host; empty: none
  std::vector<std::string> sync_exclude;  // tar's patterns
  std::string sync_bucket;                // gs://BUCKET/PREFIX from which the hosts take it; empty: none
  Program program;                        // its bin/ comes first in the workers' PATH
  std::string setup;                      // a command line for sh, once on each host
  SshOptions ssh;
  int max_restarts = 0;
  int heartbeat_timeout = 600;  // seconds, counted from a worker's first heartbeat; 0: never
  int lease = 60;               // seconds that the workers continue without an attached client
  int grace = 7;                // seconds from SIGINT to SIGKILL
  int join_timeout = 0;         // seconds in which all workers must have met; 0: no limit
  int log_size = 1024;          // MiB that each log may take, here and on a worker's host; 0: no limit
  bool detached = false;
  bool raw = false;  // shows the workers' bytes unchanged
};

// Returns whether the workers are processes of this machine.
inline bool is_local(const Job& job) { return job.workers.front().host.empty(); }

// Returns the bytes of Job::log_size.
inline uint64_t log_bytes(const Job& job) { return static_cast<uint64_t>(job.log_size) << 20; }

// Returns `count` processes on this machine.
std::vector<Worker> local_workers(int count);
// Returns `per_host` workers for each name of "a,user@b,node[01-04]" or of "@FILE" (one name a line, #
// comments), in this order, the workers of a host one after the other. A repeated name is another worker on
// that host. Errors: an empty list, an unreadable file, or a repeated name with several per host.
base::Result<std::vector<Worker>> remote_workers(std::string_view hosts, int per_host = 1);
// Divides the hosts among `slices` TPU slices, in their order. Error: they do not have the same number of
// hosts each, or another host's workers come between a host's workers.
base::Status divide_into_slices(Job& job, int slices);
// Returns the addresses of the different hosts of a slice.
std::vector<std::string> host_addresses(const Job& job, int slice = 0);
// Returns " of slice 1" for messages about a worker; "" if there is one slice.
std::string slice_text(const Job& job, int worker);

// Returns a new run's name: the time and four letters, "1121-140359-k3xa".
std::string new_run_id();

}  // namespace sluice::pod
