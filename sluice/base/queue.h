// A bounded queue between threads: many producers, many consumers, back-pressure, and an end with or without
// an error.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "sluice/base/result.h"

namespace sluice::base {

// push() blocks while the queue is full, pop() while it is empty. Threads: all members from any thread; the
// queue must outlive its users (close() and join them first).
template <typename T>
class Queue {
 public:
  // Room for `capacity` items, at least one.
  explicit Queue(size_t capacity) : capacity_(capacity == 0 ? 1 : capacity) {}

  // Returns false when the queue was closed: the item was not taken, and the producer should stop.
  bool push(T item) {
    std::unique_lock lock(mutex_);
    not_full_.wait(lock, [&] { return closed_ || items_.size() < capacity_; });
    if (closed_) return false;
    items_.push_back(std::move(item));
    lock.unlock();
    not_empty_.notify_one();
    return true;
  }

  // Returns the next item; nothing at the end. When the queue was closed with an error, returns that error
  // after the items that came before it.
  Result<std::optional<T>> pop() {
    std::unique_lock lock(mutex_);
    not_empty_.wait(lock, [&] { return closed_ || !items_.empty(); });
    if (!items_.empty()) return take(lock);
    return end();
  }

  // As pop(), but an open, empty queue returns nothing at once. `*waiting` tells this case from the end.
  Result<std::optional<T>> try_pop(bool* waiting) {
    std::unique_lock lock(mutex_);
    *waiting = false;
    if (!items_.empty()) return take(lock);
    if (closed_) return end();
    *waiting = true;
    return std::optional<T>();
  }

  // Ends the queue: producers are refused, and consumers get the remaining items and then the end. Closing
  // again is no error.
  void close() { close_with(std::nullopt, false); }
  // Ends the queue with an error that consumers get after the items that came before it. The first error
  // stays.
  void close(Error error) { close_with(std::move(error), false); }
  // Ends the queue because a consumer gives up: the remaining items are dropped.
  void cancel() { close_with(std::nullopt, true); }

  size_t size() const {
    std::lock_guard lock(mutex_);
    return items_.size();
  }
  size_t capacity() const { return capacity_; }
  bool closed() const {
    std::lock_guard lock(mutex_);
    return closed_;
  }

 private:
  Result<std::optional<T>> take(std::unique_lock<std::mutex>& lock) {
    std::optional<T> item(std::move(items_.front()));
    items_.pop_front();
    lock.unlock();
    not_full_.notify_one();
    return item;
  }

  Result<std::optional<T>> end() const {
    if (error_) return tl::unexpected<Error>(*error_);
    return std::optional<T>();
  }

  void close_with(std::optional<Error> error, bool drop) {
    std::deque<T> dropped;  // destroyed outside the lock
    {
      std::lock_guard lock(mutex_);
      closed_ = true;
      if (error && !error_) error_ = std::move(error);
      if (drop) dropped.swap(items_);
    }
    not_full_.notify_all();
    not_empty_.notify_all();
  }

  const size_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable not_full_, not_empty_;
  std::deque<T> items_;
  std::optional<Error> error_;
  bool closed_ = false;
};

}  // namespace sluice::base
