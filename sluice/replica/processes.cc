#include "sluice/replica/processes.h"

#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <charconv>
#include <thread>

#include "sluice/base/clock.h"
#include "sluice/base/error.h"
#include "sluice/base/strings.h"

namespace sluice::replica {
namespace processes_detail {

constexpr const char* kFailed = "failed";
constexpr const char* kWaiting = "waiting ";
constexpr double kLong = 3;  // seconds, after which a waiting process says where it waits

std::vector<uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }
std::string text_of(const std::vector<uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

// Its first line: LibTorch's messages go on with a stack trace.
std::string brief(const std::exception& error) {
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

base::Result<std::pair<std::string, uint16_t>> address_of(const std::string& coordinator) {
  const size_t colon = coordinator.rfind(':');
  uint16_t port = 0;
  if (colon != std::string::npos) {
    const std::string digits = coordinator.substr(colon + 1);
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
    if (error != std::errc() || end != digits.data() + digits.size()) port = 0;
  }
  if (colon == 0 || port == 0)
    return base::fail(Code::kInvalidArgument, "the coordinator must be host:port, found \"", coordinator,
                      "\"");
  return std::pair(coordinator.substr(0, colon), port);
}

}  // namespace processes_detail

struct Processes::Store {
  c10::intrusive_ptr<c10d::TCPStore> tcp;  // of the calls that wait
  c10::intrusive_ptr<c10d::Store>
      at_once;  // of those that do not: another thread's wait does not hold them up
};

Processes::Processes(Placement placement, Timeouts timeouts, std::unique_ptr<Store> store)
    : placement_(std::move(placement)), timeouts_(timeouts), store_(std::move(store)) {}

Processes::~Processes() {
  if (!met_) return;
  // The others may still read what they have been given, or why the run ended.
  constexpr double kPatience = 5;
  try {
    const double deadline = base::monotonic_seconds() + kPatience;
    int64_t left = store_->tcp->add("left", 1);
    while (index() == 0 && left < count() && base::monotonic_seconds() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      left = store_->tcp->add("left", 0);
    }
  } catch (...) {
    // Process 0 is gone already.
  }
}

base::Result<std::shared_ptr<Processes>> Processes::join(const Placement& placement,
                                                         const Timeouts& timeouts) {
  namespace detail = processes_detail;
  if (placement.process_id < 0 || placement.process_id >= placement.processes)
    return base::fail(Code::kInvalidArgument, "process ", placement.process_id, " of ", placement.processes,
                      " (", placement.source, "): the number must be from 0 to the count − 1");
  SLUICE_TRY(const auto address, detail::address_of(placement.coordinator));
  auto store = std::make_unique<Store>();
  c10d::TCPStoreOptions options;
  options.port = address.second;
  options.isServer = placement.process_id == 0;
  options.waitWorkers = false;
  options.timeout = timeouts.join;
  try {
    store->tcp = c10::make_intrusive<c10d::TCPStore>(address.first, options);
    store->at_once = store->tcp->clone();
  } catch (const std::exception& error) {
    if (options.isServer)
      return base::fail(Code::kUnavailable, "process 0 cannot listen on port ", address.second, " (",
                        placement.source, "): ", detail::brief(error), ". Is another run using it?");
    return base::fail(Code::kUnavailable, "process ", placement.process_id, " cannot reach process 0 at ",
                      placement.coordinator, " within ", timeouts.join.count(), " s (", placement.source,
                      "). Did process 0 start? Is the address right, and the port open in the firewall?");
  }
  std::shared_ptr<Processes> joined(new Processes(placement, timeouts, std::move(store)));
  try {
    const int64_t same = joined->store_->tcp->add(base::str("number ", placement.process_id), 1);
    if (same > 1)
      return base::fail(Code::kFailedPrecondition, "two processes say that they are number ",
                        placement.process_id, " of ", placement.processes, " (", placement.source,
                        "): each needs a number of its own");
  } catch (const std::exception& error) {
    return base::fail(Code::kUnavailable, "process 0 at ", placement.coordinator,
                      " is gone: ", detail::brief(error));
  }
  const std::string mine = base::str(SLUICE_VERSION, " with ", placement.processes, " processes");
  SLUICE_TRY(const auto all, joined->gather_within("join", mine, {"", {}}, timeouts.join));
  for (size_t p = 0; p < all.size(); ++p) {
    if (all[p] != all[0])
      return base::fail(Code::kFailedPrecondition, "process 0 runs sluice ", all[0], ", process ", p,
                        " runs sluice ", all[p],
                        ": all must run the same program with the same count of processes");
  }
  joined->met_ = true;
  return joined;
}

std::string Processes::missing(const std::string& prefix) const {
  std::vector<int> absent;
  for (int p = 0; p < count(); ++p) {
    if (!store_->tcp->check({base::str(prefix, p)})) absent.push_back(p);
  }
  return base::str(absent.size() == 1 ? "process " : "processes ", base::join(absent, ", "));
}

base::Result<std::vector<std::string>> Processes::gather(const std::string& name, const std::string& bytes,
                                                         const Waiting& waiting) {
  return gather_within(name, bytes, waiting, timeouts_.wait);
}

base::Result<std::vector<std::string>> Processes::gather_within(const std::string& name,
                                                                const std::string& bytes,
                                                                const Waiting& waiting,
                                                                std::chrono::seconds timeout) {
  namespace detail = processes_detail;
  std::scoped_lock lock(mutex_);
  const std::string number = base::str(name, ' ', calls_[name]++);
  const Call call{base::str("gather ", number, ' '), base::str(number, ' ', waiting.note), name, timeout,
                  waiting.look};
  c10d::TCPStore& store = *store_->tcp;
  const double since = base::monotonic_seconds();
  try {
    store.set(base::str(call.prefix, index()), detail::bytes_of(bytes));
    std::vector<std::string> all;
    for (int p = 0; p < count(); ++p) {
      SLUICE_OK(wait_for(p, call, since));
      all.push_back(detail::text_of(store.get(base::str(call.prefix, p))));
    }
    if (base::monotonic_seconds() - since > detail::kLong)
      store.deleteKey(base::str(detail::kWaiting, index()));
    // The last reader tidies up.
    if (store.add(call.prefix + "read", 1) == count()) {
      for (int p = 0; p < count(); ++p) store.deleteKey(base::str(call.prefix, p));
      store.deleteKey(call.prefix + "read");
    }
    return all;
  } catch (const std::exception& error) {
    return base::fail(Code::kUnavailable, "process 0 at ", placement_.coordinator, " ended while process ",
                      index(), " waited in '", name, "': ", detail::brief(error));
  }
}

base::Status Processes::wait_for(int process, const Call& call, double since) {
  namespace detail = processes_detail;
  c10d::TCPStore& store = *store_->tcp;
  auto pause = std::chrono::microseconds(50);
  double next_look = since + 1;
  while (!store.check({base::str(call.prefix, process)})) {
    if (store.check({detail::kFailed}))
      return base::fail(Code::kAborted,
                        "another process ended: ", detail::text_of(store.get(detail::kFailed)));
    const double now = base::monotonic_seconds();
    if (now - since > static_cast<double>(call.timeout.count()))
      return base::fail(Code::kDeadlineExceeded, missing(call.prefix), " of ", count(), " did not come to '",
                        call.name, "' within ", call.timeout.count(), " s (", placement_.source,
                        "). Was it started, is it still alive, and can it reach ", placement_.coordinator,
                        "?");
    if (now > next_look) {
      if (call.look) SLUICE_OK(call.look());
      if (now - since > detail::kLong) SLUICE_OK(look_for_deadlock(process, call));
      next_look = now + 1;
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(5000));
  }
  return {};
}

// A process that waits in another call waits for this one too, so neither would ever go on.
base::Status Processes::look_for_deadlock(int process, const Call& call) {
  namespace detail = processes_detail;
  c10d::TCPStore& store = *store_->tcp;
  store.set(base::str(detail::kWaiting, index()), detail::bytes_of(call.waiting));
  const std::string theirs = base::str(detail::kWaiting, process);
  if (!store.check({theirs})) return {};
  const std::string waiting = detail::text_of(store.get(theirs));
  // It may have come here in the meantime.
  if (waiting == call.waiting || store.check({base::str(call.prefix, process)}) || !store.check({theirs}))
    return {};
  return base::fail(Code::kFailedPrecondition, "the processes no longer do the same: process ", index(),
                    " waits in ", call.waiting, ", process ", process, " in ", waiting, kDoTheSame);
}

base::Result<std::string> Processes::broadcast(const std::string& name, const std::string& bytes) {
  SLUICE_TRY(auto all, gather("broadcast " + name, index() == 0 ? bytes : std::string()));
  return std::move(all[0]);
}

base::Status Processes::barrier(const std::string& name) {
  SLUICE_TRY(const auto all, gather("barrier " + name, ""));
  return {};
}

namespace processes_detail {
template <typename Call>
auto guarded(std::mutex& mutex, const Placement& placement, const Call& call)
    -> base::Result<decltype(call())> {
  std::scoped_lock lock(mutex);
  try {
    return call();
  } catch (const std::exception& error) {
    return base::fail(Code::kUnavailable, "process 0 at ", placement.coordinator, " is gone: ", brief(error));
  }
}
}  // namespace processes_detail

base::Status Processes::put(const std::string& key, const std::string& value) {
  namespace detail = processes_detail;
  SLUICE_TRY(const bool done, detail::guarded(at_once_mutex_, placement_, [&] {
               store_->at_once->set("value " + key, detail::bytes_of(value));
               return true;
             }));
  (void)done;
  return {};
}

base::Result<std::string> Processes::put_first(const std::string& key, const std::string& value) {
  namespace detail = processes_detail;
  return detail::guarded(at_once_mutex_, placement_, [&] {
    return detail::text_of(store_->at_once->compareSet("value " + key, {}, detail::bytes_of(value)));
  });
}

base::Result<std::optional<std::string>> Processes::try_get(const std::string& key) {
  namespace detail = processes_detail;
  return detail::guarded(at_once_mutex_, placement_, [&]() -> std::optional<std::string> {
    if (!store_->at_once->check({"value " + key})) return std::nullopt;
    return detail::text_of(store_->at_once->get("value " + key));
  });
}

void Processes::fail(const std::string& reason) noexcept {
  try {
    std::scoped_lock lock(at_once_mutex_);
    const std::string text = base::str("process ", index(), ": ", reason);
    store_->at_once->compareSet(processes_detail::kFailed, {}, processes_detail::bytes_of(text));
  } catch (...) {
    // The store is gone, and with it everybody who could listen.
  }
}

base::Result<std::shared_ptr<c10d::Store>> Processes::clone_store() {
  return processes_detail::guarded(at_once_mutex_, placement_, [&] {
    c10::intrusive_ptr<c10d::Store> copy = store_->at_once->clone();
    return std::shared_ptr<c10d::Store>(copy.get(), [copy](c10d::Store*) mutable { copy.reset(); });
  });
}

}  // namespace sluice::replica
