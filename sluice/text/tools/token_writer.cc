#include "sluice/text/tools/token_writer.h"

#include <cstring>
#include <functional>

#include "sluice/base/formats/crc32c.h"
#include "sluice/text/tools/token_format.h"

namespace sluice::text {
namespace {

constexpr std::size_t kWriteBytes = std::size_t{1} << 18;  // bytes that are written at a time

template <typename T>
void put(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value),
            sizeof value);  // all supported machines are little-endian
}

// Writes the index of many documents in pieces.
template <typename T>
base::Status put_list(base::AtomicFile& file, std::size_t count, const std::function<T(std::size_t)>& value) {
  std::string bytes;
  for (std::size_t i = 0; i < count; ++i) {
    put<T>(bytes, value(i));
    if (bytes.size() < kWriteBytes && i + 1 < count) continue;
    SLUICE_OK(file.write(bytes));
    bytes.clear();
  }
  return {};
}

}  // namespace

int token_width(std::size_t vocabulary) { return vocabulary <= 65'536 ? 2 : 4; }

base::Result<TokenWriter> TokenWriter::create(const std::string& name, int width) {
  SLUICE_TRY(auto file, base::AtomicFile::create(name + ".bin"));
  return TokenWriter(name, width, std::move(file));
}

base::Status TokenWriter::add(const std::uint32_t* ids, std::size_t count) {
  const std::uint32_t limit = width_ == 2 ? 0xFFFF : 0x7FFFFFFF;
  if (count > 0x7FFFFFFF)
    return base::fail(Code::kInvalidArgument, name_, ": a document of ", count, " tokens is too long");
  const auto width = static_cast<std::size_t>(width_);
  for (std::size_t i = 0; i < count; ++i) {
    if (ids[i] > limit)
      return base::fail(Code::kOutOfRange, name_, ": the id ", ids[i], " at place ", i, " of document ",
                        documents(), " does not fit ", width_,
                        " bytes: was the vocabulary's size given too small?");
    bytes_.append(reinterpret_cast<const char*>(&ids[i]),
                  width);  // the lower bytes come first
    if (bytes_.size() >= kWriteBytes) SLUICE_OK(write());
  }
  lengths_.push_back(static_cast<std::int32_t>(count));
  tokens_ += count;
  return {};
}

base::Status TokenWriter::write() {
  SLUICE_OK(file_.write(bytes_));
  crc_ = base::crc32c(bytes_.data(), bytes_.size(), crc_);
  bytes_.clear();
  return {};
}

base::Status TokenWriter::commit() {
  SLUICE_OK(write());
  SLUICE_TRY(auto index, base::AtomicFile::create(name_ + ".idx"));
  std::string header(kIndexMagic, sizeof kIndexMagic);
  put<std::uint64_t>(header, kIndexVersion);
  put<std::uint8_t>(header, width_ == 2 ? kUint16 : kInt32);
  put<std::uint64_t>(header, documents());
  put<std::uint64_t>(header, documents() + 1);
  SLUICE_OK(index.write(header));
  SLUICE_OK(put_list<std::int32_t>(index, documents(), [this](std::size_t i) { return lengths_[i]; }));
  std::int64_t place = 0;
  SLUICE_OK(put_list<std::int64_t>(index, documents(), [&](std::size_t i) {
    const std::int64_t begin = place;
    place += static_cast<std::int64_t>(lengths_[i]) * width_;
    return begin;
  }));
  SLUICE_OK(put_list<std::int64_t>(index, documents() + 1,
                                   [](std::size_t i) { return static_cast<std::int64_t>(i); }));
  SLUICE_OK(file_.commit());
  return index.commit();
}

}  // namespace sluice::text
