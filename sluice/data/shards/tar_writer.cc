#include "sluice/data/shards/tar_writer.h"

#include <cstdio>
#include <cstring>

#include "sluice/data/shards/tar.h"

namespace sluice::data {
namespace {

constexpr std::size_t kRecord = 20 * kTarBlock;
constexpr std::size_t kFlushBytes = 1 << 20;
constexpr std::uint64_t kMaxOctalSize = (std::uint64_t{1} << 33) - 1;  // 11 octal digits

void append_padded(std::string& out, std::string_view bytes) {
  out += bytes;
  out.append((kTarBlock - bytes.size() % kTarBlock) % kTarBlock, '\0');
}

// Returns where ustar splits a long name: prefix (≤ 155) / name (≤ 100); npos if it cannot.
std::size_t split_place(std::string_view name) {
  if (name.size() > 256) return std::string_view::npos;
  for (std::size_t slash = name.find('/'); slash != std::string_view::npos; slash = name.find('/', slash + 1))
    if (slash > 0 && slash <= 155 && name.size() - slash - 1 <= 100 && name.size() - slash - 1 > 0)
      return slash;
  return std::string_view::npos;
}

std::string header(std::string_view prefix, std::string_view name, std::uint64_t size, char type) {
  std::string block(kTarBlock, '\0');
  const auto put = [&block](std::size_t at, std::string_view text) { block.replace(at, text.size(), text); };
  char octal[16];
  put(0, name);
  put(100, "0000644");
  put(108, "0000000");
  put(116, "0000000");
  std::snprintf(octal, sizeof octal, "%011llo", static_cast<unsigned long long>(size));
  put(124, octal);
  put(136, "00000000000");
  put(148, "        ");
  block[156] = type;
  put(257, std::string_view("ustar\00000", 8));
  put(345, prefix);
  unsigned sum = 0;
  for (const char c : block) sum += static_cast<unsigned char>(c);
  std::snprintf(octal, sizeof octal, "%06o", sum);
  put(148, std::string_view(octal, 7));
  return block;
}

// Returns a PAX record "LENGTH KEY=VALUE\n": the length counts its own digits.
std::string pax_record(std::string_view key, std::string_view value) {
  const std::size_t rest = key.size() + value.size() + 3;
  std::size_t length = rest;
  while (length != rest + std::to_string(length).size()) length = rest + std::to_string(length).size();
  return base::str(length, " ", key, "=", value, "\n");
}

}  // namespace

std::string tar_member(std::string_view name, std::string_view payload) {
  std::string records;
  std::string_view prefix, rest = name;
  if (name.size() > 100) {
    const std::size_t slash = split_place(name);
    if (slash == std::string_view::npos) {
      records += pax_record("path", name);
      rest = name.substr(name.size() - 100);  // for readers that do not know PAX
    } else {
      prefix = name.substr(0, slash);
      rest = name.substr(slash + 1);
    }
  }
  std::uint64_t size = payload.size();
  if (size > kMaxOctalSize) {
    records += pax_record("size", std::to_string(size));
    size = 0;
  }
  std::string out;
  if (!records.empty()) {
    out += header("", "././@PaxHeader", records.size(), 'x');
    append_padded(out, records);
  }
  out += header(prefix, rest, size, '0');
  append_padded(out, payload);
  return out;
}

std::string tar_end(std::uint64_t size_so_far) {
  const std::uint64_t with_marker = size_so_far + 2 * kTarBlock;
  return std::string((with_marker + kRecord - 1) / kRecord * kRecord - size_so_far, '\0');
}

base::Result<TarWriter> TarWriter::create(const std::string& path) {
  SLUICE_TRY(auto file, base::AtomicFile::create(path));
  return TarWriter(std::move(file));
}

base::Status TarWriter::flush() {
  SLUICE_OK(file_.write(pending_));
  pending_.clear();
  return {};
}

base::Status TarWriter::add(std::string_view name, std::string_view payload) {
  if (name.empty()) return base::fail(Code::kInvalidArgument, "a member of a shard needs a name");
  pending_ += tar_member(name, payload);
  return pending_.size() < kFlushBytes ? base::Status() : flush();
}

base::Status TarWriter::finish() {
  pending_ += tar_end(bytes());
  SLUICE_OK(flush());
  return file_.commit();
}

}  // namespace sluice::data
