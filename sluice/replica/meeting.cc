#include "sluice/replica/meeting.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "sluice/base/clock.h"
#include "sluice/base/files/secret.h"
#include "sluice/base/formats/sha256.h"
#include "sluice/base/log.h"
#include "sluice/base/text/join.h"
#include "sluice/replica/slices.h"
#include "sluice/replica/store/store_client.h"
#include "sluice/replica/store/store_server.h"

namespace sluice::replica {
namespace meeting_detail {

constexpr const char* kKey = "meeting";  // its value names the latest meeting
// Within this time a store with another key may belong to a run that is about to end.
constexpr double kOtherKeySeconds = 15;
// A name may get its address while its pod starts, and its absence may be cached for 30 s. The user is
// informed sooner.
constexpr double kNamelessSeconds = 45;
constexpr double kTellNameless = 2;
constexpr double kTellLate = 15;  // until a process says that it waits for process 0

struct Server {
  std::unique_ptr<StoreServer> store;
  std::string id;  // a store of another program at this address has another id
  int meetings = 0;
};

struct State {
  std::mutex mutex;
  std::map<std::pair<uint16_t, std::string>, Server> servers;  // [port, key]
  std::map<std::pair<std::string, int>, std::string> been_to;  // [address, process]: the latest meeting
};
// Its servers answer until the program ends.
State& state() {
  static auto* all = new State();
  return *all;
}

// Returns whether all processes are known to be on one machine.
bool on_one_machine(const Placement& placement) {
  const auto& hosts = placement.hosts;
  return !hosts.empty() &&
         std::all_of(hosts.begin(), hosts.end(), [&](const std::string& each) { return each == hosts[0]; });
}

void tell_where(const Listening& listening, const std::string& key) {
  const Endpoint first = own_endpoint(listening.sockets.front().number());
  if (!key.empty() || (!listening.everywhere && is_loopback(first))) return;
  base::info("the processes meet at ", text_of(first),
             ", which is open to whoever reaches it: the launcher hands on no key. To close it, set "
             "SLUICE_RUN_KEY to the same secret for all processes (`openssl rand -hex 32` makes one)");
}

base::Result<Meeting> begin(const Placement& placement, const std::string& host, uint16_t port,
                            const std::string& key, const Patience& patience) {
  std::scoped_lock lock(state().mutex);
  Server& server = state().servers[{port, key}];
  if (!server.store) {
    SLUICE_TRY(Listening listening, listen_at(host, port, on_one_machine(placement)));
    tell_where(listening, key);
    SLUICE_TRY(server.store, StoreServer::start(std::move(listening), key));
    server.id = base::hexadecimal(base::random_bytes(8));
  }
  const Endpoint& endpoint = server.store->endpoint();
  SLUICE_TRY(auto connection, StoreConnection::open({endpoint}, key, patience));
  const std::string name = base::str(server.id, " ", ++server.meetings);
  SLUICE_TRY(const auto kept, connection.ask({StoreOrder::kSet, {kKey, name}}, patience));
  return Meeting{endpoint, name};
}

// Returns the latest meeting of the store there; waits while there is no new one.
base::Result<Meeting> look(const std::string& host, uint16_t port, const std::string& key,
                           const Patience& patience, const std::string& before) {
  SLUICE_TRY(const auto endpoints, resolve(host, port));  // only this call fails with kNotFound
  SLUICE_TRY(auto connection, StoreConnection::open(endpoints, key, patience));
  while (true) {
    SLUICE_TRY(const auto answer, connection.ask({StoreOrder::kGet, {kKey}}, patience));
    if (!answer.value.empty() && answer.value != before) return Meeting{connection.endpoint(), answer.value};
    SLUICE_OK(patience());
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

base::Result<Meeting> come_to(const Placement& placement, const std::string& host, uint16_t port,
                              const std::string& key, const Patience& patience) {
  const std::pair address(base::str(host, ":", port), placement.process_id);
  const std::string before = [&] {
    std::scoped_lock lock(state().mutex);
    return state().been_to[address];
  }();
  double other_key_since = 0, nameless_since = 0;
  bool has_told = false;
  const double began = base::monotonic_seconds();
  while (true) {
    auto found = look(host, port, key, patience, before);
    if (found) {
      std::scoped_lock lock(state().mutex);
      state().been_to[address] = found->name;
      return found;
    }
    // The program that keeps the store may be about to start, or an earlier one may be about to end.
    const double now = base::monotonic_seconds();
    if (found.error().code() != Code::kPermissionDenied)
      other_key_since = 0;
    else if (other_key_since == 0)
      other_key_since = now;
    else if (now - other_key_since > kOtherKeySeconds)
      return found;
    if (found.error().code() != Code::kNotFound)
      nameless_since = 0;
    else if (nameless_since == 0)
      nameless_since = now;
    else if (now - nameless_since > kNamelessSeconds)
      return found;
    if (nameless_since > 0 && now - nameless_since > kTellNameless && !std::exchange(has_told, true))
      base::warn("process ", placement.process_id, " waits for process 0: ", found.error().what(), "; ",
                 kHowToName);
    if (now - began > kTellLate && !std::exchange(has_told, true))
      base::warn("process ", placement.process_id, " waits for process ", process_text(placement, 0), " at ",
                 placement.coordinator, ", which has not come yet: ", found.error().what());
    if (!patience()) return found;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

}  // namespace meeting_detail

base::Result<Meeting> meet(const Placement& placement, const std::string& host, uint16_t port,
                           const std::string& key, std::chrono::seconds timeout) {
  const Patience patience = until(base::monotonic_seconds() + static_cast<double>(timeout.count()));
  return placement.process_id == 0 ? meeting_detail::begin(placement, host, port, key, patience)
                                   : meeting_detail::come_to(placement, host, port, key, patience);
}

}  // namespace sluice::replica
