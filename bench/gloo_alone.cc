#include "bench/gloo_alone.h"

#include <ATen/ops/from_blob.h>

#include <cstring>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <vector>

namespace sluice::bench {

constexpr size_t kDirect = 1 << 20, kBucket = 25 << 18;  // floats

struct GlooAlone::State {
  c10::intrusive_ptr<c10d::ProcessGroupGloo> group;
  std::vector<float> bucket = std::vector<float>(kBucket);

  void sum(float* data, size_t elements) {
    std::vector<at::Tensor> one = {at::from_blob(data, {static_cast<int64_t>(elements)}, at::kFloat)};
    group->allreduce(one)->wait();
  }
  void sum_bucket(std::span<const collectives::HostSpan> spans) {
    size_t at = 0;
    for (const auto& span : spans) {
      std::memcpy(&bucket[at], span.data, span.elements * sizeof(float));
      at += span.elements;
    }
    if (at > 0) sum(bucket.data(), at);
    at = 0;
    for (const auto& span : spans) {
      std::memcpy(span.data, &bucket[at], span.elements * sizeof(float));
      at += span.elements;
    }
  }
};

GlooAlone::GlooAlone(int index, int count, uint16_t port) : state_(std::make_unique<State>()) {
  c10d::TCPStoreOptions store;
  store.port = port;
  store.isServer = index == 0;
  store.waitWorkers = false;
  auto options = c10d::ProcessGroupGloo::Options::create(std::chrono::minutes(5));
  options->threads = 1;
  options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1"));
  state_->group = c10::make_intrusive<c10d::ProcessGroupGloo>(
      c10::make_intrusive<c10d::TCPStore>("127.0.0.1", store), index, count, options);
}

GlooAlone::~GlooAlone() = default;

void GlooAlone::sum(std::span<const collectives::HostSpan> spans) {
  std::vector<collectives::HostSpan> small;
  size_t filled = 0;
  for (const auto& span : spans) {
    if (span.elements >= kDirect) {
      state_->sum(static_cast<float*>(span.data), span.elements);
      continue;
    }
    if (filled + span.elements > kBucket) {
      state_->sum_bucket(small);
      small.clear();
      filled = 0;
    }
    small.push_back(span);
    filled += span.elements;
  }
  state_->sum_bucket(small);
}

}  // namespace sluice::bench
