#include "sluice/session/stored/stored_stream.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>
#include <utility>

#include "sluice/base/formats/crc32c.h"

namespace sluice::sessions {
namespace stored_stream_detail {

uint64_t bytes_of_box(const StoredBox& box) {
  uint64_t bytes = c10::elementSize(box.type);
  for (const int64_t size : box.sizes) bytes *= static_cast<uint64_t>(size);
  return bytes;
}

// Reads the next boxes together, and passes their bytes on in order.
class Stream {
 public:
  Stream(StoredReader& reader, uint64_t held, const TakeBytes& take)
      : reader_(reader), held_(held), take_(take) {}

  base::Status add(const StreamedTensor& streamed) {
    const StoredTensor& tensor = *streamed.tensor;
    StoredBox box{streamed.name, &tensor, std::vector<int64_t>(tensor.sizes.size(), 0), tensor.sizes,
                  tensor.type};
    const uint64_t bytes = bytes_of_box(box);
    if (bytes <= held_ || tensor.sizes.empty()) return add_box(std::move(box), bytes);
    const int64_t rows = tensor.sizes[0];
    const uint64_t row_bytes = bytes / static_cast<uint64_t>(rows);
    const auto step = static_cast<int64_t>(std::max<uint64_t>(held_ / row_bytes, 1));
    for (int64_t row = 0; row < rows; row += step) {
      box.start[0] = row;
      box.sizes[0] = std::min(step, rows - row);
      SLUICE_OK(add_box(box, bytes_of_box(box)));
    }
    return {};
  }

  base::Status flush() {
    const std::vector<StoredBox> boxes = std::exchange(boxes_, {});
    bytes_ = 0;
    if (boxes.empty()) return {};
    SLUICE_TRY(std::vector<at::Tensor> blocks, reader_.read(boxes));
    for (size_t i = 0; i < boxes.size(); ++i) {
      SLUICE_OK(compare(boxes[i], blocks[i]));
      const at::Tensor block = std::exchange(blocks[i], {});
      SLUICE_OK(take_({static_cast<const char*>(block.const_data_ptr()), block.nbytes()}));
    }
    return {};
  }

 private:
  base::Status add_box(StoredBox box, uint64_t bytes) {
    if (!boxes_.empty() && bytes_ + bytes > held_) SLUICE_OK(flush());
    boxes_.push_back(std::move(box));
    bytes_ += bytes;
    return {};
  }

  // Adds the rows of a block to the checksums of the pieces that they are in. The reader has compared the
  // pieces that are whole in a block.
  base::Status compare(const StoredBox& box, const at::Tensor& block) {
    if (box.sizes == box.tensor->sizes) return {};
    const int64_t box_end = box.start[0] + box.sizes[0];
    for (const StoredPiece& piece : box.tensor->pieces) {
      const int64_t piece_end = piece.start[0] + piece.sizes[0];
      const int64_t first = std::max(box.start[0], piece.start[0]), end = std::min(box_end, piece_end);
      if (!piece.crc32c || first >= end || end - first == piece.sizes[0]) continue;
      at::Tensor rows = block.narrow(0, first - box.start[0], end - first);
      for (size_t d = 1; d < piece.sizes.size(); ++d)
        rows = rows.narrow(static_cast<int64_t>(d), piece.start[d], piece.sizes[d]);
      rows = rows.contiguous();
      uint32_t& sum = sums_[&piece];
      sum = base::crc32c(rows.const_data_ptr(), rows.nbytes(), sum);
      if (end == piece_end) SLUICE_OK(compare_checksum(box.name, piece, sum));
    }
    return {};
  }

  StoredReader& reader_;
  const uint64_t held_;
  const TakeBytes& take_;
  std::vector<StoredBox> boxes_;
  uint64_t bytes_ = 0;                           // of boxes_
  std::map<const StoredPiece*, uint32_t> sums_;  // of the rows that were read so far
};

}  // namespace stored_stream_detail

base::Status stream_tensors(StoredReader& reader, const std::vector<StreamedTensor>& tensors, uint64_t held,
                            const TakeBytes& take) {
  stored_stream_detail::Stream stream(reader, held, take);
  for (const StreamedTensor& tensor : tensors) SLUICE_OK(stream.add(tensor));
  return stream.flush();
}

}  // namespace sluice::sessions
