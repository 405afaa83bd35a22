#include "sluice/session/deliveries.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

#include "sluice/base/error.h"
#include "sluice/base/span.h"
#include "sluice/base/text/join.h"

namespace sluice::sessions {
namespace deliveries_detail {

bool is_mean(at::ScalarType dtype) { return at::isFloatingType(dtype); }

// The sum in a type that is exact enough for the mean of many values.
at::Tensor sum_of(const std::vector<at::Tensor>& parts) {
  const bool mean = is_mean(parts[0].scalar_type());
  return at::stack(parts).to(mean ? at::kDouble : at::kLong).sum(0).contiguous();
}

}  // namespace deliveries_detail

Deliveries::Deliveries(std::shared_ptr<const Backend> backend, std::shared_ptr<replica::Processes> processes)
    : backend_(std::move(backend)), processes_(std::move(processes)) {}

void Deliveries::add(const std::vector<at::Tensor>& values, Function function, bool alone) {
  Delivery delivery;
  for (const at::Tensor& value : values) delivery.pending.push_back(backend_->fetch(value));
  delivery.function = std::move(function);
  delivery.alone = alone;
  deliveries_.push_back(std::move(delivery));
}

void Deliveries::deliver(bool wait) {
  if (deliveries_.empty()) return;
  const base::Span span("deliver values");
  try {
    while (!deliveries_.empty() && complete(deliveries_.front(), wait)) {
      const Delivery due = std::move(deliveries_.front());
      deliveries_.pop_front();
      due.function(results(due));
    }
  } catch (const std::exception& error) {
    deliveries_.clear();  // further deliveries would only repeat the error
    // The other processes are not at this call: they would wait for this one, or end without a known cause.
    if (!wait && processes_ != nullptr) processes_->fail(error.what());
    throw;
  }
}

bool Deliveries::complete(Delivery& delivery, bool wait) {
  if (!take_values(delivery, wait)) return false;
  if (!delivery.offer) return true;
  if (wait) {
    add_up(delivery, base::value_or_throw(processes_->collect(*delivery.offer)));
    return true;
  }
  const auto parts = base::value_or_throw(processes_->try_collect(*delivery.offer));
  if (parts) add_up(delivery, *parts);
  return parts.has_value();
}

bool Deliveries::take_values(Delivery& delivery, bool wait) {
  const auto ready = [](const Pending& value) { return value.ready(); };
  if (delivery.values.size() == delivery.pending.size()) return true;
  if (!wait && !std::all_of(delivery.pending.begin(), delivery.pending.end(), ready)) return false;
  for (const Pending& pending : delivery.pending) {
    const std::vector<at::Tensor> parts = pending.get();
    const bool equal = pending.global() || backend_->replicas() == 1;
    delivery.values.push_back(
        {equal ? parts[0] : deliveries_detail::sum_of(parts), parts[0].scalar_type(), equal});
  }
  if (processes_ != nullptr && !delivery.alone) offer_values(delivery);
  return true;
}

void Deliveries::offer_values(Delivery& delivery) {
  std::string mine;
  for (const Value& value : delivery.values)
    if (!value.equal)
      mine.append(static_cast<const char*>(value.tensor.const_data_ptr()), value.tensor.nbytes());
  if (!mine.empty()) delivery.offer = base::value_or_throw(processes_->offer("values", mine));
}

void Deliveries::add_up(Delivery& delivery, const std::vector<std::string>& parts) {
  size_t offset = 0, expected = 0;
  for (const Value& value : delivery.values)
    if (!value.equal) expected += value.tensor.nbytes();
  for (size_t p = 0; p < parts.size(); ++p)
    if (parts[p].size() != expected)
      throw_error(Code::kFailedPrecondition,
                  base::str("process ", p, " gives ", parts[p].size(), " bytes of values and this one ",
                            expected, ": all processes must log and measure the same values"));
  for (Value& value : delivery.values) {
    if (value.equal) continue;
    at::Tensor sum = at::zeros_like(value.tensor);
    for (const std::string& part : parts)
      sum += at::from_blob(const_cast<char*>(part.data()) + offset, sum.sizes(), sum.options());
    offset += sum.nbytes();
    value.tensor = sum;
  }
}

std::vector<at::Tensor> Deliveries::results(const Delivery& delivery) const {
  const int replicas = delivery.alone ? backend_->local_replicas() : backend_->replicas();
  std::vector<at::Tensor> all;
  for (const Value& value : delivery.values) {
    const bool mean = !value.equal && deliveries_detail::is_mean(value.dtype);
    all.push_back(mean ? value.tensor.div(replicas).to(value.dtype) : value.tensor);
  }
  return all;
}

}  // namespace sluice::sessions
