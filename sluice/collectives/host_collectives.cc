#include "sluice/collectives/host_collectives.h"

#include <algorithm>
#include <set>

#include "sluice/base/log.h"
#include "sluice/base/text/quantity.h"

namespace sluice::collectives {
namespace {

base::Status all_reduce(const pjrt::CustomCall& call) {
  return HostCollectives::get().call(call, Contribution::Kind::kAllReduce);
}
base::Status all_gather(const pjrt::CustomCall& call) {
  return HostCollectives::get().call(call, Contribution::Kind::kAllGather);
}

double seconds(std::chrono::milliseconds time) { return static_cast<double>(time.count()) / 1000; }

}  // namespace

HostCollectives& HostCollectives::get() {
  // Never destroyed: programs may still run when the process ends.
  static auto& one = *new HostCollectives();
  return one;
}

base::Status HostCollectives::install(const pjrt::Plugin& plugin) {
  std::lock_guard lock(mutex_);
  if (std::find(installed_.begin(), installed_.end(), plugin.path()) != installed_.end()) return {};
  SLUICE_OK(pjrt::register_custom_call<all_reduce>(plugin, "sluice_all_reduce"));
  SLUICE_OK(pjrt::register_custom_call<all_gather>(plugin, "sluice_all_gather"));
  installed_.push_back(plugin.path());
  return {};
}

base::Status HostCollectives::configure(HostCollectivesConfig config) {
  const std::set<int> different(config.device_ids.begin(), config.device_ids.end());
  if (config.device_ids.empty() || different.size() != config.device_ids.size()) {
    return base::fail(Code::kInvalidArgument,
                      "collectives need the different devices of the replicas, found [",
                      base::join(config.device_ids, ", "), "]");
  }
  if (config.process_index < 0 || config.process_index >= config.processes ||
      (config.processes > 1 && config.transport == nullptr)) {
    return base::fail(Code::kInvalidArgument, "collectives of process ", config.process_index, " of ",
                      config.processes, config.transport == nullptr ? " without a transport" : "",
                      ": the number must be below the count, and several processes need a transport");
  }
  std::lock_guard lock(mutex_);
  config_ = std::move(config);
  start_again();
  return {};
}

void HostCollectives::reset() {
  std::lock_guard lock(mutex_);
  start_again();
}

void HostCollectives::start_again() {
  if (meeting_ != nullptr) meeting_->failed = true;
  meeting_.reset();
  changed_.notify_all();
  error_.reset();
  sequence_ = 0;
}

base::Status HostCollectives::status() const {
  std::lock_guard lock(mutex_);
  if (error_) return tl::unexpected<Error>(*error_);
  return {};
}

base::Status HostCollectives::call(const pjrt::CustomCall& call, Contribution::Kind kind) {
  const auto attempt = [&]() -> base::Status {
    SLUICE_TRY(const int device, call.device_id());
    SLUICE_TRY(const Contribution mine, Contribution::read(call, kind));
    return join(device, mine);
  };
  Error error(Code::kInternal, "");
  try {
    const base::Status status = attempt();
    if (status) return status;
    error = status.error();
  } catch (const std::exception& thrown) {
    error = Error(Code::kInternal, thrown.what());
  }
  std::unique_lock lock(mutex_);
  return fail(lock, error);
}

base::Status HostCollectives::join(int device, const Contribution& mine) {
  std::unique_lock lock(mutex_);
  if (error_) return tl::unexpected<Error>(*error_);
  const auto place = std::find(config_.device_ids.begin(), config_.device_ids.end(), device);
  if (place == config_.device_ids.end()) {
    return base::fail(Code::kFailedPrecondition, mine.place(), " runs on device ", device,
                      ", but the replicas' devices are [", base::join(config_.device_ids, ", "), "]");
  }
  const auto replica = static_cast<size_t>(place - config_.device_ids.begin());
  if (meeting_ == nullptr) {
    meeting_ = std::make_shared<Meeting>();
    meeting_->replicas.resize(config_.device_ids.size());
  }
  const std::shared_ptr<Meeting> meeting = meeting_;
  if (meeting->replicas[replica] != nullptr) {
    return base::fail(Code::kFailedPrecondition, mine.place(), ": device ", device, " is already at ",
                      meeting->replicas[replica]->place(), "; a device must run one program at a time");
  }
  meeting->replicas[replica] = &mine;
  if (++meeting->arrived < meeting->replicas.size()) {
    SLUICE_OK(wait_for_others(lock, *meeting, mine));
  } else {
    const CollectiveWorld world{config_.process_index, config_.processes, config_.transport};
    auto collective = std::make_unique<Collective>(meeting->replicas, world, sequence_);
    SLUICE_OK(collective->check());
    ++sequence_;
    meeting->collective = std::move(collective);
    meeting_.reset();
    changed_.notify_all();
  }
  lock.unlock();
  return meeting->collective->run(replica);
}

base::Status HostCollectives::wait_for_others(std::unique_lock<std::mutex>& lock, const Meeting& meeting,
                                              const Contribution& mine) {
  using std::chrono::milliseconds;
  // A slice of waiting counts at most its intended length, so that a machine that was stopped for an hour
  // does not look like a replica that did not come.
  constexpr milliseconds kSlice{500};
  milliseconds waited{0};
  bool warned = false;
  while (true) {
    const milliseconds slice = std::min(kSlice, std::max(config_.timeout - waited, milliseconds(1)));
    const auto over = [&] { return meeting.collective != nullptr || meeting.failed; };
    if (changed_.wait_for(lock, slice, over)) break;
    waited += slice;
    if (waited >= config_.timeout) {
      return base::fail(Code::kDeadlineExceeded, mine.place(), ": waited ", seconds(config_.timeout),
                        " s for ", missing(meeting),
                        "; an earlier error on that device, or a program that is stuck, is the cause");
    }
    if (waited >= config_.warn_after && !warned) {
      warned = true;
      base::warn(mine.place(), ": waiting for ", seconds(waited), " s for ", missing(meeting));
    }
  }
  if (!meeting.failed) return {};
  if (error_) return tl::unexpected<Error>(*error_);
  return base::fail(Code::kAborted, mine.place(), ": the collectives were reset while this call waited");
}

std::string HostCollectives::missing(const Meeting& meeting) const {
  std::vector<std::string> names;
  for (size_t r = 0; r < meeting.replicas.size(); ++r) {
    if (meeting.replicas[r] == nullptr)
      names.push_back(base::str(r, " (device ", config_.device_ids[r], ")"));
  }
  return base::str("local ", base::plural(static_cast<int64_t>(names.size()), "replica"), " ",
                   base::join(names, ", "));
}

base::Status HostCollectives::fail(std::unique_lock<std::mutex>& lock, const Error& error) {
  const bool is_first = !error_;
  if (is_first) error_ = error;
  const Error found = *error_;
  if (meeting_ != nullptr) meeting_->failed = true;
  meeting_.reset();
  changed_.notify_all();
  const std::shared_ptr<Transport> transport = config_.transport;
  lock.unlock();
  if (is_first && transport != nullptr) transport->abort(found.what());
  return tl::unexpected<Error>(found);
}

}  // namespace sluice::collectives
