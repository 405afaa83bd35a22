#include "sluice/base/thread.h"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "sluice/base/text/join.h"

namespace sluice::base {

void name_thread(const std::string& name) {
  ::pthread_setname_np(::pthread_self(), name.substr(0, 15).c_str());
}

void lower_thread_priority() {
  constexpr int kNice = 10;
  // On Linux, 0 stands for the calling thread. To give time away is always allowed.
  if (::getpriority(PRIO_PROCESS, 0) < kNice) static_cast<void>(::setpriority(PRIO_PROCESS, 0, kNice));
}

size_t available_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0) {
    return static_cast<size_t>(std::max(1, CPU_COUNT(&set)));
  }
  return std::max(1u, std::thread::hardware_concurrency());
}

ThreadPool::ThreadPool(const std::string& name, size_t threads) {
  for (size_t i = 0; i < std::max<size_t>(1, threads); ++i) {
    threads_.emplace_back([this, label = str(name, "-", i)] {
      name_thread(label);
      work();
    });
  }
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::submit(std::function<void()> task) {
  {
    std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  wake_.notify_one();
}

void ThreadPool::wait() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [&] { return tasks_.empty() && running_ == 0; });
}

void ThreadPool::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [&] { return stopping_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    ++running_;
    lock.unlock();
    task();
    task = nullptr;  // its captures are released before the pool counts as idle
    lock.lock();
    if (--running_ == 0 && tasks_.empty()) idle_.notify_all();
  }
}

void parallel_for(ThreadPool& pool, size_t count, const std::function<void(size_t)>& body) {
  if (count == 0) return;
  std::atomic<size_t> next{0};
  std::mutex mutex;
  std::condition_variable finished;
  size_t left = std::min(count, pool.size());
  for (size_t worker = left; worker > 0; --worker) {
    pool.submit([&] {
      for (size_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) body(i);
      // Notified under the lock: the waiting caller owns the captured variables and returns as soon as it
      // can.
      std::lock_guard lock(mutex);
      if (--left == 0) finished.notify_one();
    });
  }
  std::unique_lock lock(mutex);
  finished.wait(lock, [&] { return left == 0; });
}

}  // namespace sluice::base
