// Runs tasks on several threads and delivers their results in order, with a limit on tasks ahead.
#pragma once

#include <condition_variable>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>

#include "sluice/base/queue.h"
#include "sluice/base/result.h"
#include "sluice/base/thread.h"

namespace sluice::text {

// Counts the bytes of unfinished tasks. Threads: all members from any thread.
class BytesAhead {
 public:
  explicit BytesAhead(std::size_t limit) : limit_(limit) {}

  // Waits until the count is below the limit. False: cancel() was called.
  bool wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return cancelled_ || taken_ < limit_; });
    return !cancelled_;
  }
  void take(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    taken_ += bytes;
  }
  void give_back(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    taken_ -= bytes;
    changed_.notify_all();
  }
  void cancel() {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
    changed_.notify_all();
  }

 private:
  const std::size_t limit_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t taken_ = 0;
  bool cancelled_ = false;
};

// No further task is made while the tasks with unconsumed results have at least this number of bytes.
inline constexpr std::size_t kBytesAhead = std::size_t{16} << 20;

// `produce` makes the next task on its own thread (false: no task is left); `work` turns it into a result, on
// `workers` threads; `consume` gets the results in order, on the caller's thread. The first error ends the
// work. Task::size() is in bytes.
template <typename Task, typename Made>
base::Status ordered_work(std::size_t workers, const std::function<base::Result<bool>(Task&)>& produce,
                          const std::function<base::Result<Made>(Task&)>& work,
                          const std::function<base::Status(Made)>& consume) {
  struct Ahead {
    std::shared_future<std::shared_ptr<base::Result<Made>>> made;
    std::size_t size = 0;
  };
  base::Queue<Ahead> queue(workers * 2 + 1);
  BytesAhead ahead(kBytesAhead);
  base::ThreadPool pool("text", workers);
  std::thread producer([&] {
    while (ahead.wait()) {
      auto task = std::make_shared<Task>();
      const auto more = produce(*task);
      if (!more) return queue.close(more.error());
      if (!*more) return queue.close();
      const std::size_t size = task->size();
      ahead.take(size);
      auto promise = std::make_shared<std::promise<std::shared_ptr<base::Result<Made>>>>();
      if (!queue.push({promise->get_future().share(), size})) return;
      pool.submit([task = std::move(task), promise, &work] {
        promise->set_value(std::make_shared<base::Result<Made>>(work(*task)));
      });
    }
  });
  const auto drain = [&]() -> base::Status {
    for (;;) {
      SLUICE_TRY(auto next, queue.pop());
      if (!next) return {};
      SLUICE_TRY(Made made, std::move(*next->made.get()));
      SLUICE_OK(consume(std::move(made)));
      ahead.give_back(next->size);
    }
  };
  const base::Status status = drain();
  ahead.cancel();
  queue.cancel();
  producer.join();
  return status;
}

}  // namespace sluice::text
