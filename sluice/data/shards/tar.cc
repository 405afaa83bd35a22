#include "sluice/data/shards/tar.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/data/memory.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace sluice::data {
namespace {

constexpr std::uint64_t kMaxExtensionBytes = 1 << 20;  // long names and PAX records
constexpr std::size_t kSmallPayload = 1 << 14;
constexpr std::uint64_t kPayloadStep = 1 << 24;  // a damaged size must not take all memory at once

#ifdef __SSE2__
std::uint64_t sum_of_bytes(const char* block) {
  __m128i sums = _mm_setzero_si128();  // two sums of 64 bits
  for (std::size_t i = 0; i < kTarBlock; i += 16)
    sums = _mm_add_epi64(sums, _mm_sad_epu8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(block + i)),
                                            _mm_setzero_si128()));
  return static_cast<std::uint64_t>(_mm_cvtsi128_si64(_mm_add_epi64(sums, _mm_srli_si128(sums, 8))));
}
#else
// The sum of a block's bytes, eight at a time: four 16-bit sums in each of two words cannot overflow.
std::uint64_t sum_of_bytes(const char* block) {
  constexpr std::uint64_t kEven = 0x00FF00FF00FF00FF;
  std::uint64_t even = 0, odd = 0, word = 0;
  for (std::size_t i = 0; i < kTarBlock; i += 8) {
    std::memcpy(&word, block + i, 8);
    even += word & kEven;
    odd += word >> 8 & kEven;
  }
  const auto fold = [](std::uint64_t sums) {
    return (sums & 0xFFFF) + (sums >> 16 & 0xFFFF) + (sums >> 32 & 0xFFFF) + (sums >> 48);
  };
  return fold(even) + fold(odd);
}
#endif

bool all_zero(const char* bytes, std::size_t size) {
  return size == 0 || (bytes[0] == 0 && std::memcmp(bytes, bytes + 1, size - 1) == 0);
}

// Returns a field's text up to its first NUL.
std::string_view text_field(const char* field, std::size_t size) { return {field, ::strnlen(field, size)}; }

// Parses a number: octal digits between optional spaces and NULs, or base 256 if the first bit is set.
std::optional<std::uint64_t> number_field(const char* field, std::size_t size) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(field);
  std::uint64_t value = 0;
  if ((bytes[0] & 0x80) != 0) {
    if (bytes[0] != 0x80) return std::nullopt;  // negative, or more than 8 bytes can hold
    for (std::size_t i = 1; i < size; ++i) {
      if ((value >> 56) != 0) return std::nullopt;
      value = value << 8 | bytes[i];
    }
    return value >> 63 != 0 ? std::nullopt : std::optional(value);
  }
  std::size_t i = 0;
  while (i < size && field[i] == ' ') ++i;
  for (; i < size && field[i] >= '0' && field[i] <= '7'; ++i) value = value << 3 | (bytes[i] - '0');
  for (; i < size; ++i)
    if (field[i] != ' ' && field[i] != '\0') return std::nullopt;
  return value;
}

bool checksum_matches(const char* block) {
  const auto stored = number_field(block + 148, 8);
  if (!stored) return false;
  std::uint64_t plain = sum_of_bytes(block) + 8 * ' ';  // the checksum's own field counts as spaces
  for (std::size_t i = 148; i < 156; ++i) plain -= static_cast<unsigned char>(block[i]);
  if (*stored == plain) return true;
  std::int64_t with_sign = 8 * ' ';  // some old writers added up signed characters
  for (std::size_t i = 0; i < kTarBlock; ++i)
    if (i < 148 || i >= 156) with_sign += static_cast<signed char>(block[i]);
  return static_cast<std::int64_t>(*stored) == with_sign;
}

}  // namespace

// One verified header block in the buffer; valid until more is read.
struct TarReader::Header {
  const char* block = nullptr;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;

  char type() const { return block[156]; }
  void name(std::string& name) const {
    name.clear();
    if (std::memcmp(block + 257, "ustar\0", 6) == 0) {
      // star keeps times in the last bytes of the prefix field.
      const bool star = std::memcmp(block + 508, "tar", 4) == 0;
      name = text_field(block + 345, star ? 131 : 155);
      if (!name.empty()) name += '/';
    }
    name += text_field(block, 100);
  }
};

TarReader::TarReader(std::unique_ptr<Source> source, ArchivePart part)
    : source_(std::move(source)), offset_(part.begin), part_(part) {}

template <typename... Pieces>
tl::unexpected<Error> TarReader::broken(const Pieces&... cause) const {
  return base::fail(Code::kDataLoss, name(), ": ", cause...);
}

// Returns the next `size` bytes (no more than the buffer has), or all that there are, in one piece in the
// buffer; valid until more is read.
base::Result<std::string_view> TarReader::view(std::size_t size) {
  if (have_ - used_ < size) {
    have_ -= used_;
    if (have_ == 0) buffer_.fit(size);
    std::memmove(buffer_.data(), buffer_.data() + used_, have_);
    used_ = 0;
    while (have_ < size) {
      SLUICE_TRY(const std::size_t got, source_->read(buffer_.data() + have_, buffer_.size() - have_));
      if (got == 0) break;
      have_ += got;
    }
  }
  const std::string_view bytes(buffer_.data() + used_, std::min(size, have_ - used_));
  used_ += bytes.size();
  offset_ += bytes.size();
  return bytes;
}

// Reads `size` bytes, or all that there are, and returns their number.
base::Result<std::size_t> TarReader::fill(void* bytes, std::size_t size) {
  auto* out = static_cast<char*>(bytes);
  std::size_t done = 0;
  while (done < size) {
    if (used_ == have_) {
      buffer_.fit();
      const bool direct = size - done >= buffer_.size();
      SLUICE_TRY(const std::size_t got,
                 source_->read(direct ? out + done : buffer_.data(), direct ? size - done : buffer_.size()));
      if (got == 0) break;
      if (direct) {
        done += got;
        continue;
      }
      used_ = 0;
      have_ = got;
    }
    const std::size_t step = std::min(size - done, have_ - used_);
    std::memcpy(out + done, buffer_.data() + used_, step);
    used_ += step;
    done += step;
  }
  offset_ += done;
  return done;
}

base::Result<std::uint64_t> TarReader::pass_over(std::uint64_t size) {
  std::uint64_t done = std::min<std::uint64_t>(size, have_ - used_);
  used_ += done;
  if (done < size) {
    SLUICE_TRY(const std::uint64_t more, source_->skip(size - done));
    done += more;
  }
  offset_ += done;
  return done;
}

base::Status TarReader::read_payload(std::string& payload) {
  payload.clear();
  const auto member = [&] {
    return base::str(name(), ": member ", current_.name, " (header at byte ", current_.offset, ")");
  };
  if (current_.size > memory_limits().sample)
    return too_much_memory(base::str(member(), " has ", current_.size, " bytes"));
  // The room is made at once, so that nothing is copied as it grows; its pages are taken as the bytes come.
  try {
    payload.reserve(payload_left_);
  } catch (const std::bad_alloc&) {  // only here: an exception of the source is not the member's fault
    return base::fail(Code::kResourceExhausted, member(), ": no memory for its ", current_.size, " bytes");
  }
  while (payload_left_ > 0) {
    const std::size_t before = payload.size();
    const std::size_t step = std::min(payload_left_, kPayloadStep);
    std::size_t got = 0;
    if (step < std::min(kSmallPayload, buffer_.size())) {  // without filling it with zeros first
      SLUICE_TRY(const std::string_view bytes, view(step));
      payload.append(bytes);
      got = bytes.size();
    } else {
      payload.resize(before + step);
      SLUICE_TRY(got, fill(payload.data() + before, step));
    }
    payload_left_ -= got;
    if (got < step)
      return broken("cut off inside member ", current_.name, " (header at byte ", current_.offset,
                    "): it has ", current_.size, " bytes, but the archive ends ", payload_left_,
                    " bytes before their end, at byte ", offset_);
  }
  return {};
}

// Passes over the rest of the current member's payload, and its padding.
base::Status TarReader::finish_member() {
  const std::uint64_t left = payload_left_ + padding_;
  if (left == 0) return {};
  SLUICE_TRY(const std::uint64_t got, pass_over(left));
  payload_left_ -= std::min(got, payload_left_);
  padding_ = 0;
  if (got == left) return {};
  return broken("cut off after byte ", offset_, ", inside member ", current_.name, " (header at byte ",
                current_.offset, "), whose ", current_.size, " bytes end ", left - got,
                " bytes later (padding included)");
}

std::string TarReader::after() const {
  return current_.name.empty() ? "" : base::str(", after member ", current_.name);
}

// Reads a header; false at a well-formed end.
base::Result<bool> TarReader::read_header(Header& header) {
  header.offset = offset_;
  SLUICE_TRY(const std::string_view block, view(kTarBlock));
  const std::size_t got = block.size();
  header.block = block.data();
  if (got == 0 && part_.ends_early) return false;
  if (got == 0 && header.offset == 0) return broken("the file is empty: expected a tar archive");
  if (got == 0)
    return broken("cut off at byte ", offset_, after(),
                  ": expected another member or the end marker (two blocks of ",
                  "zeros), found the end of the file");
  if (got < kTarBlock)
    return broken(header.offset == 0 ? "not a tar archive, or " : "", "cut off inside the header at byte ",
                  header.offset, after(), ": expected 512 bytes, found ", got);
  if (header.block[0] == 0 && all_zero(header.block, kTarBlock)) {
    SLUICE_OK(check_end());
    return false;
  }
  if (!checksum_matches(header.block))
    return broken(header.offset == 0 ? "not a tar archive, or damaged: " : "damaged: ", "the header at byte ",
                  header.offset, after(), " has a wrong checksum");
  const auto size = number_field(header.block + 124, 12);
  if (!size) return broken("the header at byte ", header.offset, after(), " has a size that is not a number");
  header.size = *size;
  return true;
}

// Checks the archive's end, after the first block of zeros.
base::Status TarReader::check_end() {
  char block[kTarBlock];
  const std::uint64_t marker = offset_ - kTarBlock;
  SLUICE_TRY(std::size_t got, fill(block, kTarBlock));
  if (got < kTarBlock)
    return broken("cut off inside the end marker at byte ", marker, ": expected two blocks of zeros, found ",
                  kTarBlock + got, " bytes");
  while (got > 0) {
    if (!all_zero(block, got))
      return broken(
          "data follows the end marker at byte ", marker, ", near byte ", offset_ - got,
          ": archives that were joined are read only to the first end; pack their members into one archive");
    SLUICE_TRY(got, fill(block, kTarBlock));
  }
  return {};
}

// Reads the payload of a header that describes the member after it; valid until more is read.
base::Result<std::string_view> TarReader::read_extension(std::uint64_t size, std::uint64_t offset) {
  if (size > kMaxExtensionBytes)
    return broken("the extended header at byte ", offset, " claims ", size, " bytes: expected at most ",
                  kMaxExtensionBytes);
  const std::size_t padded = tar_padded(size);
  std::string_view text;
  if (padded <= buffer_.size()) {
    SLUICE_TRY(text, view(padded));
  } else {
    extension_.resize(padded);
    SLUICE_TRY(const std::size_t got, fill(extension_.data(), padded));
    text = std::string_view(extension_).substr(0, got);
  }
  if (text.size() < padded)
    return broken("cut off at byte ", offset_, ", inside the extended header at byte ", offset);
  return text.substr(0, size);
}

// Parses PAX records: "LENGTH KEY=VALUE\n", where LENGTH counts the whole record. Later records win.
base::Status TarReader::parse_records(std::string_view rest, Records& records) const {
  while (!rest.empty()) {
    std::size_t length = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), length);
    const std::size_t digits = static_cast<std::size_t>(end - rest.data());
    const bool whole = error == std::errc() && length > digits + 2 && length <= rest.size() &&
                       rest[digits] == ' ' && rest[length - 1] == '\n';
    const std::string_view record = whole ? rest.substr(digits + 1, length - digits - 2) : "";
    const std::size_t equals = record.find('=');
    if (!whole || equals == std::string_view::npos || equals == 0)
      return broken("the PAX header before byte ", offset_,
                    " is malformed: expected 'LENGTH KEY=VALUE' lines");
    const std::string_view key = record.substr(0, equals), value = record.substr(equals + 1);
    if (key == "path") records.path = value;
    if (key == "linkpath") records.link = value;
    if (key == "size") records.size = value;
    if (base::starts_with(key, "GNU.sparse.")) records.is_sparse = true;
    rest.remove_prefix(length);
  }
  return {};
}

// Applies the records: a member's own ones replace the global ones with the same key.
base::Status TarReader::apply_records(const Header& header, Member& member) const {
  const auto own_or_global = [this](const auto& of) -> const std::optional<std::string>& {
    return local_.*of ? local_.*of : global_.*of;
  };
  const auto &path = own_or_global(&Records::path), &link = own_or_global(&Records::link),
             &size = own_or_global(&Records::size);
  if (path && !path->empty()) member.name = *path;
  if (link) member.link = *link;
  if (local_.is_sparse || global_.is_sparse)
    return base::fail(Code::kUnimplemented, name(), ": member ", member.name, " (header at byte ",
                      header.offset, ") is sparse, which is not supported: pack it again without --sparse");
  if (!size) return {};
  const auto [end, error] = std::from_chars(size->data(), size->data() + size->size(), member.size);
  if (size->empty() || error != std::errc() || end != size->data() + size->size() || member.size >> 63 != 0)
    return broken("the PAX header of member ", member.name, " before byte ", header.offset,
                  " has a size that is not a number: '", *size, "'");
  return {};
}

base::Status TarReader::classify(const Header& header, Member& member) const {
  switch (header.type()) {
    case '0':
    case '7':
    case '\0':
      // Before ustar, a folder was a file with a slash at its end.
      member.kind = header.type() == '\0' && base::ends_with(member.name, "/") ? MemberKind::kFolder
                                                                               : MemberKind::kFile;
      return {};
    case '1':
    case '2':
      member.kind = MemberKind::kLink;
      break;
    case '5':
      member.kind = MemberKind::kFolder;
      break;
    case '3':
    case '4':
    case '6':
      member.kind = MemberKind::kOther;
      break;
    case 'S':
      return base::fail(Code::kUnimplemented, name(), ": member ", member.name, " (header at byte ",
                        header.offset, ") is sparse, which is not supported: pack it again without --sparse");
    case 'M':
      return base::fail(Code::kUnimplemented, name(), ": member ", member.name, " (header at byte ",
                        header.offset,
                        ") continues on another volume, which is not supported: pack one archive");
    default:
      member.kind = MemberKind::kOther;
      return {};  // with a payload, which is passed over
  }
  member.size = 0;  // nothing follows these headers, even if the size field has a number
  return {};
}

base::Result<bool> TarReader::next(Member& member) {
  SLUICE_OK(finish_member());
  Header header;
  std::optional<std::string> long_name, long_link;
  const std::uint64_t start = offset_;
  local_.clear();
  while (true) {
    SLUICE_TRY(const bool found, read_header(header));
    if (!found && header.offset != start)
      return broken("the extended header at byte ", start, " has no member after it");
    if (!found) return false;
    const char type = header.type();
    if (type != 'L' && type != 'K' && type != 'x' && type != 'X' && type != 'g') break;
    SLUICE_TRY(const std::string_view text, read_extension(header.size, header.offset));
    if (type == 'L') long_name = text.substr(0, text.find('\0'));
    if (type == 'K') long_link = text.substr(0, text.find('\0'));
    if (type == 'x' || type == 'X') SLUICE_OK(parse_records(text, local_));
    if (type == 'g') SLUICE_OK(parse_records(text, global_));
  }
  header.name(member.name);
  member.kind = MemberKind::kFile;
  member.offset = start;
  member.size = header.size;
  member.link = text_field(header.block + 157, 100);
  if (long_name) member.name = std::move(*long_name);
  if (long_link) member.link = std::move(*long_link);
  SLUICE_OK(apply_records(header, member));
  SLUICE_OK(classify(header, member));
  payload_left_ = member.size;
  padding_ = tar_padded(member.size) - member.size;
  current_.name = member.name;
  current_.offset = member.offset;
  current_.size = member.size;
  return true;
}

}  // namespace sluice::data
