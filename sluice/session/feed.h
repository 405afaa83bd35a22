// Feed: the batches of an epoch on the device, prepared before the step that needs them.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "sluice/base/export.h"
#include "sluice/data/stream.h"

SLUICE_API_BEGIN

namespace sluice {

// One batch on the device. N is the batch size of one replica.
struct Batch {
  torch::Tensor image;   // the first column; f32 [N, C, H, W] when it was made of images
  torch::Tensor label;   // the second column, or what the dataset calls the label; int64 [N]
  torch::Tensor mask;    // bool [N], true for a sample; only when the dataset pads, else undefined
  torch::Tensor weight;  // f32, 0-dim: this replica's part of the global mean; defined when `mask` is
  std::vector<torch::Tensor> columns;  // all columns that are numbers, in order
  int64_t count = 0;                   // samples on all replicas of this process, without padding
  int64_t index = 0;                   // the batch's number in its epoch
  std::vector<std::string> keys;       // the samples' keys, replica after replica; empty for ranges
};

struct FeedOptions {
  int64_t epoch = -1;    // the data set's epoch; -1: the next one each time the set is fed
  int64_t skip = 0;      // batches to leave out at the beginning, to continue within an epoch
  int64_t prefetch = 2;  // the number of batches on the device ahead of the step
  // The result of Dataset::state() when the epoch was left at `skip`: if the order of the samples has changed
  // since, feeding is an error. Empty: not checked.
  std::string state = {};
  bool normalize = true;  // uint8 images become f32, (pixel / 255 − mean) / deviation, on the device
};

// Where the time of a feed went. Shares are parts of the time since the feed was made.
struct FeedStatistics {
  double waiting = 0;     // the loop's share waiting for a batch: the time that the run was input-bound
  double starving = 0;    // seconds, not a share, of this waiting with no program on the device
  double uploading = 0;   // the feeding thread's share spent uploading to the device
  bool has_data = false;  // false for feeds of ranges
  data::Statistics data;  // of the shards' reader
  const char* narrowest = "input";  // the busiest stage: "read", "decode" or "upload"
};

namespace sessions {
class Backend;

// One replica's batch on the host.
struct HostBatch {
  std::vector<at::Tensor> columns;
  at::Tensor image;
  at::Tensor label;
  at::Tensor mask;
  float weight = 1;
  int64_t count = 0;
  std::vector<std::string> keys;
};
// Returns the next batches, one for each replica; an empty list at the end. Called from the feeding thread.
using HostSource = std::function<std::vector<HostBatch>()>;
}  // namespace sessions

// Batches in their order, for one pass; a background thread reads and uploads ahead. Each increment ends the
// graph if work is pending. Threads: the session's. An error of the source is thrown where its batch would
// have come.
class Feed {
 public:
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    using pointer = Batch*;
    using reference = Batch&;

    Batch& operator*() const { return *current_; }
    Batch* operator->() const { return current_.get(); }
    Iterator& operator++();
    void operator++(int) { ++*this; }
    bool operator==(const Iterator& other) const { return current_ == other.current_; }

   private:
    friend class Feed;
    Feed* feed_ = nullptr;
    std::shared_ptr<Batch> current_;
  };

  Feed(Feed&&) noexcept;
  Feed& operator=(Feed&&) noexcept;
  ~Feed();
  Iterator begin();
  Iterator end() { return {}; }
  FeedStatistics statistics() const;
  // Returns the next batch, or null at the end; the loop calls it.
  std::shared_ptr<Batch> next();

  // For use by sessions only.
  struct State;
  explicit Feed(std::unique_ptr<State> state);

 private:
  std::unique_ptr<State> state_;
};

namespace sessions {

// Returns the columns of an item of a range: a tensor, a vector or tuple of tensors, an example, or a vector
// of examples.
inline std::vector<at::Tensor> columns_of(const at::Tensor& tensor) { return {tensor}; }
inline std::vector<at::Tensor> columns_of(const std::vector<at::Tensor>& tensors) { return tensors; }
inline std::vector<at::Tensor> columns_of(const std::pair<at::Tensor, at::Tensor>& pair) {
  return {pair.first, pair.second};
}
template <typename... Tensors>
std::vector<at::Tensor> columns_of(const std::tuple<Tensors...>& tuple) {
  return std::apply([](const auto&... each) { return std::vector<at::Tensor>{each...}; }, tuple);
}
inline std::vector<at::Tensor> columns_of(const torch::data::Example<>& example) {
  return {example.data, example.target};
}
inline std::vector<at::Tensor> columns_of(const torch::data::TensorExample& example) {
  return {example.data};
}
template <typename Example>
requires requires(const Example& example) { example.data; }
std::vector<at::Tensor> columns_of(const std::vector<Example>& examples) {
  std::vector<std::vector<at::Tensor>> columns;
  for (const auto& example : examples) {
    auto row = columns_of(example);
    columns.resize(row.size());
    for (size_t i = 0; i < row.size(); ++i) columns[i].push_back(row[i]);
  }
  std::vector<at::Tensor> stacked;
  for (const auto& column : columns) stacked.push_back(torch::stack(column));
  return stacked;
}

// Takes `replicas` items of a range at a time. An lvalue range must live as long as the source.
template <typename Range>
class RangeSource {
 public:
  RangeSource(Range&& range, int replicas, int64_t skip)
      : state_(std::make_shared<State>(std::forward<Range>(range))), replicas_(replicas), skip_(skip) {}

  std::vector<HostBatch> operator()() {
    if (!state_->at) {
      state_->at.emplace(std::begin(state_->range));
      for (int64_t i = 0; i < skip_ * replicas_ && *state_->at != std::end(state_->range); ++i) ++*state_->at;
    }
    std::vector<HostBatch> group;
    while (static_cast<int>(group.size()) < replicas_ && *state_->at != std::end(state_->range)) {
      HostBatch batch;
      batch.columns = columns_of(**state_->at);
      if (!batch.columns.empty()) {
        batch.image = batch.columns[0];
        batch.count = batch.image.dim() > 0 ? batch.image.size(0) : 1;
      }
      if (batch.columns.size() > 1) batch.label = batch.columns[1];
      group.push_back(std::move(batch));
      ++*state_->at;
    }
    // Items at the end that do not suffice for all replicas are left out.
    if (static_cast<int>(group.size()) < replicas_) group.clear();
    return group;
  }

 private:
  struct State {
    explicit State(Range&& given) : range(std::forward<Range>(given)) {}
    Range range;  // a reference for an lvalue
    std::optional<std::decay_t<decltype(std::begin(std::declval<Range&>()))>> at;
  };
  std::shared_ptr<State> state_;
  int replicas_;
  int64_t skip_;
};

}  // namespace sessions

// Lets a batch be unpacked: auto [image, label] = batch;
template <std::size_t kIndex>
torch::Tensor& get(Batch& batch) {
  if constexpr (kIndex == 0)
    return batch.image;
  else
    return batch.label;
}
template <std::size_t kIndex>
const torch::Tensor& get(const Batch& batch) {
  return get<kIndex>(const_cast<Batch&>(batch));
}
template <std::size_t kIndex>
torch::Tensor&& get(Batch&& batch) {
  return std::move(get<kIndex>(batch));
}

}  // namespace sluice

template <>
struct std::tuple_size<sluice::Batch> : std::integral_constant<std::size_t, 2> {};
template <std::size_t kIndex>
struct std::tuple_element<kIndex, sluice::Batch> {
  using type = torch::Tensor;
};

SLUICE_API_END
