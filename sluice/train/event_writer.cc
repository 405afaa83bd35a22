#include "sluice/train/event_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "sluice/base/clock.h"
#include "sluice/base/crc32c.h"
#include "sluice/base/file.h"

namespace sluice::train {
namespace wire {

// Protobuf's wire types; a field's key is number << 3 | type.
enum Type : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

template <typename T>
void fixed(std::string& out, T value) {
  static_assert(std::endian::native == std::endian::little);
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

void key(std::string& out, uint32_t field, Type type) { varint(out, field << 3 | type); }

void bytes(std::string& out, uint32_t field, std::string_view value) {
  key(out, field, kBytes);
  varint(out, value.size());
  out.append(value);
}

// tensorflow.Event: wall_time = 1, step = 2, file_version = 3, summary = 5.
std::string event(double wall, int64_t step, uint32_t payload_field, std::string_view payload) {
  std::string out;
  key(out, 1, kFixed64);
  fixed(out, wall);
  key(out, 2, kVarint);
  varint(out, static_cast<uint64_t>(step));
  bytes(out, payload_field, payload);
  return out;
}

}  // namespace wire

uint32_t crc32c(std::string_view bytes) { return base::crc32c(bytes.data(), bytes.size()); }

uint32_t masked_crc32c(std::string_view bytes) { return std::rotr(crc32c(bytes), 15) + 0xA282EAD8u; }

base::Result<EventWriter> EventWriter::create(const std::string& folder) {
  SLUICE_OK(base::make_directories(folder));
  static std::atomic<int> number{0};  // two writers in one second and process get files of their own
  char host[256] = "localhost";
  gethostname(host, sizeof host - 1);
  const double wall = base::wall_seconds();
  EventWriter writer;
  writer.path_ = base::join_path(folder, base::str("events.out.tfevents.", static_cast<int64_t>(wall), ".",
                                                   host, ".", getpid(), ".", number++));
  writer.descriptor_ = open(writer.path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (writer.descriptor_ < 0) return base::fail_errno(errno, "cannot create", writer.path_);
  SLUICE_OK(writer.record(wire::event(wall, 0, 3, "brain.Event:2")));
  return writer;
}

EventWriter::EventWriter(EventWriter&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

EventWriter& EventWriter::operator=(EventWriter&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

EventWriter::~EventWriter() {
  if (descriptor_ >= 0) close(descriptor_);
}

base::Status EventWriter::scalar(std::string_view tag, double value, int64_t step, double wall) {
  std::string point;  // Summary.Value: tag = 1, simple_value = 2
  wire::bytes(point, 1, tag);
  wire::key(point, 2, wire::kFixed32);
  wire::fixed(point, static_cast<float>(value));
  std::string summary;  // Summary: value = 1
  wire::bytes(summary, 1, point);
  return record(wire::event(wall, step, 5, summary));
}

// A record: length, its checksum, the bytes, their checksum.
base::Status EventWriter::record(std::string_view event) {
  std::string out;
  wire::fixed(out, static_cast<uint64_t>(event.size()));
  wire::fixed(out, masked_crc32c(out));
  out.append(event);
  wire::fixed(out, masked_crc32c(event));
  size_t done = 0;
  while (done < out.size()) {
    ssize_t written = write(descriptor_, out.data() + done, out.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return base::fail_errno(errno, "cannot write", path_);
    done += static_cast<size_t>(written);
  }
  return {};
}

}  // namespace sluice::train
