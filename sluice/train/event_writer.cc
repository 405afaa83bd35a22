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
#include "sluice/base/process.h"
#include "sluice/base/proto_writer.h"

namespace sluice::train {
namespace event_writer_detail {

// tensorflow.Event: wall_time = 1, step = 2, file_version = 3, summary = 5.
std::string event(double wall, int64_t step, unsigned payload_field, std::string_view payload) {
  return base::ProtoWriter().real(1, wall).number(2, step).bytes(payload_field, payload).bytes();
}

template <typename Word>
void append(std::string& out, Word value) {
  static_assert(std::endian::native == std::endian::little);
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace event_writer_detail

uint32_t crc32c(std::string_view bytes) { return base::crc32c(bytes.data(), bytes.size()); }

uint32_t masked_crc32c(std::string_view bytes) { return std::rotr(crc32c(bytes), 15) + 0xA282EAD8u; }

base::Result<EventWriter> EventWriter::create(const std::string& folder) {
  SLUICE_OK(base::make_directories(folder));
  static std::atomic<int> number{0};  // two writers in one second and process get files of their own
  const double wall = base::wall_seconds();
  EventWriter writer;
  writer.path_ = base::join_path(folder, base::str("events.out.tfevents.", static_cast<int64_t>(wall), ".",
                                                   base::host_name(), ".", getpid(), ".", number++));
  writer.descriptor_ = open(writer.path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (writer.descriptor_ < 0) return base::fail_errno(errno, "cannot create", writer.path_);
  SLUICE_OK(writer.record(event_writer_detail::event(wall, 0, 3, "brain.Event:2")));
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
  // Summary: value = 1; Summary.Value: tag = 1, simple_value = 2.
  const std::string point = base::ProtoWriter().bytes(1, tag).real32(2, static_cast<float>(value)).bytes();
  return record(event_writer_detail::event(wall, step, 5, base::ProtoWriter().bytes(1, point).bytes()));
}

// A record: length, its checksum, the bytes, their checksum.
base::Status EventWriter::record(std::string_view event) {
  using event_writer_detail::append;
  std::string out;
  append(out, static_cast<uint64_t>(event.size()));
  append(out, masked_crc32c(out));
  out.append(event);
  append(out, masked_crc32c(event));
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
