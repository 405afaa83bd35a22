// gzip and zstd unpackers over another source.
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <utility>
#include <vector>

#include "sluice/base/text/strings.h"
#include "sluice/data/memory.h"
#include "sluice/data/shards/open_files.h"
#include "sluice/data/shards/source.h"
#include "sluice/data/shards/unpack_places.h"

namespace sluice::data {

// zlib's state between two bytes of output. Copies of a state continue with the same bytes and checksum.
struct UnpackPlaces::State {
  State(z_stream& stream, bool between_members)
      : between(between_members), ready(inflateCopy(&copy, &stream) == Z_OK) {}
  ~State() {
    if (ready) inflateEnd(&copy);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  mutable z_stream copy{};  // inflateCopy() takes it as not const, and does not change it
  const bool between;
  const bool ready;
};

namespace {

std::atomic<std::uint64_t> all_unpacked{0};

// The common part of both unpackers: a buffer of packed bytes that is filled from the source below.
class UnpackingSource : public Source {
 public:
  explicit UnpackingSource(std::unique_ptr<Source> packed) : packed_(std::move(packed)) {}
  const std::string& name() const override { return packed_->name(); }

 protected:
  // Fills the empty buffer; false at the end of the packed bytes.
  base::Result<bool> refill() {
    input_.fit();
    SLUICE_TRY(have_, packed_->read(input_.data(), input_.size()));
    used_ = 0;
    consumed_ += have_;
    return have_ > 0;
  }
  tl::unexpected<Error> damaged(const char* format, const std::string& cause) const {
    return base::fail(Code::kDataLoss, name(), ": the ", format, " stream is damaged near byte ", consumed_,
                      ": ", cause);
  }

  std::unique_ptr<Source> packed_;
  ReadBuffer input_;
  std::size_t used_ = 0, have_ = 0;
  std::uint64_t consumed_ = 0;
};

class GzipSource : public UnpackingSource {
 public:
  explicit GzipSource(std::unique_ptr<Source> packed, std::shared_ptr<UnpackPlaces> places = nullptr)
      : UnpackingSource(std::move(packed)), places_(std::move(places)) {
    ready_ = inflateInit2(&stream_, 15 + 16) == Z_OK;  // 16: a gzip header and its checksum are demanded
  }
  // Continues at a place; `packed` begins there.
  GzipSource(std::unique_ptr<Source> packed, const UnpackPlaces::Place& place,
             std::shared_ptr<UnpackPlaces> places)
      : UnpackingSource(std::move(packed)), places_(std::move(places)) {
    ready_ = inflateCopy(&stream_, &place.state->copy) == Z_OK;
    between_ = place.state->between;
    unpacked_ = place.unpacked;
    consumed_ = place.packed;
  }
  ~GzipSource() override {
    if (ready_) inflateEnd(&stream_);
  }

  base::Result<std::size_t> read(void* bytes, std::size_t size) override {
    if (!ready_) return base::fail(Code::kResourceExhausted, name(), ": no memory to unpack gzip");
    stream_.next_out = static_cast<unsigned char*>(bytes);
    stream_.avail_out = static_cast<uInt>(std::min<std::size_t>(size, 1u << 30));
    const uInt room = stream_.avail_out;
    while (stream_.avail_out == room) {
      if (used_ == have_) {
        SLUICE_TRY(const bool more, refill());
        if (!more && between_) return std::size_t{0};
        if (!more) return damaged("gzip", "it ends in the middle");
      }
      if (between_) inflateReset(&stream_);
      between_ = false;
      SLUICE_OK(inflate_some());
    }
    const auto got = static_cast<std::size_t>(room - stream_.avail_out);
    unpacked_ += got;
    UnpackPlaces::count_unpacked(got);
    if (places_ != nullptr && places_->wants(unpacked_)) add_place();
    return got;
  }

 private:
  base::Status inflate_some() {
    stream_.next_in = reinterpret_cast<unsigned char*>(input_.data()) + used_;
    stream_.avail_in = static_cast<uInt>(have_ - used_);
    const int status = inflate(&stream_, Z_NO_FLUSH);
    used_ = have_ - stream_.avail_in;
    if (status == Z_STREAM_END) {
      between_ = true;
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
      return damaged("gzip", stream_.msg != nullptr ? stream_.msg : "unknown cause");
    }
    return {};
  }

  void add_place() {
    auto state = std::make_shared<const UnpackPlaces::State>(stream_, between_);
    if (state->ready) places_->add({unpacked_, consumed_ - (have_ - used_), std::move(state)});
  }

  z_stream stream_{};
  const std::shared_ptr<UnpackPlaces> places_;
  std::uint64_t unpacked_ = 0;
  bool ready_ = false;
  bool between_ = false;  // after the end of one gzip member, before another or the end
};

class ZstdSource : public UnpackingSource {
 public:
  explicit ZstdSource(std::unique_ptr<Source> packed)
      : UnpackingSource(std::move(packed)), stream_(ZSTD_createDStream()) {
    // The limit is raised for frames written by `zstd --long=31`.
    ZSTD_DCtx_setParameter(stream_, ZSTD_d_windowLogMax,
                           ZSTD_dParam_getBounds(ZSTD_d_windowLogMax).upperBound);
  }
  ~ZstdSource() override { ZSTD_freeDStream(stream_); }

  base::Result<std::size_t> read(void* bytes, std::size_t size) override {
    ZSTD_outBuffer out{bytes, size, 0};
    while (out.pos == 0) {
      // A full output buffer may have left more inside the decoder, which needs no further input.
      if (used_ == have_ && !pending_) {
        SLUICE_TRY(const bool more, refill());
        if (!more && between_) return std::size_t{0};
        if (!more) return damaged("zstd", "it ends in the middle");
      }
      ZSTD_inBuffer in{input_.data(), have_, used_};
      const std::size_t status = ZSTD_decompressStream(stream_, &out, &in);
      used_ = in.pos;
      if (ZSTD_getErrorCode(status) == ZSTD_error_memory_allocation)
        return base::fail(Code::kUnavailable, name(), ": no memory for the window of its zstd stream");
      if (ZSTD_isError(status) != 0) return damaged("zstd", ZSTD_getErrorName(status));
      SLUICE_OK(count_memory());
      between_ = status == 0;
      pending_ = !between_ && out.pos == out.size;
    }
    return out.pos;
  }

 private:
  // Counts the window, which is allocated with a frame's header; its pages are used as the data fills them.
  base::Status count_memory() {
    const std::size_t now = ZSTD_sizeof_DStream(stream_);
    if (now <= counted_) return {};
    SLUICE_OK(memory_.grow(now - counted_, [this] { return name() + ": the window of its zstd stream"; }));
    counted_ = now;
    return {};
  }

  ZSTD_DStream* stream_;
  ReaderMemory memory_;
  std::size_t counted_ = 0;
  bool between_ = false, pending_ = false;
};

}  // namespace

Packing packing_of(std::string_view first) {
  if (base::starts_with(first, "\x1f\x8b")) return Packing::kGzip;
  if (base::starts_with(first, "\x28\xb5\x2f\xfd")) return Packing::kZstd;
  // pzstd begins a file with a skippable frame.
  const bool skippable =
      first.size() >= 4 && (first[0] & '\xf0') == '\x50' && first.substr(1, 3) == "\x2a\x4d\x18";
  if (skippable) return Packing::kZstd;
  if (base::starts_with(first, "BZh") && first.substr(std::min<std::size_t>(4, first.size()), 6) == "1AY&SY")
    return Packing::kBzip2;
  if (base::starts_with(first, std::string_view("\3757zXZ\0", 6))) return Packing::kXz;
  return Packing::kNone;
}

std::optional<UnpackPlaces::Place> UnpackPlaces::last_before(std::uint64_t unpacked) const {
  const std::lock_guard lock(mutex_);
  const auto after = places_.upper_bound(unpacked);
  return after == places_.begin() ? std::nullopt : std::optional(std::prev(after)->second);
}

bool UnpackPlaces::wants(std::uint64_t unpacked) const {
  const std::lock_guard lock(mutex_);
  const auto after = places_.upper_bound(unpacked);
  const std::uint64_t before = after == places_.begin() ? 0 : std::prev(after)->first;
  return unpacked >= before + spacing_;
}

void UnpackPlaces::add(Place place) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t at = place.unpacked;
  places_.emplace(at, std::move(place));
  if (places_.size() <= kMaxPlaces) return;
  // Every second one goes.
  spacing_ *= 2;
  for (auto one = places_.begin(); one != places_.end();) {
    one = places_.erase(one);
    if (one != places_.end()) ++one;
  }
}

std::uint64_t UnpackPlaces::unpacked_bytes() { return all_unpacked; }
void UnpackPlaces::count_unpacked(std::uint64_t bytes) { all_unpacked += bytes; }

std::unique_ptr<Source> gzip_source(std::unique_ptr<Source> packed, std::shared_ptr<UnpackPlaces> places) {
  return std::make_unique<GzipSource>(std::move(packed), std::move(places));
}

std::unique_ptr<Source> gzip_source_at(std::unique_ptr<Source> packed, const UnpackPlaces::Place& place,
                                       std::shared_ptr<UnpackPlaces> places) {
  return std::make_unique<GzipSource>(std::move(packed), place, std::move(places));
}

std::unique_ptr<Source> zstd_source(std::unique_ptr<Source> packed) {
  return std::make_unique<ZstdSource>(std::move(packed));
}

base::Result<std::string> gunzip(const std::string& name, std::string bytes) {
  const auto source = gzip_source(memory_source(name, std::move(bytes)));
  std::string result;
  std::vector<char> piece(1 << 16);
  std::uint64_t claimed = 0;
  while (true) {
    SLUICE_TRY(const std::size_t got, source->read(piece.data(), piece.size()));
    if (got == 0) return result;
    if (result.size() + got > claimed) {
      const std::uint64_t more = std::max<std::uint64_t>(piece.size(), claimed);  // as the string grows
      SLUICE_OK(claim_memory(more, "room for what it unpacks to"));
      claimed += more;
    }
    result.append(piece.data(), got);
  }
}

}  // namespace sluice::data
