#include "sluice/replica/patient_thread.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "sluice/base/thread.h"

namespace sluice::replica {

struct PatientThread::State {
  std::mutex mutex;
  std::condition_variable changed;
  std::function<void()> call;  // until it has returned
  bool stopping = false, given_up = false;
  std::thread thread;

  void work() {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [this] { return call || stopping; });
      if (!call) return;
      lock.unlock();
      call();
      lock.lock();
      call = nullptr;
      changed.notify_all();
    }
  }
};

PatientThread::PatientThread(const std::string& name) : state_(std::make_shared<State>()) {
  state_->thread = std::thread([state = state_, name] {
    base::name_thread(name);
    state->work();
  });
}

PatientThread::~PatientThread() {
  bool given_up;
  {
    std::lock_guard lock(state_->mutex);
    state_->stopping = true;
    given_up = state_->given_up;
  }
  state_->changed.notify_all();
  if (given_up)
    state_->thread.detach();
  else
    state_->thread.join();
}

bool PatientThread::run(std::function<void()> call, std::chrono::milliseconds patience) {
  using std::chrono::milliseconds;
  // A slice counts as no more than it was meant to last, however long this process did not run.
  constexpr milliseconds kSlice{100};
  std::unique_lock lock(state_->mutex);
  if (state_->given_up) return false;
  state_->call = std::move(call);
  state_->changed.notify_all();
  const auto returned = [this] { return !state_->call; };
  for (milliseconds waited{0}; patience == milliseconds(0) || waited < patience; waited += kSlice) {
    if (state_->changed.wait_for(lock, kSlice, returned)) return true;
  }
  state_->given_up = true;
  return false;
}

}  // namespace sluice::replica
