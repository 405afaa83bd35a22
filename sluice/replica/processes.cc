#include "sluice/replica/processes.h"

#include <signal.h>

#include <thread>

#include "sluice/base/build_id.h"
#include "sluice/base/clock.h"
#include "sluice/base/environment.h"
#include "sluice/base/error.h"
#include "sluice/base/log.h"
#include "sluice/base/process.h"
#include "sluice/base/text/hostlist.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/number.h"
#include "sluice/base/text/printable.h"
#include "sluice/base/text/strings.h"
#include "sluice/replica/loss.h"
#include "sluice/replica/meeting.h"
#include "sluice/replica/slices.h"
#include "sluice/replica/store/store_client.h"

namespace sluice::replica {
namespace processes_detail {

constexpr const char* kWaiting = "waiting ";
constexpr double kLong = 3;  // seconds after which a waiting process publishes where it waits

std::string value_key(const std::string& key) { return "value " + key; }

// Returns the prefix of the keys of a gather.
std::string prefix_of(const Processes::Offer& offer) {
  return base::str("gather ", offer.name, ' ', offer.number, ' ');
}

base::Result<std::pair<std::string, uint16_t>> address_of(const std::string& coordinator) {
  const auto parts = base::split_host_and_port(coordinator);
  if (!parts || parts->port == 0)
    return base::fail(Code::kInvalidArgument,
                      "the coordinator must be host:port, with brackets around an IPv6 address, found \"",
                      base::printable_line(coordinator), "\"");
  return std::pair(parts->host, static_cast<uint16_t>(parts->port));
}

// A connection that another process has closed must be reported as an error; the signal would end this
// process without a message.
void ignore_broken_pipes() {
  struct sigaction current {};
  if (::sigaction(SIGPIPE, nullptr, &current) == 0 && current.sa_handler == SIG_DFL)
    ::signal(SIGPIPE, SIG_IGN);
}

// Returns a text that must be the same in all processes.
std::string this_program() {
  const std::string version = base::str("sluice ", SLUICE_VERSION);
  if (!base::environment_flag("SLUICE_SAME_BUILD", true)) return version;
  return base::str(version, " build ", base::build_id());
}

Error number_twice(const Placement& placement) {
  const std::string slices =
      placement.slice.count == 1
          ? ""
          : base::str(". It is worker ", placement.process_id % processes_of_slice(placement), " of slice ",
                      placement.slice.index, ": is MEGASCALE_SLICE_ID ", placement.slice.index,
                      " in two slices?");
  return {
      Code::kFailedPrecondition,
      base::str("two processes say that they are number ", placement.process_id, " of ", placement.processes,
                " (", placement.source, "): each needs a number of its own", slices)};
}

}  // namespace processes_detail

std::chrono::seconds join_within() {
  constexpr std::chrono::seconds kUsual{300};
  const auto text = base::environment("SLUICE_JOIN_TIMEOUT");
  if (!text) return kUsual;
  const auto seconds = base::number_of<int>(*text);
  if (seconds && *seconds > 0) return std::chrono::seconds(*seconds);
  base::warn("SLUICE_JOIN_TIMEOUT is \"", *text, "\": expected whole seconds, at least 1; ", kUsual.count(),
             " it is");
  return kUsual;
}

Processes::Processes(Placement placement, const Timeouts& timeouts)
    : placement_(std::move(placement)), timeouts_(timeouts) {}

Processes::~Processes() {
  pulse_.reset();
  if (!at_once_) return;
  // The others may still read gathered values, or why the run ended, which it may do before all have met.
  if (!met_) {
    const auto ended = try_get(Pulse::kEnded);
    if (!ended || !*ended) return;
  }
  constexpr double kPatience = 5;
  const double deadline = base::monotonic_seconds() + kPatience;
  auto left = at_once_->add("left", 1);
  while (left && index() == 0 && *left < count() && base::monotonic_seconds() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    left = at_once_->add("left", 0);
  }
}

base::Result<std::shared_ptr<Processes>> Processes::join(const Placement& placement,
                                                         const Timeouts& timeouts) {
  namespace detail = processes_detail;
  if (placement.process_id < 0 || placement.process_id >= placement.processes)
    return base::fail(Code::kInvalidArgument, "process ", placement.process_id, " of ", placement.processes,
                      " (", placement.source, "): the number must be from 0 to the count − 1");
  SLUICE_TRY(const auto address, detail::address_of(placement.coordinator));
  detail::ignore_broken_pipes();
  std::shared_ptr<Processes> joined(new Processes(placement, timeouts));
  SLUICE_OK(joined->connect(address.first, address.second));
  SLUICE_TRY(const int64_t same, joined->store_->add(base::str("number ", placement.process_id), 1));
  if (same > 1) {
    const Error twice = detail::number_twice(placement);
    // Otherwise the second slice with this number would wait for a slice that does not come.
    if (placement.slice.count > 1) joined->fail(twice.what());
    return tl::unexpected<Error>(twice);
  }
  joined->start_pulse();
  SLUICE_OK(joined->compare_programs());
  return joined;
}

std::string Processes::description() const {
  const std::string slice = line_of(placement_.slice);
  return base::str(processes_detail::this_program(), '\n', count(), '\n', base::host_name(),
                   slice.empty() ? "" : "\n", slice);
}

// Returns program, count, host and slice of a process. Texts of other processes are checked like a
// stranger's.
base::Result<std::vector<std::string>> Processes::parts_of(int process, const std::string& text) const {
  constexpr size_t kParts = 3, kMaxBytes = 4096;
  auto found = base::split(text.substr(0, kMaxBytes), '\n');
  if (text.size() > kMaxBytes || found.size() < kParts || found.size() > kParts + 1)
    return base::fail(Code::kDataLoss, "process ", process, " describes itself in ", text.size(),
                      " bytes and ", found.size(), " lines: expected ", kParts,
                      " lines. Does another program use this port?");
  found.resize(kParts + 1);
  return found;
}

// Compares slices with the processes that have come: the others may never come.
base::Status Processes::check_slices_so_far(const std::string& prefix) {
  for (int p = 0; p < count(); ++p) {
    SLUICE_TRY(const bool there, store_->has({base::str(prefix, p)}));
    if (!there || p == index()) continue;
    SLUICE_TRY(const std::string text, store_->get(base::str(prefix, p)));
    SLUICE_TRY(const auto parts, parts_of(p, text));
    if (const auto fits = check_line(placement_, p, parts.back()); !fits) {
      fail(fits.error().what());
      return fits;
    }
  }
  return {};
}

// Called once a second while processes are missing.
base::Status Processes::look_at_join(const std::string& prefix, double since, bool& told) {
  if (placement_.slice.count > 1) SLUICE_OK(check_slices_so_far(prefix));
  const std::chrono::duration<double> waited(base::monotonic_seconds() - since);
  if (told || index() != 0 || waited < timeouts_.tell) return {};
  SLUICE_TRY(const auto absent, missing(prefix));
  if (absent.empty()) return {};
  told = true;
  base::warn("waiting for ", processes_text(placement_, absent), ", of ", count(), " processes (",
             placement_.source, "), for at most ", timeouts_.join.count(), " s");
  return {};
}

base::Status Processes::compare_programs() {
  SLUICE_TRY(const Offer offered, offer("join", description()));
  const double since = base::monotonic_seconds();
  bool told = false;
  const Waiting waiting{
      "", [&, prefix = processes_detail::prefix_of(offered)] { return look_at_join(prefix, since, told); }};
  SLUICE_TRY(const auto all, collect_within(offered, waiting, timeouts_.join));
  met_ = true;
  SLUICE_TRY(const auto first, parts_of(0, all[0]));
  for (int p = 1; p < count(); ++p) {
    SLUICE_TRY(const auto other, parts_of(p, all[static_cast<size_t>(p)]));
    const auto both = [&](const char* verb, size_t item, const char* noun) {
      return base::str("process 0 (host ", said(first[2]), ')', verb, said(first[item]), noun, ", process ",
                       p, " (host ", said(other[2]), ')', verb, said(other[item]), noun);
    };
    if (other[0] != first[0])
      return base::fail(Code::kFailedPrecondition, both(" runs ", 0, ""),
                        ": copy the same program to all hosts (sluice run --program or --sync)");
    if (other[1] != first[1])
      return base::fail(Code::kFailedPrecondition, both(" is one of ", 1, " processes"),
                        ": start all with the same count (", placement_.source, ")");
    SLUICE_OK(check_line(placement_, p, other[3]));
  }
  return check_line(placement_, 0, first[3]);
}

base::Status Processes::connect(const std::string& host, uint16_t port) {
  SLUICE_TRY(key_, run_key());
  const auto met = meet(placement_, host, port, key_, timeouts_.join);
  if (!met) return tl::unexpected<Error>(not_met(met.error(), port));
  const auto open = [&](std::unique_ptr<StoreClient>& client) -> base::Status {
    const Patience patience = until(base::monotonic_seconds() + static_cast<double>(timeouts_.join.count()));
    auto connection = StoreConnection::open({met->store}, key_, patience);
    if (!connection) return tl::unexpected<Error>(not_met(connection.error(), port));
    client = std::make_unique<StoreClient>(std::move(*connection), met->name, placement_.coordinator, count(),
                                           timeouts_.lost);
    return {};
  };
  SLUICE_OK(open(store_));
  return open(at_once_);
}

Error Processes::not_met(const Error& why, uint16_t port) const {
  if (index() == 0)
    return {Code::kUnavailable,
            base::str("process 0 cannot listen on port ", port, " (", placement_.source, "): ", why.what(),
                      ". Is another run using it?",
                      placement_.slice.count == 1 ? "" : " Or has another slice MEGASCALE_SLICE_ID 0 too?")};
  if (why.code() == Code::kPermissionDenied)
    return {Code::kUnavailable,
            base::str("process ", index(), " may not join: what listens at ", placement_.coordinator, " (",
                      placement_.source, ") has not this run's key. Is it another run's process? ",
                      "SLUICE_RUN_KEY must be the same for all processes, or set for none")};
  if (why.code() == Code::kNotFound)
    return {Code::kUnavailable,
            base::str("process ", index(), " cannot find process 0 at ", placement_.coordinator, " (",
                      placement_.source, "): ", why.what(), "; ", kHowToName)};
  return {Code::kUnavailable,
          base::str("process ", index(), " cannot reach process 0 at ", placement_.coordinator, " within ",
                    timeouts_.join.count(), " s (", placement_.source, "; ", why.what(),
                    "). Did process 0 start? Is the address right, and the port open in the firewall?")};
}

void Processes::start_pulse() {
  const Pulse::Board board{
      [this](const std::string& key, const std::string& value) { return put(key, value); },
      [this](const std::string& key) { return try_get(key); },
      [this](const std::string& key, const std::string& value) { return put_first(key, value); }};
  pulse_ = std::make_unique<Pulse>(index(), count(), board, Pulse::Times{.patience = timeouts_.lost});
}

base::Result<std::vector<int>> Processes::missing(const std::string& prefix) {
  std::vector<int> absent;
  for (int p = 0; p < count(); ++p) {
    SLUICE_TRY(const bool there, store_->has({base::str(prefix, p)}));
    if (!there) absent.push_back(p);
  }
  return absent;
}

base::Result<Processes::Offer> Processes::offer(const std::string& name, const std::string& bytes) {
  std::scoped_lock lock(mutex_);
  const Offer offer{name, calls_[name]++};
  SLUICE_OK(store_->set(base::str(processes_detail::prefix_of(offer), index()), bytes));
  return offer;
}

base::Result<std::vector<std::string>> Processes::gather(const std::string& name, const std::string& bytes,
                                                         const Waiting& waiting) {
  SLUICE_TRY(const Offer offered, offer(name, bytes));
  return collect_within(offered, waiting, timeouts_.wait);
}

base::Result<std::vector<std::string>> Processes::collect(const Offer& offer) {
  return collect_within(offer, {"", {}}, timeouts_.wait);
}

base::Result<std::optional<std::vector<std::string>>> Processes::try_collect(const Offer& offer) {
  std::scoped_lock lock(mutex_);
  const std::string prefix = processes_detail::prefix_of(offer);
  std::vector<std::string> keys;
  for (int p = 0; p < count(); ++p) keys.push_back(base::str(prefix, p));
  SLUICE_TRY(const bool there, store_->has(keys));
  if (there) return take(prefix);
  SLUICE_OK(this->status());
  return std::nullopt;
}

base::Result<std::vector<std::string>> Processes::collect_within(const Offer& offer, const Waiting& waiting,
                                                                 std::chrono::seconds timeout) {
  std::scoped_lock lock(mutex_);
  const Call call{processes_detail::prefix_of(offer),
                  base::str(offer.name, ' ', offer.number, ' ', waiting.note), offer.name, timeout,
                  waiting.look};
  const double since = base::monotonic_seconds();
  for (int p = 0; p < count(); ++p) SLUICE_OK(wait_for(p, call, since));
  if (base::monotonic_seconds() - since > processes_detail::kLong)
    SLUICE_OK(store_->remove(base::str(processes_detail::kWaiting, index())));
  return take(call.prefix);
}

base::Result<std::vector<std::string>> Processes::take(const std::string& prefix) {
  std::vector<std::string> all;
  for (int p = 0; p < count(); ++p) {
    SLUICE_TRY(all.emplace_back(), store_->get(base::str(prefix, p)));
  }
  // The last reader removes the keys.
  SLUICE_TRY(const int64_t readers, store_->add(prefix + "read", 1));
  if (readers == count()) {
    for (int p = 0; p < count(); ++p) SLUICE_OK(store_->remove(base::str(prefix, p)));
    SLUICE_OK(store_->remove(prefix + "read"));
  }
  return all;
}

base::Status Processes::wait_for(int process, const Call& call, double since) {
  auto pause = std::chrono::microseconds(50);
  double next_look = since + 1;
  while (true) {
    SLUICE_TRY(const bool there, store_->has({base::str(call.prefix, process)}));
    if (there) return {};
    SLUICE_TRY(const auto ended, try_get(Pulse::kEnded));
    if (ended) return tl::unexpected<Error>(ending(*ended));
    const double now = base::monotonic_seconds();
    if (now - since > static_cast<double>(call.timeout.count())) {
      SLUICE_TRY(const auto absent, missing(call.prefix));
      return base::fail(Code::kDeadlineExceeded, processes_text(placement_, absent), " of ", count(),
                        placement_.slice.count > 1 ? " processes" : "", " did not come to '", call.name,
                        "' within ", call.timeout.count(), " s (", placement_.source,
                        "). Was it started, is it still alive, and can it reach ", placement_.coordinator,
                        "?");
    }
    if (now > next_look) {
      if (call.look) SLUICE_OK(call.look());
      if (now - since > processes_detail::kLong) SLUICE_OK(look_for_deadlock(process, call));
      next_look = now + 1;
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(5000));
  }
}

// A process that waits in another call also waits for this one, so neither would ever continue.
base::Status Processes::look_for_deadlock(int process, const Call& call) {
  namespace detail = processes_detail;
  SLUICE_OK(store_->set(base::str(detail::kWaiting, index()), call.waiting));
  const std::string theirs = base::str(detail::kWaiting, process);
  SLUICE_TRY(const bool waits, store_->has({theirs}));
  if (!waits) return {};
  SLUICE_TRY(const std::string waiting, store_->get(theirs));
  // It may have come here in the meantime.
  if (waiting == call.waiting) return {};
  SLUICE_TRY(const bool came, store_->has({base::str(call.prefix, process)}));
  SLUICE_TRY(const bool still_waits, store_->has({theirs}));
  if (came || !still_waits) return {};
  return base::fail(Code::kFailedPrecondition, "the processes no longer do the same: process ", index(),
                    " waits in ", call.waiting, ", process ", process, " in ", said(waiting), kDoTheSame);
}

base::Result<std::string> Processes::broadcast(const std::string& name, const std::string& bytes) {
  SLUICE_TRY(auto all, gather("broadcast " + name, index() == 0 ? bytes : std::string()));
  return std::move(all[0]);
}

base::Status Processes::barrier(const std::string& name) {
  SLUICE_TRY(const auto all, gather("barrier " + name, ""));
  return {};
}

base::Status Processes::put(const std::string& key, const std::string& value) {
  return at_once_->set(processes_detail::value_key(key), value);
}

base::Result<std::string> Processes::put_first(const std::string& key, const std::string& value) {
  return at_once_->set_first(processes_detail::value_key(key), value);
}

base::Result<std::optional<std::string>> Processes::try_get(const std::string& key) {
  SLUICE_TRY(const bool there, at_once_->has({processes_detail::value_key(key)}));
  if (!there) return std::nullopt;
  return at_once_->get(processes_detail::value_key(key));
}

void Processes::fail(const std::string& reason) noexcept {
  // If the store is gone, no process is left to read this.
  (void)put_first(Pulse::kEnded, failed_text(index(), reason));
}

Error Processes::end(const std::string& reason) {
  const auto first = put_first(Pulse::kEnded, reason);
  return first ? ending(*first) : first.error();
}

}  // namespace sluice::replica
