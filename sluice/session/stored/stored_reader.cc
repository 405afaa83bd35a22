#include <ATen/ATen.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>

#include "sluice/base/formats/crc32c.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/printable.h"
#include "sluice/session/stored/stored_ranges.h"
#include "sluice/session/stored/stored_tensors.h"

namespace sluice::sessions {
namespace stored_reader_detail {

// Elements that are converted at a time.
constexpr int64_t kStaged = 32768;

template <typename... Pieces>
tl::unexpected<Error> bad(const StoredBox& box, const Pieces&... what) {
  return base::fail(Code::kDataLoss, "tensor ", box.name, ": ", what...);
}

// Returns the number of elements; nothing if it is no size of a tensor.
std::optional<uint64_t> elements_of(const std::vector<int64_t>& sizes) {
  uint64_t elements = 1;
  for (const int64_t size : sizes)
    if (size < 0 || __builtin_mul_overflow(elements, static_cast<uint64_t>(size), &elements)) return {};
  if (elements > (uint64_t{1} << 56)) return {};
  return elements;
}

// Returns whether a block lies within these sizes.
bool is_within(const std::vector<int64_t>& start, const std::vector<int64_t>& sizes,
               const std::vector<int64_t>& whole) {
  if (start.size() != whole.size() || sizes.size() != whole.size()) return false;
  for (size_t d = 0; d < whole.size(); ++d)
    if (start[d] < 0 || sizes[d] < 0 || start[d] > whole[d] || sizes[d] > whole[d] - start[d]) return false;
  return elements_of(sizes).has_value();
}

base::Status check_piece(const StoredBox& box, const StoredPiece& piece, const SourceFile& file,
                         uint64_t element_bytes) {
  if (!is_within(piece.start, piece.sizes, box.tensor->sizes))
    return bad(box, "its part in ", file.name, " does not fit its shape ",
               at::IntArrayRef(box.tensor->sizes));
  const uint64_t bytes = *elements_of(piece.sizes) * element_bytes;
  if (piece.begin > file.size || bytes > file.size - piece.begin)
    return bad(box, file.name, " has ", file.size, " bytes, and the tensor's part there ends at byte ",
               piece.begin, " + ", bytes);
  return {};
}

// The blocks of one call, and where their elements lie.
struct Work {
  const std::vector<StoredBox>& boxes;
  std::vector<const SourceFile*> files = {};
  std::vector<Segment> segments = {};
  std::vector<uint64_t> element_bytes = {};  // [box]
  std::vector<at::Tensor> results = {};      // [box]

  uint32_t number_of(const SourceFile* file) {
    const auto found = std::find(files.begin(), files.end(), file);
    if (found == files.end()) files.push_back(file);
    return static_cast<uint32_t>(std::find(files.begin(), files.end(), file) - files.begin());
  }
};

base::Status add_box(Work& work, size_t number, SourceFiles& files) {
  const StoredBox& box = work.boxes[number];
  if (!is_within(box.start, box.sizes, box.tensor->sizes))
    return bad(box, "the block at ", at::IntArrayRef(box.start), " of ", at::IntArrayRef(box.sizes),
               " is not in its shape ", at::IntArrayRef(box.tensor->sizes));
  const uint64_t element_bytes = c10::elementSize(box.tensor->type);
  work.element_bytes.push_back(element_bytes);
  const size_t first = work.segments.size();
  for (const StoredPiece& piece : box.tensor->pieces) {
    SLUICE_TRY(const SourceFile* file, files.find(piece.file));
    SLUICE_OK(check_piece(box, piece, *file, element_bytes));
    Segment like;
    like.file = work.number_of(file);
    like.box = static_cast<uint32_t>(number);
    add_segments(piece, box, element_bytes, like, work.segments);
  }
  const auto begin = work.segments.begin() + static_cast<std::ptrdiff_t>(first);
  if (!fills_box({begin, work.segments.end()}, box, element_bytes))
    return bad(box, "the parts in its files leave some of its elements out, or have some of them twice");
  work.results.push_back(at::empty(box.sizes, at::TensorOptions(box.type)));
  return {};
}

// Puts the bytes of one range into the blocks.
class Filler {
 public:
  Filler(Work& work, const ByteRange& range) : work_(work), next_(range.first), at_(range.begin) {}

  void take(std::string_view bytes) {
    while (!bytes.empty()) {
      const Segment& segment = work_.segments[next_];
      if (at_ < segment.begin) {  // a gap
        const uint64_t skipped = std::min<uint64_t>(segment.begin - at_, bytes.size());
        at_ += skipped;
        bytes.remove_prefix(skipped);
        continue;
      }
      const uint64_t some = std::min<uint64_t>(segment.begin + segment.bytes - at_, bytes.size());
      put(segment, bytes.substr(0, some));
      at_ += some;
      bytes.remove_prefix(some);
      if (at_ == segment.begin + segment.bytes) ++next_;
    }
  }

 private:
  void put(const Segment& segment, std::string_view bytes) {
    const at::Tensor& result = work_.results[segment.box];
    const at::ScalarType type = work_.boxes[segment.box].tensor->type;
    if (type == result.scalar_type()) {
      const uint64_t place =
          static_cast<uint64_t>(segment.to) * work_.element_bytes[segment.box] + at_ - segment.begin;
      std::memcpy(static_cast<char*>(result.mutable_data_ptr()) + place, bytes.data(), bytes.size());
    } else {
      convert(segment, result, type, bytes);
    }
  }
  // Elements may arrive in two parts, so they are collected first.
  void convert(const Segment& segment, const at::Tensor& result, at::ScalarType type,
               std::string_view bytes) {
    const uint64_t element = work_.element_bytes[segment.box];
    if (!staged_.defined() || staged_.scalar_type() != type)
      staged_ = at::empty({kStaged}, at::TensorOptions(type));
    uint64_t done = at_ - segment.begin;  // of the segment
    while (!bytes.empty()) {
      const uint64_t some =
          std::min<uint64_t>(static_cast<uint64_t>(kStaged) * element - held_, bytes.size());
      std::memcpy(static_cast<char*>(staged_.mutable_data_ptr()) + held_, bytes.data(), some);
      held_ += some;
      done += some;
      bytes.remove_prefix(some);
      if (done < segment.bytes && held_ < static_cast<uint64_t>(kStaged) * element) continue;
      const auto elements = static_cast<int64_t>(held_ / element);
      const int64_t to = segment.to + static_cast<int64_t>((done - held_) / element);
      result.view({-1}).narrow(0, to, elements).copy_(staged_.narrow(0, 0, elements));
      held_ = 0;
    }
  }

  Work& work_;
  size_t next_;  // the segment that the next byte belongs to, or precedes
  uint64_t at_;  // the next byte of the file
  at::Tensor staged_;
  uint64_t held_ = 0;  // bytes in staged_
};

// The first failure of several threads.
class Failure {
 public:
  void note(Error error) {
    const std::scoped_lock lock(mutex_);
    if (!error_) error_ = std::move(error);
    failed_ = true;
  }
  bool failed() const { return failed_; }
  base::Status status() const {
    if (error_) return tl::unexpected<Error>(*error_);
    return {};
  }

 private:
  std::mutex mutex_;
  std::atomic<bool> failed_{false};
  std::optional<Error> error_;
};

base::Result<int64_t> fill(Work& work, const ByteRange& range) {
  Filler filler(work, range);
  try {
    return read_range(*work.files[range.file], range.begin, range.end,
                      [&](std::string_view bytes) { filler.take(bytes); });
  } catch (const std::exception& error) {  // a thread of a pool must not throw
    return base::fail(Code::kInternal, work.files[range.file]->name, ": ", error.what());
  }
}

// Returns a view of a part in the block that was read; undefined if the block has not all of it.
at::Tensor part_in(const StoredBox& box, const StoredPiece& piece, at::Tensor block) {
  for (size_t d = 0; d < box.sizes.size(); ++d) {
    const int64_t start = piece.start[d] - box.start[d];
    if (start < 0 || start + piece.sizes[d] > box.sizes[d]) return {};
    block = block.narrow(static_cast<int64_t>(d), start, piece.sizes[d]);
  }
  return block;
}

// Compares the parts that were read whole with their checksums.
base::Status check_sums(const Work& work) {
  for (size_t i = 0; i < work.boxes.size(); ++i) {
    const StoredBox& box = work.boxes[i];
    if (box.type != box.tensor->type) continue;
    for (const StoredPiece& piece : box.tensor->pieces) {
      if (!piece.crc32c) continue;
      const at::Tensor view = part_in(box, piece, work.results[i]);
      if (!view.defined()) continue;
      const at::Tensor part = view.contiguous();
      SLUICE_OK(compare_checksum(box.name, piece, base::crc32c(part.const_data_ptr(), part.nbytes())));
    }
  }
  return {};
}

}  // namespace stored_reader_detail

base::Status compare_checksum(const std::string& name, const StoredPiece& piece, uint32_t crc32c) {
  if (!piece.crc32c || *piece.crc32c == crc32c) return {};
  const std::string shown = base::printable(name);
  return base::fail(Code::kDataLoss, "tensor ", shown, ": ", piece.file,
                    " has other bytes than were written at byte ", piece.begin, " (the tensor ", shown,
                    " from [", base::join(piece.start, ", "), "] on): their checksum (CRC-32C) is ", crc32c,
                    ", the index says ", *piece.crc32c, "; bring the file back from a copy");
}

base::Result<std::vector<at::Tensor>> StoredReader::read(const std::vector<StoredBox>& boxes) {
  namespace detail = stored_reader_detail;
  detail::Work work{boxes};
  for (size_t i = 0; i < boxes.size(); ++i) SLUICE_OK(detail::add_box(work, i, files_));
  const bool elsewhere =
      std::any_of(work.files.begin(), work.files.end(), [](auto* file) { return file->is_remote(); });
  for (const Segment& segment : work.segments) needed_ += static_cast<int64_t>(segment.bytes);
  const auto ranges = plan_ranges(work.segments, work.element_bytes, options_, elsewhere);
  detail::Failure failure;
  const auto read_one = [&](size_t i) {
    if (failure.failed()) return;
    auto requests = detail::fill(work, ranges[i]);
    if (!requests) return failure.note(requests.error());
    requests_ += *requests;
    bytes_ += static_cast<int64_t>(ranges[i].end - ranges[i].begin);
  };
  if (threads_ == nullptr && ranges.size() > 1)
    threads_ = std::make_unique<base::ThreadPool>("sluice-weights", static_cast<size_t>(options_.in_flight));
  if (ranges.size() > 1)
    base::parallel_for(*threads_, ranges.size(), read_one);
  else if (ranges.size() == 1)
    read_one(0);
  SLUICE_OK(failure.status());
  SLUICE_OK(detail::check_sums(work));
  return std::move(work.results);
}

base::Result<at::Tensor> StoredReader::read(const StoredBox& box) {
  SLUICE_TRY(std::vector<at::Tensor> tensors, read(std::vector<StoredBox>{box}));
  return tensors.front();
}

base::Result<NamedTensors> read_all_stored(const std::string& from) {
  StoredReader reader;
  SLUICE_TRY(const StoredTensors stored, reader.list(from));
  NamedTensors all;
  for (const auto& [name, tensor] : stored) {
    const StoredBox whole{name, &tensor, std::vector<int64_t>(tensor.sizes.size(), 0), tensor.sizes,
                          tensor.type};
    SLUICE_TRY(at::Tensor value, reader.read(whole));
    all.emplace_back(name, std::move(value));
  }
  return all;
}

}  // namespace sluice::sessions
