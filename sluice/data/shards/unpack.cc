// gzip and zstd unpackers over another source.
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <vector>

#include "sluice/data/memory.h"
#include "sluice/data/shards/source.h"

namespace sluice::data {
namespace {

constexpr std::size_t kInputBytes = 1 << 17;

// The common part of both unpackers: a buffer of packed bytes that is filled from the source below.
class UnpackingSource : public Source {
 public:
  explicit UnpackingSource(std::unique_ptr<Source> packed)
      : packed_(std::move(packed)), input_(kInputBytes) {}
  const std::string& name() const override { return packed_->name(); }

 protected:
  // Fills the empty buffer; false at the end of the packed bytes.
  base::Result<bool> refill() {
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
  std::vector<unsigned char> input_;
  std::size_t used_ = 0, have_ = 0;
  std::uint64_t consumed_ = 0;
};

class GzipSource : public UnpackingSource {
 public:
  explicit GzipSource(std::unique_ptr<Source> packed) : UnpackingSource(std::move(packed)) {
    ready_ = inflateInit2(&stream_, 15 + 16) == Z_OK;  // 16: a gzip header and its checksum are demanded
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
    return static_cast<std::size_t>(room - stream_.avail_out);
  }

 private:
  base::Status inflate_some() {
    stream_.next_in = input_.data() + used_;
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

  z_stream stream_{};
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

std::unique_ptr<Source> gzip_source(std::unique_ptr<Source> packed) {
  return std::make_unique<GzipSource>(std::move(packed));
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
