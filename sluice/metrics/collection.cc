#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/metrics/definition.h"
#include "sluice/session/backend.h"

namespace sluice::metrics {
namespace collection_detail {

// The scope in which metrics are recorded, without gradients and without autocast's types.
struct Plain {
  torch::NoGradGuard no_grad;
  c10::impl::ExcludeDispatchKeyGuard no_autocast{c10::autocast_dispatch_keyset};
};

template <typename Named>
std::string nearest_of(const std::string& name, const std::vector<Named>& known) {
  if (known.empty()) return "there are no values";
  const std::string nearest = base::nearest(name, known);
  return base::str("there are ", base::join(known, ", "),
                   nearest.empty() ? "" : base::str("; did you mean \"", nearest, "\"?"));
}

// Returns a host tensor on all replicas. It is uploaded, not recorded as a constant, so that the first batch
// runs the same program as all others.
torch::Tensor on_device(Session& session, const torch::Tensor& host) {
  return session.backend().upload_equal(host);
}

}  // namespace collection_detail

Metric::Metric(std::shared_ptr<const Definition> definition)
    : definition_(std::move(definition)), name_(definition_->name()) {}

Metric Metric::named(std::string name) const {
  Metric other = *this;
  other.name_ = std::move(name);
  return other;
}

const Value& Values::value(const std::string& name) const {
  std::vector<std::string> known;
  for (const Value& one : numbers) {
    if (one.name == name) return one;
    known.push_back(one.name);
  }
  throw_error(Code::kNotFound, base::str("cannot find a number called \"", name,
                                         "\": ", collection_detail::nearest_of(name, known)));
}

const torch::Tensor& Values::tensor(const std::string& name) const {
  std::vector<std::string> known;
  for (const auto& [own, value] : tensors) {
    if (own == name) return value;
    known.push_back(own);
  }
  throw_error(Code::kNotFound,
              base::str("no tensor is called \"", name, "\": ", collection_detail::nearest_of(name, known)));
}

struct Collection::State {
  struct Entry {
    Metric metric;
    Sums sums;
    std::vector<torch::Tensor> constants;
    const KeyDefinition* counted = nullptr;  // of `metric`; null for a metric of sums
    KeyCounts keys;
  };
  // Returns the totals of this process's replicas: whole numbers as int64, others as f64.
  Sums local_totals() {
    session.sync("metrics");
    std::vector<sessions::Pending> coming;
    for (const Entry& entry : entries)
      for (const torch::Tensor& sum : entry.sums) coming.push_back(session.backend().fetch(sum));
    Sums totals;
    for (const sessions::Pending& sum : coming) {
      torch::Tensor total;
      for (const torch::Tensor& one : sum.get()) {
        const auto type = one.scalar_type() == torch::kLong ? torch::kLong : torch::kDouble;
        total = total.defined() ? total + one.to(type) : one.to(type);
      }
      totals.push_back(total);
    }
    return totals;
  }
  // Returns the totals of all processes, and for each metric of keys their counts. They are exchanged as
  // bytes, so that neither a program nor rounding changes them.
  struct Totals {
    Sums sums;
    std::vector<KeyCounts> keys;
  };
  Totals totals() {
    Totals own{local_totals(), {}};
    for (Entry& entry : entries) {
      entry.keys.finish();
      if (entry.counted != nullptr) own.keys.push_back(entry.keys);
    }
    // A mesh over processes has counted the whole batch in each of them.
    if (session.processes() == 1 || session.backend().spans_processes()) return own;
    std::string bytes;
    for (torch::Tensor& total : own.sums) {
      total = total.contiguous();
      bytes.append(static_cast<const char*>(total.const_data_ptr()), total.nbytes());
    }
    for (const KeyCounts& keys : own.keys) keys.append_to(bytes);
    Totals all{{}, std::vector<KeyCounts>(own.keys.size())};
    for (const torch::Tensor& total : own.sums) all.sums.push_back(torch::zeros_like(total));
    for (const std::string& one : session.gather_on_host("metrics", bytes))
      if (!add(all, one)) throw_error(Code::kFailedPrecondition, "the processes measure different metrics");
    return all;
  }
  // Adds the totals of a process. Returns false if they belong to other metrics.
  static bool add(Totals& all, std::string_view bytes) {
    for (torch::Tensor& total : all.sums) {
      if (bytes.size() < total.nbytes()) return false;
      torch::Tensor part = torch::empty_like(total);
      std::memcpy(part.data_ptr(), bytes.data(), part.nbytes());
      bytes.remove_prefix(part.nbytes());
      total += part;
    }
    return std::all_of(all.keys.begin(), all.keys.end(), [&](KeyCounts& keys) { return keys.read(bytes); }) &&
           bytes.empty();
  }

  Session session;
  std::vector<Entry> entries;
};

Collection::Collection(const Session& session, std::vector<Metric> metrics)
    : state_(std::make_unique<State>(State{session, {}})) {
  for (Metric& metric : metrics) {
    const std::string& name = metric.name();
    if (std::any_of(state_->entries.begin(), state_->entries.end(),
                    [&](const auto& entry) { return entry.metric.name() == name; }))
      throw_error(Code::kInvalidArgument, base::str("two metrics are called \"", name,
                                                    "\": give one of them another name, with .named(\"…\")"));
    State::Entry entry{metric, {}, {}, dynamic_cast<const KeyDefinition*>(&metric.definition()), {}};
    for (const torch::Tensor& zero : metric.definition().zeros())
      entry.sums.push_back(collection_detail::on_device(state_->session, zero));
    for (const torch::Tensor& constant : metric.definition().constants())
      entry.constants.push_back(collection_detail::on_device(state_->session, constant));
    state_->entries.push_back(std::move(entry));
  }
}
Collection::Collection(Collection&&) noexcept = default;
Collection& Collection::operator=(Collection&&) noexcept = default;
Collection::~Collection() = default;

void Collection::update(const torch::Tensor& output, const torch::Tensor& target, const torch::Tensor& mask) {
  const collection_detail::Plain plain;
  const Input input{output, target, mask};
  for (auto& [metric, sums, constants, counted, keys] : state_->entries) {
    metric.definition().update(metric.name(), sums, constants, input);
    if (counted != nullptr) keys.add(state_->session.backend().fetch(counted->keys(metric.name(), input)));
  }
}

void Collection::add(const std::string& name, const torch::Tensor& value, const torch::Tensor& weight) {
  const collection_detail::Plain plain;
  std::vector<std::string> means;
  for (const auto& [metric, sums, constants, counted, keys] : state_->entries) {
    const auto* mean = dynamic_cast<const MeanDefinition*>(&metric.definition());
    if (mean != nullptr && metric.name() == name) return mean->add(name, sums, value, weight);
    if (mean != nullptr) means.push_back(metric.name());
  }
  throw_error(Code::kNotFound,
              base::str("no Mean is called \"", name, "\": ", collection_detail::nearest_of(name, means)));
}

Values Collection::compute() {
  const collection_detail::Plain plain;
  const State::Totals all = state_->totals();
  auto next = all.sums.begin();
  auto next_keys = all.keys.begin();
  Values values;
  for (const auto& entry : state_->entries) {
    Sums totals;
    for (size_t i = 0; i < entry.sums.size(); ++i, ++next)
      // A sum that is not a count comes with its rounding error; a device may not have f64.
      totals.push_back(next->scalar_type() == torch::kLong ? *next : next->sum());
    entry.metric.definition().compute(entry.metric.name(), totals, values);
    if (entry.counted != nullptr)
      entry.counted->compute_keys(entry.metric.name(), (next_keys++)->sorted(), values);
  }
  return values;
}

void Collection::reset() {
  const collection_detail::Plain plain;
  for (auto& [metric, sums, constants, counted, keys] : state_->entries) {
    keys.clear();
    const Sums zeros = metric.definition().zeros();
    // In place: a captured function continues to use the same tensors.
    for (size_t i = 0; i < sums.size(); ++i)
      sums[i].copy_(collection_detail::on_device(state_->session, zeros[i]));
  }
}

}  // namespace sluice::metrics
