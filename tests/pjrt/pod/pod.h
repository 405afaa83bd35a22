// The pod itself, in the process of worker 0: it compiles for all workers and runs each launch once for all.
//
// On a real pod every process compiles and runs its own copy. Here one copy does the work of all, in memory
// that the processes share: the same results and the same refusals, in a fraction of the time and memory on a
// few cores.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "sluice/base/thread.h"
#include "tests/pjrt/pod/library.h"
#include "tests/pjrt/pod/member.h"
#include "tests/pjrt/pod/schedule.h"

namespace emulated_pod {

struct PodOptions {
  int workers = 1;
  std::string socket;    // where the others come; "" for a pod of one
  double timeout = 300;  // seconds: for workers that are late
};

class Pod {
 public:
  static Result<std::unique_ptr<Pod>> open(const PodOptions& options);
  // Waits until all workers have left, at most the time-out.
  ~Pod();
  Pod(const Pod&) = delete;
  Pod& operator=(const Pod&) = delete;

  // A connection of this process's own worker.
  Result<File> connect();
  // Until all workers have come and are told so; or an error that names those that are missing.
  Status meet();
  // For a process that ends with its client open: its worker has left, the others have some seconds to
  // finish.
  void linger();

 private:
  explicit Pod(const PodOptions& options);
  void accept();
  void admit(File socket);
  void serve(Member& member);
  Status greet(Member& member, const Message& hello);
  Status check_newcomer(int worker, int workers, const std::string& platform) const;
  void leave(Member& member, Status why);
  bool all_came() const;
  void wait_for_leavers(std::unique_lock<std::mutex>& lock, double seconds);
  std::string missing() const;
  Status start();
  void welcome(const Status& status);
  void handle(Member& member, Message message);
  Result<std::string> answer(Member& member, const Message& message, Reader& request);
  void launch(Member& member, std::string_view body);
  void execute();
  Status run(const std::vector<Launch>& launches);

  const PodOptions options_;
  File listening_;
  Layout layout_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Library> library_;
  std::unique_ptr<Schedule> schedule_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool met_ = false;
  Status refused_;  // a worker that does not belong here came before all had met
  std::string platform_;
  std::vector<int> counts_;                           // devices of each worker
  std::vector<Member*> members_;                      // by worker; null: not here yet
  std::vector<std::unique_ptr<Member>> connections_;  // all that ever came

  // Launches that failed, with their errors. Of the thread that executes.
  std::vector<std::map<uint64_t, Status>> failed_;
  std::unique_ptr<sluice::base::ThreadPool> compiling_;
  std::thread accepting_, executing_;
};

}  // namespace emulated_pod
