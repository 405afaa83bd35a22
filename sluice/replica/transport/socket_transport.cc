#include "sluice/replica/transport/socket_transport.h"

#include <poll.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <future>
#include <mutex>
#include <thread>

#include "sluice/base/clock.h"
#include "sluice/base/environment.h"
#include "sluice/base/result.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/number.h"
#include "sluice/collectives/reduction.h"
#include "sluice/replica/admission.h"
#include "sluice/replica/loss.h"
#include "sluice/replica/network.h"
#include "sluice/replica/pulse.h"
#include "sluice/replica/transport/transport.h"

namespace sluice::replica {
namespace {

using collectives::HostSpan;
using collectives::Reduction;
using stablehlo::DType;

// Spans of at least kDirect bytes are sent from where they are; smaller ones are collected in buckets.
constexpr size_t kDirect = 4 << 20, kBucket = 25 << 20;
// Received bytes to combine at a time: they stay in a core's cache.
constexpr size_t kPiece = 256 << 10;
// How long a process that lost a connection waits for the others' reports about it, which take some beats.
constexpr double kListenSeconds = 1.5;
// Milliseconds between a waiting process's checks whether the run still continues.
constexpr int kLook = 250;

// The connections of a process in the ring: each sends to the next and receives from the one before.
struct Ring {
  Descriptor next, before;
};

// Bytes that go to the next process while others come from the one before, in pieces of whole units.
struct Step {
  const char* send = nullptr;
  size_t send_bytes = 0;
  size_t receive_bytes = 0;
  size_t unit = 1;
};

class SocketTransport : public collectives::Transport {
 public:
  SocketTransport(std::shared_ptr<Processes> processes, std::shared_ptr<Ring> ring, std::string name)
      : processes_(std::move(processes)), ring_(std::move(ring)), name_(std::move(name)) {}

  base::Result<std::vector<std::string>> exchange(std::string_view bytes) override {
    return exchange_by_gather(bytes, index(), count());
  }

  base::Status all_gather(void* all, size_t bytes) override {
    auto* start = static_cast<char*>(all);
    return guarded([&](Ring& ring) {
      return pass_around(ring, start, [bytes](size_t part) { return std::pair(part * bytes, bytes); });
    });
  }

  base::Status all_reduce(std::span<const HostSpan> spans, DType dtype, Reduction reduction) override {
    return guarded([&](Ring& ring) { return combine(ring, spans, dtype, reduction); });
  }

  void abort(const std::string& reason) override {
    const std::shared_ptr<Ring> ring = take_ring();
    if (!ring) return;
    // Written before the connections close, so that processes that notice find the reason.
    (void)processes_->put_first(stopped_key(), failed_text(processes_->index(), reason));
    for (const Descriptor* each : {&ring->next, &ring->before}) ::shutdown(each->number(), SHUT_RDWR);
  }

 private:
  size_t index() const { return static_cast<size_t>(processes_->index()); }
  size_t count() const { return static_cast<size_t>(processes_->count()); }
  // Returns the process that is `places` before this one in the ring.
  size_t behind(size_t places) const { return (index() + 2 * count() - places) % count(); }
  std::string stopped_key() const { return name_ + " stopped"; }
  std::string lost_key(size_t process) const { return base::str(name_, " lost ", process); }

  std::shared_ptr<Ring> take_ring() {
    std::lock_guard lock(mutex_);
    return std::move(ring_);
  }

  // Runs the call. A failed call ends the transport: the connections close with their last holder, so that
  // all processes notice.
  template <typename Call>
  base::Status guarded(const Call& call) {
    std::shared_ptr<Ring> ring;
    {
      std::lock_guard lock(mutex_);
      ring = ring_;
    }
    if (!ring)
      return base::fail(Code::kFailedPrecondition, "the connection to the other processes has ended");
    if (count() == 1) return {};
    symptom_.clear();
    since_ = base::monotonic_seconds();
    base::Status status = call(*ring);
    if (status) return status;
    ring.reset();
    take_ring().reset();
    return symptom_.empty() ? status : explain(symptom_);
  }

  // Returns the error for a failure of the connection itself.
  template <typename... Pieces>
  base::Status broken(const Pieces&... pieces) {
    symptom_ = base::str(pieces...);
    return base::fail(Code::kUnavailable, symptom_);
  }

  // Returns an error if waiting is of no use any more.
  base::Status still_together() {
    SLUICE_OK(processes_->status());
    SLUICE_TRY(const auto stopped, processes_->try_get(stopped_key()));
    if (stopped) return tl::unexpected<Error>(ending(*stopped));
    const double limit = static_cast<double>(collective_timeout().count()) / 1000;
    if (base::monotonic_seconds() - since_ > limit) return broken("it took more than ", limit, " s");
    return {};
  }

  // Moves bytes in both directions at once: neither end waits for the other to have read everything.
  // `on_received` takes the pieces in order: (address, offset, bytes).
  template <typename OnReceived>
  base::Status move(Ring& ring, const Step& step, const OnReceived& on_received) {
    size_t sent = 0, taken = 0, held = 0;  // held: received bytes that are not yet a whole unit
    piece_.resize(kPiece);
    while (sent < step.send_bytes || taken < step.receive_bytes) {
      bool moved = false;
      if (sent < step.send_bytes) {
        const ssize_t bytes =
            ::send(ring.next.number(), step.send + sent, step.send_bytes - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (bytes < 0 && errno != EAGAIN && errno != EINTR)
          return broken("to process ", (index() + 1) % count(), ": ", std::strerror(errno));
        if (bytes > 0) sent += static_cast<size_t>(bytes);
        moved = bytes > 0;
      }
      if (taken < step.receive_bytes) {
        const size_t room = std::min(kPiece - held, step.receive_bytes - taken - held);
        const ssize_t bytes = ::recv(ring.before.number(), piece_.data() + held, room, MSG_DONTWAIT);
        if (bytes == 0) return broken("process ", behind(1), " closed its connection");
        if (bytes < 0 && errno != EAGAIN && errno != EINTR)
          return broken("from process ", behind(1), ": ", std::strerror(errno));
        if (bytes > 0) {
          held += static_cast<size_t>(bytes);
          const size_t whole = held - held % step.unit;
          on_received(piece_.data(), taken, whole);
          taken += whole;
          held -= whole;
          std::memmove(piece_.data(), piece_.data() + whole, held);
          moved = true;
        }
      }
      if (!moved) SLUICE_OK(wait(ring, sent < step.send_bytes, taken < step.receive_bytes));
    }
    return {};
  }

  base::Status wait(Ring& ring, bool sends, bool receives) {
    pollfd polled[2];
    nfds_t number = 0;
    if (sends) polled[number++] = {ring.next.number(), POLLOUT, 0};
    if (receives) polled[number++] = {ring.before.number(), POLLIN, 0};
    if (::poll(polled, number, kLook) != 0) return {};
    return still_together();
  }

  // Sends each process's part of the memory, `place(process)` -> (offset, bytes), once around the ring. At
  // the start a process has its own part, or the part `ahead` places further on.
  template <typename Place>
  base::Status pass_around(Ring& ring, char* start, const Place& place, size_t ahead = 0) {
    for (size_t s = 0; s + 1 < count(); ++s) {
      const auto [from, from_bytes] = place(behind(count() + s - ahead));
      const auto [to, to_bytes] = place(behind(count() + s + 1 - ahead));
      char* const target = start + to;
      SLUICE_OK(move(
          ring, {start + from, from_bytes, to_bytes, 1},
          [target](const char* data, size_t at, size_t bytes) { std::memcpy(target + at, data, bytes); }));
    }
    return {};
  }

  base::Status combine(Ring& ring, std::span<const HostSpan> spans, DType dtype, Reduction reduction) {
    const size_t size = stablehlo::dtype_size(dtype);
    std::vector<HostSpan> bucket;
    size_t filled = 0;
    const auto send_bucket = [&]() -> base::Status {
      if (filled > 0) SLUICE_OK(combine_bucket(ring, bucket, filled, dtype, reduction));
      bucket.clear();
      filled = 0;
      return {};
    };
    for (const HostSpan& span : spans) {
      const size_t bytes = span.elements * size;
      if (bytes == 0) continue;
      if (bytes >= kDirect) {
        SLUICE_OK(combine_array(ring, static_cast<char*>(span.data), span.elements, dtype, reduction));
        continue;
      }
      if (filled + bytes > kBucket) SLUICE_OK(send_bucket());
      bucket.push_back(span);
      filled += bytes;
    }
    return send_bucket();
  }

  base::Status combine_bucket(Ring& ring, const std::vector<HostSpan>& bucket, size_t filled, DType dtype,
                              Reduction reduction) {
    const size_t size = stablehlo::dtype_size(dtype);
    if (bucket.size() == 1)
      return combine_array(ring, static_cast<char*>(bucket[0].data), bucket[0].elements, dtype, reduction);
    staging_.resize(std::max(staging_.size(), filled));
    size_t at = 0;
    for (const HostSpan& span : bucket) {
      std::memcpy(&staging_[at], span.data, span.elements * size);
      at += span.elements * size;
    }
    SLUICE_OK(combine_array(ring, staging_.data(), filled / size, dtype, reduction));
    at = 0;
    for (const HostSpan& span : bucket) {
      std::memcpy(span.data, &staging_[at], span.elements * size);
      at += span.elements * size;
    }
    return {};
  }

  // Each part (there is one for each process) goes around the ring and collects every process's addend, so
  // that all get the same bits; then the results go around.
  base::Status combine_array(Ring& ring, char* data, size_t elements, DType dtype, Reduction reduction) {
    const size_t size = stablehlo::dtype_size(dtype);
    const auto place = [&](size_t part) {
      const size_t begin = elements * part / count(), end = elements * (part + 1) / count();
      return std::pair(begin * size, (end - begin) * size);
    };
    for (size_t s = 0; s + 1 < count(); ++s) {
      const auto [from, from_bytes] = place(behind(s));
      const auto [to, to_bytes] = place(behind(s + 1));
      char* const target = data + to;
      SLUICE_OK(move(ring, {data + from, from_bytes, to_bytes, size},
                     [&](const char* theirs, size_t at, size_t bytes) {
                       if (bytes == 0) return;
                       void* mine = target + at;
                       const void* inputs[] = {theirs, mine};
                       collectives::reduce(dtype, reduction, inputs, {&mine, 1}, bytes / size);
                     }));
    }
    return pass_around(ring, data, place, 1);
  }

  // Returns why a call failed: the reason that another process gave before it stopped, else the processes
  // that no longer live.
  base::Status explain(const std::string& symptom) {
    SLUICE_OK(processes_->put(lost_key(index()), symptom));
    const double deadline = base::monotonic_seconds() + kListenSeconds;
    std::vector<std::optional<std::string>> first(count());
    std::vector<int> absent, dead;  // not in this collective; also without a beat
    do {
      for (const std::string& key : {stopped_key(), std::string(Pulse::kEnded)}) {
        SLUICE_TRY(const auto reason, processes_->try_get(key));
        if (reason) return tl::unexpected<Error>(ending(*reason));
      }
      absent.clear();
      dead.clear();
      for (size_t p = 0; p < count(); ++p) {
        SLUICE_TRY(const auto lost, processes_->try_get(lost_key(p)));
        if (lost) continue;
        absent.push_back(static_cast<int>(p));
        SLUICE_TRY(const auto beat, processes_->try_get(Pulse::beat_key(absent.back())));
        if (!first[p]) first[p] = beat;
        if (first[p] == beat) dead.push_back(absent.back());
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    } while (!absent.empty() && base::monotonic_seconds() < deadline);
    return verdict(absent, dead, symptom);
  }

  base::Status verdict(const std::vector<int>& absent, const std::vector<int>& dead,
                       const std::string& symptom) {
    if (!dead.empty()) {
      const std::string sign = base::str("in a collective: ", symptom);
      return tl::unexpected<Error>(processes_->end(lost_text(dead, processes_->count(), sign)));
    }
    if (!absent.empty()) {
      return base::fail(Code::kDeadlineExceeded, "process ", base::join(absent, ", "), " of ", count(),
                        " did not come to a collective, though it lives (", symptom,
                        "); raise SLUICE_COLLECTIVE_TIMEOUT if that can be");
    }
    return base::fail(Code::kUnavailable, "the connections between the processes broke (", symptom,
                      "), though all of them live: look at the network, or raise SLUICE_COLLECTIVE_TIMEOUT");
  }

  const std::shared_ptr<Processes> processes_;
  std::mutex mutex_;
  std::shared_ptr<Ring> ring_;
  const std::string name_;
  // State of a call:
  std::string symptom_;
  double since_ = 0;
  std::vector<char> staging_, piece_;
};

// Checks that all processes' addresses can be reached by the others: loopback addresses are allowed only if
// all have one.
base::Status check_addresses(const std::vector<std::string>& addresses) {
  std::vector<size_t> local;
  for (size_t p = 0; p < addresses.size(); ++p) {
    if (is_loopback(addresses[p])) local.push_back(p);
  }
  if (local.empty() || local.size() == addresses.size()) return {};
  return base::fail(Code::kFailedPrecondition, "process ", local[0], "'s address is ", addresses[local[0]],
                    ", which only its own machine can reach: give the coordinator as an address instead of a "
                    "name that means the machine itself there, or name the interface in GLOO_SOCKET_IFNAME");
}

// Reads "10.0.0.2 5000", address and port, as another process published it.
base::Result<std::vector<Endpoint>> endpoint_of(const std::string& text, size_t process) {
  const size_t space = text.rfind(' ');
  const auto port =
      base::number_of<uint16_t>(space == std::string::npos ? "" : std::string_view(text).substr(space + 1));
  if (!port || text.size() > 100)
    return base::fail(Code::kDataLoss, "process ", process, " says that it listens at something of ",
                      text.size(), " bytes, which are not an address and a port");
  return resolve(text.substr(0, space), *port);
}

// Each process listens until the one before it in the ring has connected.
base::Result<std::shared_ptr<Ring>> connect_ring(Processes& processes, const std::string& name,
                                                 const Descriptor& listener,
                                                 const std::vector<std::string>& all) {
  const auto count = static_cast<size_t>(processes.count()), index = static_cast<size_t>(processes.index());
  const size_t next = (index + 1) % count, before = (index + count - 1) % count;
  const auto purpose = [&](size_t from, size_t to) { return base::str(name, " from ", from, " to ", to); };
  SLUICE_TRY(const auto endpoints, endpoint_of(all[next], next));
  std::atomic<bool> given_up{false};
  const Patience late =
      until(base::monotonic_seconds() + static_cast<double>(collective_timeout().count()) / 1000);
  const Patience patience = [&]() -> base::Status {
    SLUICE_OK(processes.status());
    if (given_up) return base::fail(Code::kCancelled, "the other connection failed");
    return late();
  };
  auto comes = std::async(std::launch::async, [&] {
    auto found = accept_known(listener.number(), processes.key(), purpose(before, index), patience);
    if (!found) given_up = true;
    return found;
  });
  auto went = connect_known(endpoints, processes.key(), purpose(index, next), patience);
  if (!went) given_up = true;
  auto came = comes.get();
  if (!went && went.error().code() != Code::kCancelled) return tl::unexpected<Error>(went.error());
  if (!came) return tl::unexpected<Error>(came.error());
  if (!went) return tl::unexpected<Error>(went.error());
  return std::make_shared<Ring>(Ring{std::move(*went), std::move(*came)});
}

}  // namespace

base::Result<std::shared_ptr<collectives::Transport>> make_socket_transport(
    const std::shared_ptr<Processes>& processes) {
  static std::atomic<int> made{0};
  const std::string name = base::str("collectives ", made++);
  const auto interface = base::environment("GLOO_SOCKET_IFNAME");
  SLUICE_TRY(const std::string address, interface ? address_of_interface(*interface)
                                                  : address_towards(processes->placement().coordinator));
  SLUICE_TRY(const Listening listening, listen_at(address, 0, true));
  const Descriptor& listener = listening.sockets.front();
  const std::string where = text_of(own_endpoint(listener.number()));
  const std::string port = where.substr(where.rfind(':') + 1);
  SLUICE_TRY(const auto all, processes->gather(name + " addresses", base::str(address, ' ', port)));
  std::vector<std::string> addresses;
  for (const std::string& each : all) addresses.push_back(each.substr(0, each.rfind(' ')));
  SLUICE_OK(check_addresses(addresses));
  std::shared_ptr<Ring> ring = std::make_shared<Ring>();
  if (processes->count() > 1) {
    auto connected = connect_ring(*processes, name, listener, all);
    SLUICE_OK(processes->status());
    if (!connected)
      return base::fail(Code::kUnavailable, "process ", processes->index(), " (", address,
                        ") cannot connect to the other processes (", base::join(addresses, ", "),
                        "): ", connected.error().what(), ". May the machines reach each other on all ports?");
    ring = std::move(*connected);
  }
  // A connected process may finish or give up while another still connects to it.
  SLUICE_TRY(const auto connected, processes->gather(name + " connected", ""));
  return std::make_shared<SocketTransport>(processes, std::move(ring), name);
}

}  // namespace sluice::replica
