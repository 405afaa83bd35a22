#include "sluice/kernels/threads.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cfenv>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "sluice/base/environment.h"
#include "sluice/base/thread.h"

namespace sluice::kernels {
namespace {

std::atomic<int> replicas = 1;
thread_local const StartHelper* helpers = nullptr;

// Returns the positive number at the beginning of a variable of the environment.
std::optional<int> number_in(const char* variable) {
  const std::string text = base::environment(variable).value_or("");
  int number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number > 0 ? std::optional(number) : std::nullopt;
}

int threads_of_the_process() {
  static const int threads = [] {
    // The number of the run's processes on this machine, as `sluice run` and torchrun set it.
    const int processes = number_in("LOCAL_WORLD_SIZE").value_or(1);
    const auto cores = static_cast<int>(base::available_processors());
    return number_in("OMP_NUM_THREADS").value_or(std::max(1, cores / processes));
  }();
  return threads;
}

// Sets OpenMP's number of threads, which limits oneDNN, to one; returns the number before.
int keep_library_to_one_thread() {
  const int before = omp_get_max_threads();
  omp_set_num_threads(1);
  return before;
}

// Work that threads share. A helper may come long after its caller has returned: all of them own the object,
// and the body is used only for a part that is still to be done.
class Work {
 public:
  Work() { std::fegetenv(&arithmetic_); }
  virtual ~Work() = default;

  static void help(void* data) noexcept {
    const std::unique_ptr<std::shared_ptr<Work>> work(static_cast<std::shared_ptr<Work>*>(data));
    (*work)->help();
  }

  // Takes parts until no part is left.
  virtual void take_all() noexcept = 0;

  // Parts are short: it is worth waiting awake for another thread's last part, unless that thread needs this
  // core.
  void wait_for(size_t parts) const {
    constexpr int kLooks = 300;
    for (int look = 0; look < kLooks && done_.load() < parts; ++look) std::this_thread::yield();
    for (size_t done = done_.load(); done < parts; done = done_.load()) done_.wait(done);
  }

 protected:
  virtual bool all_are_taken() const = 0;
  // Counts a finished part; when `waited_for` parts are done, wakes threads that wait for them.
  void finish_one(size_t waited_for) {
    if (done_.fetch_add(1) + 1 == waited_for) done_.notify_all();
  }

 private:
  void help() noexcept {
    if (all_are_taken()) return;
    std::fenv_t before;
    std::fegetenv(&before);
    std::fesetenv(&arithmetic_);
    const int library_threads = keep_library_to_one_thread();
    const StartHelper* const outer = std::exchange(helpers, nullptr);
    take_all();
    helpers = outer;
    omp_set_num_threads(library_threads);
    std::fesetenv(&before);
  }

  std::fenv_t arithmetic_;
  std::atomic<size_t> done_ = 0;
};

// The indices of a parallel_for.
class Indices : public Work {
 public:
  Indices(size_t count, const std::function<void(size_t)>& body) : count_(count), body_(&body) {}

  void take_all() noexcept override {
    for (size_t i = next_.fetch_add(1); i < count_; i = next_.fetch_add(1)) {
      (*body_)(i);
      finish_one(count_);
    }
  }

 private:
  bool all_are_taken() const override { return next_.load() >= count_; }

  const size_t count_;
  const std::function<void(size_t)>* body_;
  std::atomic<size_t> next_ = 0;
};

// The turns of parallel_turns.
class Turns : public Work {
 public:
  Turns(size_t turns, size_t count, const std::function<void(size_t, size_t)>& body)
      : turns_(turns), count_(count), body_(&body), next_turns_(count) {}

  void take_all() noexcept override {
    size_t last = 0;  // the index that this thread had last
    for (size_t turn = 0; turn < turns_; ++turn) {
      const size_t first = last;
      for (size_t j = 0; j < count_; ++j) {
        const size_t i = (first + j) % count_;
        size_t next = turn;
        if (!next_turns_[i].compare_exchange_strong(next, turn + 1)) continue;
        (*body_)(turn, i);
        last = i;
        finish_one((turn + 1) * count_);
      }
      if (turn + 1 < turns_) wait_for((turn + 1) * count_);
    }
  }

 private:
  bool all_are_taken() const override {
    return std::all_of(next_turns_.begin(), next_turns_.end(),
                       [&](const std::atomic<size_t>& next) { return next.load() >= turns_; });
  }

  const size_t turns_, count_;
  const std::function<void(size_t, size_t)>* body_;
  std::vector<std::atomic<size_t>> next_turns_;  // for each index
};

// Calls alone() if there are no helpers; else the helpers and the caller run the work from make_work(), which
// has `parts` parts, `at_once` of them at the same time.
template <typename Alone, typename MakeWork>
void share(size_t parts, size_t at_once, const Alone& alone, const MakeWork& make_work) {
  const size_t wanted = std::min(at_once, static_cast<size_t>(threads_of_a_call()));
  const StartHelper* const start = std::exchange(helpers, nullptr);  // loops inside the body have no helpers
  if (start == nullptr || wanted <= 1) {
    alone();
  } else {
    const std::shared_ptr<Work> work = make_work();
    for (size_t i = 1; i < wanted; ++i) {
      auto* const to_help = new std::shared_ptr<Work>(work);
      if ((*start)(Work::help, to_help)) continue;
      delete to_help;
      break;
    }
    work->take_all();
    work->wait_for(parts);
  }
  helpers = start;
}

}  // namespace

void share_threads(int local_replicas) { replicas = std::max(1, local_replicas); }
int threads_of_a_call() { return std::max(1, threads_of_the_process() / replicas.load()); }

int64_t parts_of_a_call(int64_t wanted) {
  const int64_t threads = threads_of_a_call();
  return std::clamp(wanted / threads, int64_t{1}, kMaxPartsPerThread) * threads;
}

UseThreads::UseThreads() : UseThreads(StartHelper()) {}
UseThreads::UseThreads(StartHelper start)
    : start_(std::move(start)),
      outer_(std::exchange(helpers, start_ ? &start_ : nullptr)),
      library_threads_(keep_library_to_one_thread()) {}
UseThreads::UseThreads(const pjrt::CustomCall& call)
    : UseThreads([&call](void (*task)(void*), void* data) { return call.schedule(task, data); }) {}
UseThreads::~UseThreads() {
  helpers = outer_;
  omp_set_num_threads(library_threads_);
}

void parallel_for(size_t count, const std::function<void(size_t)>& body) {
  if (count == 1) return body(0);
  const auto alone = [&] {
    for (size_t i = 0; i < count; ++i) body(i);
  };
  share(count, count, alone, [&] { return std::make_shared<Indices>(count, body); });
}

void parallel_turns(size_t turns, size_t count, const std::function<void(size_t, size_t)>& body) {
  const auto alone = [&] {
    for (size_t turn = 0; turn < turns; ++turn)
      for (size_t i = 0; i < count; ++i) body(turn, i);
  };
  share(turns * count, count, alone, [&] { return std::make_shared<Turns>(turns, count, body); });
}

base::Status parallel_for_status(size_t count, const std::function<base::Status(size_t)>& body) {
  std::mutex mutex;
  base::Status all;
  parallel_for(count, [&](size_t i) {
    base::Status status = body(i);
    if (status) return;
    const std::lock_guard lock(mutex);
    all = std::move(status);
  });
  return all;
}

}  // namespace sluice::kernels
