#include "sluice/replica/gloo_transport.h"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "sluice/base/clock.h"
#include "sluice/base/environment.h"
#include "sluice/collectives/reduction.h"
#include "sluice/replica/gloo_network.h"
#include "sluice/replica/loss.h"
#include "sluice/replica/pulse.h"
#include "sluice/replica/transport.h"

namespace sluice::replica {
namespace {

using collectives::HostSpan;
using collectives::Reduction;
using stablehlo::DType;

// Spans of at least kDirect bytes are sent from where they are; smaller ones are collected in buckets.
constexpr size_t kDirect = 4 << 20, kBucket = 25 << 20;
// Of each process at a time, where parts are gathered to be combined here.
constexpr size_t kPiece = 4 << 20;
// How long a process that lost a connection listens for what the others know about it, which takes some
// beats.
constexpr double kListenSeconds = 1.5;
// How often a process that waits looks whether the run still goes on.
constexpr auto kLook = std::chrono::milliseconds(250);

// The type as which Gloo sums this one; nothing when it cannot.
std::optional<at::ScalarType> gloo_sum_type(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return at::kFloat;
    case DType::kF64:
      return at::kDouble;
    case DType::kF16:
      return at::kHalf;
    case DType::kBF16:
      return at::kBFloat16;
    case DType::kS32:
    case DType::kU32:
      return at::kInt;
    case DType::kS64:
    case DType::kU64:
      return at::kLong;
    default:
      return std::nullopt;
  }
}

std::string first_line(const std::exception& error) {
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

// "Connection closed by peer [10.0.0.2]:3456" of "[/long/path.cc:12] Connection … This is typically caused
// …".
std::string symptom_of(const std::exception& error) {
  std::string text = first_line(error);
  if (const size_t place = text.find("] "); text.starts_with("[/") && place != std::string::npos) {
    text.erase(0, place + 2);
  }
  return text.substr(0, text.find(". This is"));
}

// Why a call is waited for no longer.
struct GivenUp : std::runtime_error {
  explicit GivenUp(const Error& error) : std::runtime_error(error.what()), why(error) {}
  Error why;
};

// The connections that a call goes over.
class Connections : c10d::ProcessGroupGloo::AsyncWork {
 public:
  static void close(const c10d::Work& call) {
    (static_cast<const c10d::ProcessGroupGloo::AsyncWork&>(call).*&Connections::context_)->closeConnections();
  }
};

class GlooTransport : public collectives::Transport {
 public:
  GlooTransport(std::shared_ptr<Processes> processes, c10::intrusive_ptr<c10d::ProcessGroupGloo> group,
                std::string name)
      : processes_(std::move(processes)), group_(std::move(group)), name_(std::move(name)) {}

  base::Result<std::vector<std::string>> exchange(std::string_view bytes) override {
    return exchange_by_gather(bytes, index(), count());
  }

  base::Status all_gather(void* all, size_t bytes) override {
    return guarded([&](c10d::ProcessGroupGloo& group) {
      auto* start = static_cast<char*>(all);
      at::Tensor whole = tensor(start, bytes * count(), at::kByte);
      // Gloo copies its input into its place of the output: they must not be one memory.
      at::Tensor mine = tensor(start + bytes * index(), bytes, at::kByte).clone();
      finish(group._allgather_base(whole, mine), group);
    });
  }

  base::Status all_reduce(std::span<const HostSpan> spans, DType dtype, Reduction reduction) override {
    const auto type = gloo_sum_type(dtype);
    if (reduction != Reduction::kSum || !type) return reduce_here(spans, dtype, reduction);
    return guarded([&](c10d::ProcessGroupGloo& group) { sum(group, spans, dtype, *type); });
  }

  void abort(const std::string& reason) override {
    const c10::intrusive_ptr<c10d::ProcessGroupGloo> group = take_group();
    // Said before the connections close, so that who notices finds the reason.
    if (group) (void)processes_->put_first(stopped_key(), failed_text(processes_->index(), reason));
  }

 private:
  size_t index() const { return static_cast<size_t>(processes_->index()); }
  size_t count() const { return static_cast<size_t>(processes_->count()); }
  std::string stopped_key() const { return name_ + " stopped"; }
  std::string lost_key(size_t process) const { return base::str(name_, " lost ", process); }

  static at::Tensor tensor(void* data, size_t elements, at::ScalarType type) {
    return at::from_blob(data, {static_cast<int64_t>(elements)}, at::TensorOptions().dtype(type));
  }

  c10::intrusive_ptr<c10d::ProcessGroupGloo> take_group() {
    std::lock_guard lock(mutex_);
    return std::move(group_);
  }

  // Runs the call; an exception ends the transport.
  template <typename Call>
  base::Status guarded(const Call& call) {
    c10::intrusive_ptr<c10d::ProcessGroupGloo> group;
    {
      std::lock_guard lock(mutex_);
      group = group_;
    }
    if (!group) {
      return base::fail(Code::kFailedPrecondition, "the connection to the other processes has ended");
    }
    std::string symptom;
    try {
      call(*group);
      return {};
    } catch (const GivenUp& given_up) {
      take_group().reset();
      return tl::unexpected<Error>(given_up.why);
    } catch (const std::exception& error) {
      symptom = symptom_of(error);
    }
    group.reset();  // the connections close with the last holder, so that everybody notices
    return explain(symptom);
  }

  // Waits for a call. Gloo alone may wait forever: for a process that is stopped, and now and then for one
  // that was killed, when it overlooks that the connection closed.
  void finish(c10::intrusive_ptr<c10d::Work> work, c10d::ProcessGroupGloo& group) const {
    while (!ends(*work)) {
      const base::Status status = still_together();
      if (status) continue;
      // Nothing more arrives in the call's memory once its connections are closed. A call that does not end
      // even so stays behind with its thread.
      Connections::close(*work);
      if (!ends(*work)) {
        work.release();
        c10::intrusive_ptr<c10d::ProcessGroupGloo>::reclaim_copy(&group).release();
      }
      throw GivenUp(status.error());
    }
  }

  // Whether the call ends soon; throws its error.
  static bool ends(c10d::Work& work) {
    try {
      return work.wait(kLook);
    } catch (const std::exception&) {
      // Its own error, or that it has not ended, which does not break it.
      return work.isCompleted() && work.wait();
    }
  }

  // Whether it is still worth waiting.
  base::Status still_together() const {
    SLUICE_OK(processes_->status());
    SLUICE_TRY(const auto stopped, processes_->try_get(stopped_key()));
    if (stopped) return tl::unexpected<Error>(ending(*stopped));
    return {};
  }

  void sum(c10d::ProcessGroupGloo& group, std::span<const HostSpan> spans, DType dtype, at::ScalarType type) {
    const size_t size = stablehlo::dtype_size(dtype);
    std::vector<HostSpan> bucket;
    size_t filled = 0;
    const auto send_bucket = [&] {
      if (filled > 0) sum_bucket(group, bucket, filled, size, type);
      bucket.clear();
      filled = 0;
    };
    for (const HostSpan& span : spans) {
      const size_t bytes = span.elements * size;
      if (bytes == 0) continue;
      if (bytes >= kDirect) {
        std::vector<at::Tensor> one = {tensor(span.data, span.elements, type)};
        finish(group.allreduce(one), group);
        continue;
      }
      if (filled + bytes > kBucket) send_bucket();
      bucket.push_back(span);
      filled += bytes;
    }
    send_bucket();
  }

  void sum_bucket(c10d::ProcessGroupGloo& group, const std::vector<HostSpan>& bucket, size_t filled,
                  size_t size, at::ScalarType type) {
    if (bucket.size() > 1) staging_.resize(std::max(staging_.size(), filled));
    char* start = bucket.size() > 1 ? staging_.data() : static_cast<char*>(bucket[0].data);
    size_t at = 0;
    for (const HostSpan& span : bucket) {
      if (bucket.size() > 1) std::memcpy(start + at, span.data, span.elements * size);
      at += span.elements * size;
    }
    std::vector<at::Tensor> one = {tensor(start, filled / size, type)};
    finish(group.allreduce(one), group);
    at = 0;
    for (const HostSpan& span : bucket) {
      if (bucket.size() > 1) std::memcpy(span.data, start + at, span.elements * size);
      at += span.elements * size;
    }
  }

  // What Gloo has no arithmetic for, or another than ours (its maximum may lose a NaN).
  base::Status reduce_here(std::span<const HostSpan> spans, DType dtype, Reduction reduction) {
    const size_t size = stablehlo::dtype_size(dtype);
    for (const HostSpan& span : spans) {
      for (size_t begin = 0; begin < span.elements; begin += kPiece / size) {
        const size_t elements = std::min(kPiece / size, span.elements - begin), bytes = elements * size;
        staging_.resize(std::max(staging_.size(), bytes * count()));
        void* piece = static_cast<char*>(span.data) + begin * size;
        std::memcpy(&staging_[bytes * index()], piece, bytes);
        SLUICE_OK(all_gather(staging_.data(), bytes));
        std::vector<const void*> inputs;
        for (size_t p = 0; p < count(); ++p) inputs.push_back(&staging_[bytes * p]);
        collectives::reduce(dtype, reduction, inputs, {&piece, 1}, elements);
      }
    }
    return {};
  }

  // Why a call failed: what another process said before it stopped, or else who does not live any more.
  base::Status explain(const std::string& symptom) {
    take_group().reset();
    SLUICE_OK(processes_->put(lost_key(index()), symptom));
    const double deadline = base::monotonic_seconds() + kListenSeconds;
    std::vector<std::optional<std::string>> first(count());
    std::vector<int> absent, dead;  // not in this collective; without a beat too
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
  c10::intrusive_ptr<c10d::ProcessGroupGloo> group_;
  const std::string name_;
  std::vector<char> staging_;
};

// All processes' addresses must be reachable for the others: those of one machine's own only when all are.
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

}  // namespace

base::Result<std::shared_ptr<collectives::Transport>> make_gloo_transport(
    const std::shared_ptr<Processes>& processes) {
  static std::atomic<int> made{0};
  const std::string name = base::str("collectives ", made++);
  const std::string interface = base::environment("GLOO_SOCKET_IFNAME").value_or("");
  std::string address = interface;
  if (interface.empty()) {
    SLUICE_TRY(address, address_towards(processes->placement().coordinator));
  }
  SLUICE_TRY(const auto addresses, processes->gather(name + " addresses", address));
  SLUICE_OK(check_addresses(addresses));
  SLUICE_TRY(const std::shared_ptr<c10d::Store> store, processes->clone_store());
  try {
    auto own = c10::intrusive_ptr<c10d::Store>::reclaim_copy(store.get());
    auto prefixed = c10::make_intrusive<c10d::PrefixStore>(name, own);
    auto options = c10d::ProcessGroupGloo::Options::create(collective_timeout());
    options->threads = 1;
    options->devices.push_back(interface.empty()
                                   ? c10d::ProcessGroupGloo::createDeviceForHostname(address)
                                   : c10d::ProcessGroupGloo::createDeviceForInterface(interface));
    auto group = c10::make_intrusive<c10d::ProcessGroupGloo>(prefixed, processes->index(), processes->count(),
                                                             options);
    // One that is connected may be done, or give up, while another still connects to it.
    SLUICE_OK(processes->gather(name + " connected", ""));
    return std::make_shared<GlooTransport>(processes, std::move(group), name);
  } catch (const std::exception& error) {
    return base::fail(Code::kUnavailable, "process ", processes->index(), " (", address,
                      ") cannot connect to the other processes (", base::join(addresses, ", "),
                      "): ", first_line(error), ". May the machines reach each other on all ports?");
  }
}

}  // namespace sluice::replica
