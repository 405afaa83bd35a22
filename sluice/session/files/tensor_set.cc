#include "sluice/session/files/tensor_set.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>

#include "sluice/base/error.h"
#include "sluice/base/random.h"
#include "sluice/base/text/join.h"
#include "sluice/data/serial_stream.h"
#include "sluice/data/stream_state.h"
#include "sluice/data/torch_adapter.h"

namespace sluice {

struct TensorSet::Columns {
  struct Column {
    torch::Tensor tensor;  // contiguous
    data::ElementType type;
    std::size_t row_bytes;
  };
  std::vector<Column> all;
  std::int64_t samples = 0;
  std::string hash;  // of types, shapes, and the bytes at both ends of each column
};

namespace tensor_set_detail {

using data::Array;
using data::ElementType;

[[noreturn]] void refuse(std::size_t column, const std::string& what) {
  throw_error(Code::kInvalidArgument, base::str("TensorSet: column ", column, ' ', what));
}

std::optional<ElementType> element_type(torch::ScalarType type) {
  for (auto i = static_cast<int>(ElementType::kBool); i <= static_cast<int>(ElementType::kFloat64); ++i)
    if (data::scalar_type(static_cast<ElementType>(i)) == type) return static_cast<ElementType>(i);
  return std::nullopt;
}

std::uint64_t hash_of(const torch::Tensor& tensor) {
  constexpr std::size_t kAtEachEnd = 1 << 16;
  const std::string_view bytes(static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes());
  const std::size_t count = std::min(kAtEachEnd, bytes.size());
  return base::key({base::key(base::str(tensor.scalar_type(), tensor.sizes())),
                    base::key(bytes.substr(0, count)), base::key(bytes.substr(bytes.size() - count))});
}

// One epoch, for the replicas of a part. Row j of a global batch belongs to replica j mod N.
class TensorStream : public data::SerialStream {
 public:
  TensorStream(std::shared_ptr<const TensorSet::Columns> columns, const TensorSet::Settings& settings,
               const data::OpenOptions& options, std::int64_t batches, std::string order)
      : SerialStream(options, std::move(order)),
        columns_(std::move(columns)),
        settings_(settings),
        batches_(batches) {
    if (!settings.shuffle) return;
    permutation_.resize(static_cast<std::size_t>(columns_->samples));
    std::iota(permutation_.begin(), permutation_.end(), std::int64_t{0});
    base::Random({settings.seed, static_cast<std::uint64_t>(options.epoch)}).shuffle(permutation_);
  }

 private:
  std::optional<data::Batch> make() override;

  std::shared_ptr<const TensorSet::Columns> columns_;
  TensorSet::Settings settings_;
  std::int64_t batches_;
  std::vector<std::int64_t> permutation_;  // empty: the original order of the samples
};

std::optional<data::Batch> TensorStream::make() {
  if (index() >= batches_) return std::nullopt;
  const data::OpenOptions& part = options();
  const std::int64_t replicas = part.parts * part.replicas, rows = settings_.rows * part.replicas;
  const std::int64_t first = index() * settings_.rows * replicas;
  const std::int64_t end = std::min(first + settings_.rows * replicas, columns_->samples);
  data::Batch batch;
  for (const auto& column : columns_->all) {
    std::vector<std::int64_t> shape = column.tensor.sizes().vec();
    shape.front() = rows;
    batch.columns.push_back({Array::zeros(column.type, std::move(shape)), {}});
  }
  batch.mask = Array::zeros(ElementType::kBool, {rows});
  for (std::int64_t replica = 0; replica < part.replicas; ++replica) {
    std::int64_t row = replica * settings_.rows;
    for (std::int64_t i = first + part.part * part.replicas + replica; i < end; i += replicas, ++row) {
      const std::int64_t sample = permutation_.empty() ? i : permutation_[static_cast<std::size_t>(i)];
      for (std::size_t c = 0; c < batch.columns.size(); ++c) {
        const auto& column = columns_->all[c];
        std::memcpy(batch.columns[c].array.data<char>() + static_cast<std::size_t>(row) * column.row_bytes,
                    static_cast<const char*>(column.tensor.const_data_ptr()) +
                        static_cast<std::size_t>(sample) * column.row_bytes,
                    column.row_bytes);
      }
      batch.mask.data<bool>()[row] = true;
      batch.keys.push_back(std::to_string(sample));
    }
  }
  batch.image = batch.columns.front().array;
  const auto label = std::find_if(batch.columns.begin(), batch.columns.end(), [](const data::Column& column) {
    return column.array.type() == ElementType::kInt64 && column.array.shape().size() == 1;
  });
  if (label != batch.columns.end()) batch.label = label->array;
  batch.global_count = end - first;
  return batch;
}

// A text of everything that the order of an epoch depends on.
std::string order_of(const TensorSet::Columns& columns, const TensorSet::Settings& settings,
                     const data::OpenOptions& options) {
  return base::str("epoch=", options.epoch, " tensors=", columns.hash, " samples=", columns.samples,
                   " global_batch=", settings.rows * options.parts * options.replicas,
                   " shuffle=", settings.shuffle ? 1 : 0, " seed=", settings.seed);
}

}  // namespace tensor_set_detail

TensorSet::TensorSet(std::vector<torch::Tensor> columns) {
  using tensor_set_detail::refuse;
  if (columns.empty())
    throw_error(Code::kInvalidArgument,
                "TensorSet: expected tensors [N, …], one for each column, found none");
  auto all = std::make_shared<Columns>();
  std::vector<std::string> hashes;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const torch::Tensor& given = columns[i];
    if (!given.defined()) refuse(i, "is undefined");
    if (!given.is_cpu() || given.layout() != torch::kStrided)
      refuse(i, "is not a dense tensor on the CPU: convert it with .to_dense() and .cpu()");
    const auto type = tensor_set_detail::element_type(given.scalar_type());
    if (!type)
      refuse(i, base::str("has the type ", given.scalar_type(),
                          ": convert it, such as with .to(torch::kFloat)"));
    if (given.dim() == 0 || given.numel() == 0)
      refuse(i, base::str("has the shape ", given.sizes(), ": expected [N, …] with elements"));
    if (i > 0 && given.size(0) != all->samples)
      refuse(i, base::str("has ", given.size(0), " rows, and column 0 has ", all->samples));
    all->samples = given.size(0);
    const torch::Tensor own = given.detach().contiguous();
    all->all.push_back({own, *type, own.nbytes() / static_cast<std::size_t>(all->samples)});
    hashes.push_back(std::to_string(tensor_set_detail::hash_of(own)));
  }
  all->hash = base::join(hashes, ",");
  columns_ = std::move(all);
}

TensorSet& TensorSet::shuffle() {
  settings_.shuffle = true;
  return *this;
}
TensorSet& TensorSet::seed(std::uint64_t seed) {
  settings_.seed = seed;
  return *this;
}
TensorSet& TensorSet::batch(std::int64_t rows) {
  if (rows < 1)
    throw_error(Code::kInvalidArgument, base::str("TensorSet: batch(", rows, "): expected 1 row or more"));
  settings_.rows = rows;
  return *this;
}
TensorSet& TensorSet::pad() {
  settings_.pad = true;
  return *this;
}

std::unique_ptr<data::Stream> TensorSet::open(const data::OpenOptions& options) const {
  return std::make_unique<tensor_set_detail::TensorStream>(
      columns_, settings_, options, batches(options.parts * options.replicas, options.epoch),
      tensor_set_detail::order_of(*columns_, settings_, options));
}

std::unique_ptr<data::Stream> TensorSet::resume(const std::string& state,
                                                const data::OpenOptions& options) const {
  const data::OpenOptions there = data::position_in(state, options);
  data::expect_same(state, this->state(there), {data::PinnedShards{}}, there.part == 0);
  return open(there);
}

std::string TensorSet::state(const data::OpenOptions& options) const {
  return base::str(tensor_set_detail::order_of(*columns_, settings_, options),
                   " batches=", options.skip_batches);
}

std::int64_t TensorSet::size() const { return columns_->samples; }

std::int64_t TensorSet::batches(std::int64_t replicas, std::int64_t /*epoch*/) const {
  const std::int64_t rows = settings_.rows * replicas;
  return (columns_->samples + (settings_.pad ? rows - 1 : 0)) / rows;
}

const std::vector<float>& TensorSet::mean() const {
  static const std::vector<float> none;
  return none;
}

}  // namespace sluice
