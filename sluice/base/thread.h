// Helpers for threads.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace sluice::base {

// Names the calling thread in debuggers and top; the system keeps the first 15 characters.
void name_thread(const std::string& name);

// Lets all other threads go first where processors are short: the calling thread, and the threads that it
// starts, get a tenth of the usual weight (nice 10) until they end.
void lower_thread_priority();

// Returns the number of processors that this process may use, at least 1.
size_t available_processors();

// A fixed number of threads that run tasks in the order in which they came. A task must not throw: one that
// does ends the process. The destructor finishes the queued tasks and joins. Threads: submit() and wait()
// from any thread that is not the pool's own.
class ThreadPool {
 public:
  // Starts `threads` threads, at least one, named "name-0", "name-1"…
  ThreadPool(const std::string& name, size_t threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  void submit(std::function<void()> task);
  // Waits until all tasks submitted so far are done.
  void wait();
  size_t size() const { return threads_.size(); }

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable wake_, idle_;
  std::deque<std::function<void()>> tasks_;
  size_t running_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

// Calls body(i) for i in [0, count) on the pool and returns when all are done. The caller's thread only
// waits.
void parallel_for(ThreadPool& pool, size_t count, const std::function<void(size_t)>& body);

}  // namespace sluice::base
