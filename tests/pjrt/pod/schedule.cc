#include "tests/pjrt/pod/schedule.h"

#include <algorithm>

namespace emulated_pod {
namespace {

bool contains(const std::vector<int>& workers, int worker) {
  return std::find(workers.begin(), workers.end(), worker) != workers.end();
}

bool contains(const std::vector<std::string>& keys, const std::string& key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

// "@train (program 1f03ab77)"
std::string describe(const Launch& launch) {
  return str("@", launch.name(), " (program ", launch.key().substr(0, 8), ")");
}

// "worker 1", "workers 1, 2"
std::string list(const std::vector<int>& workers) {
  return str(workers.size() == 1 ? "worker " : "workers ", sluice::base::join(workers, ", "));
}

}  // namespace

Schedule::Schedule(Layout layout, double timeout_seconds)
    : layout_(std::move(layout)),
      timeout_(timeout_seconds),
      workers_(static_cast<size_t>(layout_.workers())) {}

void Schedule::add(Launch launch) {
  std::lock_guard lock(mutex_);
  workers_[static_cast<size_t>(launch.worker)].launches.push_back(std::move(launch));
  changed_.notify_all();
}

void Schedule::lose(int worker, Status why) {
  std::lock_guard lock(mutex_);
  Worker& gone = workers_[static_cast<size_t>(worker)];
  gone.lost = std::move(why);
  gone.launches.clear();
  changed_.notify_all();
}

void Schedule::close() {
  std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

std::optional<Turn> Schedule::next() {
  // A worker that waits for the run before is not late: the time counts from here.
  const Time idle_since = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  while (!closed_) {
    Time wake = Time::max();
    if (auto turn = look(std::chrono::steady_clock::now(), idle_since, wake)) return turn;
    if (wake == Time::max()) {
      changed_.wait(lock);
    } else {
      changed_.wait_until(lock, wake);
    }
  }
  return std::nullopt;
}

// Something to do, or the time when a launch will have waited too long.
std::optional<Turn> Schedule::look(Time now, Time idle_since, Time& wake) {
  for (int worker = 0; worker < layout_.workers(); ++worker) {
    if (head(worker) == nullptr) continue;
    if (auto turn = look_at(worker, now, idle_since, wake)) return turn;
  }
  return std::nullopt;
}

std::optional<Turn> Schedule::look_at(int worker, Time now, Time idle_since, Time& wake) {
  if (auto turn = settle_owed(worker)) return turn;
  const Launch& launch = *head(worker);
  for (const int other : participants(launch)) {
    const Status& lost = workers_[static_cast<size_t>(other)].lost;
    if (!lost)
      return alone(worker, fail(lost.error().code(), "the launch of ", describe(launch),
                                " failed: ", lost.error().what()));
  }
  const std::vector<int> missing = absent(launch);
  if (missing.empty()) return together(participants(launch));
  if (const auto other = opponent(worker)) {
    const Launch& theirs = *head(*other);
    std::vector<int> all = participants(launch);
    for (const int w : participants(theirs)) {
      if (!contains(all, w)) all.push_back(w);
    }
    return fail_all(
        all, {launch.key(), theirs.key()},
        fail(Code::kInternal, "the workers launch different programs: worker ", worker, " launches ",
             describe(launch), ", worker ", *other, " launches ", describe(theirs)));
  }
  const Time deadline =
      std::max(launch.arrived, idle_since) + std::chrono::duration_cast<Time::duration>(timeout_);
  if (now >= deadline) {
    return fail_all(participants(launch), {launch.key()},
                    fail(Code::kDeadlineExceeded, "worker ", worker, " launched ", describe(launch), " and ",
                         list(missing), " did not within ", timeout_.count(), " s"));
  }
  wake = std::min(wake, deadline);
  return std::nullopt;
}

std::vector<int> Schedule::participants(const Launch& launch) const {
  return layout_.owners(launch.program->facts().placement.devices);
}

const Launch* Schedule::head(int worker) const {
  const auto& launches = workers_[static_cast<size_t>(worker)].launches;
  return launches.empty() ? nullptr : &launches.front();
}

Launch Schedule::pop(int worker) {
  auto& launches = workers_[static_cast<size_t>(worker)].launches;
  Launch launch = std::move(launches.front());
  launches.pop_front();
  return launch;
}

// Participants that do not have the launch's program at their heads.
std::vector<int> Schedule::absent(const Launch& launch) {
  std::vector<int> missing;
  for (const int other : participants(launch)) {
    const Launch* theirs = head(other);
    if (theirs == nullptr || theirs->key() != launch.key()) missing.push_back(other);
  }
  return missing;
}

// A worker whose launch needs this one before it comes to this one's launch, which needs it.
std::optional<int> Schedule::opponent(int worker) {
  const Launch& launch = *head(worker);
  for (const int other : absent(launch)) {
    const Launch* theirs = head(other);
    if (theirs != nullptr && contains(participants(*theirs), worker)) return other;
  }
  return std::nullopt;
}

std::optional<Turn> Schedule::settle_owed(int worker) {
  auto& owed = workers_[static_cast<size_t>(worker)].owed;
  if (owed.empty()) return std::nullopt;
  for (const int other : participants(*head(worker))) {
    if (other == worker || !contains(owed.front().workers, other)) continue;
    Status status = std::move(owed.front().status);
    owed.pop_front();
    return alone(worker, std::move(status));
  }
  return std::nullopt;
}

// Takes the launches of these programs from the heads of these workers; the others fail theirs when they
// come.
Turn Schedule::fail_all(std::vector<int> workers, const std::vector<std::string>& keys, Status status) {
  Turn turn{{}, std::move(status)};
  for (const int worker : workers) {
    const Launch* launch = head(worker);
    if (launch != nullptr && contains(keys, launch->key())) {
      turn.launches.push_back(pop(worker));
    } else {
      workers_[static_cast<size_t>(worker)].owed.push_back({turn.status, workers});
    }
  }
  return turn;
}

Turn Schedule::alone(int worker, Status status) {
  Turn turn{{}, std::move(status)};
  turn.launches.push_back(pop(worker));
  return turn;
}

Turn Schedule::together(const std::vector<int>& workers) {
  Turn turn;
  for (const int worker : workers) turn.launches.push_back(pop(worker));
  return turn;
}

}  // namespace emulated_pod
