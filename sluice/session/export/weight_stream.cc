#include "sluice/session/export/weight_stream.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "sluice/base/files/file.h"
#include "sluice/base/text/strings.h"
#include "sluice/cloud/store.h"
#include "sluice/session/files/remote_checkpoint.h"
#include "sluice/session/files/weights.h"

namespace sluice::sessions {
namespace weight_stream_detail {

// The bytes of values that are in memory at a time, and of one request to a bucket.
constexpr uint64_t kHeld = uint64_t{32} << 20, kRange = uint64_t{4} << 20;

// Returns where a tensor begins in its files. A tensor without elements comes before the one that begins
// there.
std::tuple<std::string_view, uint64_t, bool> place_of(const StoredTensor& tensor) {
  if (tensor.pieces.empty()) return {"", 0, false};
  const StoredPiece& first = tensor.pieces.front();
  const bool has_elements = std::find(tensor.sizes.begin(), tensor.sizes.end(), 0) == tensor.sizes.end();
  return {first.file, first.begin, has_elements};
}

std::vector<SafetensorsEntry> entries_of(const StoredTensors& stored) {
  std::vector<const StoredTensors::value_type*> order;
  for (const auto& item : stored) order.push_back(&item);
  std::stable_sort(order.begin(), order.end(),
                   [](auto* a, auto* b) { return place_of(a->second) < place_of(b->second); });
  std::vector<SafetensorsEntry> entries;
  for (const auto* item : order) entries.push_back({item->first, item->second.type, item->second.sizes});
  return entries;
}

// Returns the folder of a file; "" if `from` is the file itself.
std::string folder_of(const StoredTensors& stored, const std::string& from) {
  for (const auto& [name, tensor] : stored)
    for (const StoredPiece& piece : tensor.pieces) {
      if (piece.file == from) return "";
      const size_t slash = piece.file.rfind('/');
      return slash == std::string::npos ? "." : piece.file.substr(0, slash);
    }
  return "";
}

}  // namespace weight_stream_detail

uint64_t bytes_of(const SafetensorsEntry& tensor) {
  uint64_t bytes = c10::elementSize(tensor.type);
  for (const int64_t size : tensor.sizes) bytes *= static_cast<uint64_t>(size);
  return bytes;
}

base::Result<WeightStream> WeightStream::open(const std::string& from) {
  namespace detail = weight_stream_detail;
  WeightStream stream;
  stream.reader_ = std::make_unique<StoredReader>(StoredReadOptions{.range_bytes = detail::kRange});
  auto listed = stream.reader_->list(from);
  if (listed) {
    stream.stored_ = std::move(*listed);
    stream.tensors_ = detail::entries_of(stream.stored_);
    stream.folder_ = detail::folder_of(stream.stored_, from);
    return stream;
  }
  if (listed.error().code() != Code::kUnimplemented) return tl::unexpected<Error>(listed.error());
  stream.reader_.reset();
  SLUICE_TRY(stream.values_, read_weights(from));
  for (const auto& [name, tensor] : stream.values_)
    stream.tensors_.push_back({name, tensor.scalar_type(), tensor.sizes().vec()});
  if (!is_elsewhere(from) && base::is_directory(from)) stream.folder_ = from;
  return stream;
}

base::Status WeightStream::pass(const std::vector<size_t>& which, const TakeBytes& take) {
  if (reader_ != nullptr) {
    std::vector<StreamedTensor> streamed;
    for (const size_t i : which) streamed.push_back({tensors_[i].name, &stored_.at(tensors_[i].name)});
    return stream_tensors(*reader_, streamed, weight_stream_detail::kHeld, take);
  }
  for (const size_t i : which) {
    const at::Tensor dense = values_[i].second.detach().resolve_conj().resolve_neg().contiguous();
    SLUICE_OK(take({static_cast<const char*>(dense.const_data_ptr()), dense.nbytes()}));
  }
  return {};
}

base::Result<std::optional<std::string>> WeightStream::read_beside(const std::string& name) const {
  if (folder_.empty()) return std::optional<std::string>();
  base::Result<std::string> text;
  if (is_elsewhere(folder_)) {
    SLUICE_TRY(const cloud::ObjectName object, cloud::parse_object_url(folder_ + "/" + name));
    SLUICE_TRY(const cloud::Store* store, cloud::store_of(object));
    text = store->read_text(object);
  } else {
    text = base::read_file(base::join_path(folder_, name));
  }
  if (text) return std::optional(std::move(*text));
  if (text.error().code() == Code::kNotFound) return std::optional<std::string>();
  return tl::unexpected<Error>(text.error());
}

}  // namespace sluice::sessions
