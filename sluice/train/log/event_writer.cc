#include "sluice/train/log/event_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "sluice/base/clock.h"
#include "sluice/base/files/file.h"
#include "sluice/base/formats/crc32c.h"
#include "sluice/base/formats/json_bytes.h"
#include "sluice/base/formats/proto_writer.h"
#include "sluice/base/process.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/number.h"
#include "sluice/base/text/strings.h"

namespace sluice::train {
namespace event_writer_detail {

// Returns the second for the name of a file that is read after the existing ones: TensorBoard sorts by name,
// so two starts in one second would be read in the order of their process numbers.
int64_t second_of(double wall, const std::vector<std::string>& there) {
  auto second = static_cast<int64_t>(wall);
  for (const std::string& name : there) {
    if (!base::starts_with(name, kEventFile)) continue;
    const std::string rest = name.substr(std::strlen(kEventFile));
    const auto other = base::number_of<int64_t>(rest.substr(0, rest.find('.')));
    if (other && *other >= second && *other < std::numeric_limits<int64_t>::max()) second = *other + 1;
  }
  return second;
}

// Pads numbers so that their texts sort in the order of the numbers.
std::string digits(int number) {
  const std::string text = std::to_string(number);
  return std::string(text.size() < 6 ? 6 - text.size() : 0, '0') + text;
}

// tensorflow.Event: wall_time = 1, step = 2, file_version = 3, summary = 5, session_log = 7.
std::string event(double wall, int64_t step, unsigned payload_field, std::string_view payload) {
  return base::ProtoWriter().real(1, wall).number(2, step).bytes(payload_field, payload).bytes();
}

template <typename Word>
void append(std::string& out, Word value) {
  static_assert(std::endian::native == std::endian::little);
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// tensorflow.Summary.Value: tag = 1, metadata = 9, tensor = 8. SummaryMetadata: plugin_data = 1 (plugin_name
// = 1, content = 2), data_class = 4.
constexpr int kTensorClass = 2, kBlobSequenceClass = 3;
std::string plugin_value(std::string_view tag, std::string_view plugin, std::string_view content,
                         std::string_view tensor, int data_class = kTensorClass) {
  base::ProtoWriter data;
  data.bytes(1, plugin);
  if (!content.empty()) data.bytes(2, content);
  const std::string metadata = base::ProtoWriter().bytes(1, data.bytes()).number(4, data_class).bytes();
  return base::ProtoWriter().bytes(1, tag).bytes(8, tensor).bytes(9, metadata).bytes();
}

// tensorflow.TensorProto: dtype = 1, tensor_shape = 2 (dim = 2: size = 1), tensor_content = 4, string_val
// = 8.
constexpr int kFloat = 1, kDouble = 2, kString = 7;
std::string shape_of(const std::vector<int64_t>& sizes) {
  base::ProtoWriter shape;
  for (const int64_t size : sizes) shape.bytes(2, base::ProtoWriter().number(1, size).bytes());
  return shape.bytes();
}

// tensorboard.hparams.HParamsPluginData: version = 1 (0, so it is left out), session_start_info = 3,
// session_end_info = 4. The value's tensor is empty.
std::string hparams_value(std::string_view tag, unsigned field, std::string_view info) {
  const std::string empty = base::ProtoWriter().bytes(2, "").bytes();
  const std::string none = base::ProtoWriter().number(1, kFloat).bytes(2, empty).bytes();
  return plugin_value(tag, "hparams", base::ProtoWriter().bytes(field, info).bytes(), none);
}

}  // namespace event_writer_detail

uint32_t crc32c(std::string_view bytes) { return base::crc32c(bytes.data(), bytes.size()); }

uint32_t masked_crc32c(std::string_view bytes) { return std::rotr(crc32c(bytes), 15) + 0xA282EAD8u; }

base::Result<EventWriter> EventWriter::create(const std::string& folder, int64_t first_step) {
  SLUICE_OK(base::make_directories(folder));
  SLUICE_TRY(const auto there, base::list_directory(folder));
  static std::atomic<int> number{0};  // two writers in one second and process get different files
  const double wall = base::wall_seconds();
  EventWriter writer;
  writer.path_ = base::join_path(
      folder, base::str(kEventFile, event_writer_detail::second_of(wall, there), ".", base::host_name(), ".",
                        getpid(), ".", event_writer_detail::digits(number++)));
  writer.descriptor_ = open(writer.path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (writer.descriptor_ < 0) return base::fail_errno(errno, "create", writer.path_);
  SLUICE_OK(writer.record(event_writer_detail::event(wall, 0, 3, "brain.Event:2")));
  // SessionLog: status = 1 (START = 1).
  SLUICE_OK(writer.record(
      event_writer_detail::event(wall, first_step, 7, base::ProtoWriter().number(1, 1).bytes())));
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
  return summary(point, step, wall);
}

base::Status EventWriter::summary(std::string_view value, int64_t step, double wall) {
  return record(event_writer_detail::event(wall, step, 5, base::ProtoWriter().bytes(1, value).bytes()));
}

base::Status EventWriter::text(std::string_view tag, std::string_view markdown, int64_t step, double wall) {
  namespace detail = event_writer_detail;
  const std::string tensor = base::ProtoWriter()
                                 .number(1, detail::kString)
                                 .bytes(2, detail::shape_of({1}))
                                 .bytes(8, base::json_of_bytes(markdown))
                                 .bytes();
  return summary(detail::plugin_value(tag, "text", "", tensor), step, wall);
}

base::Status EventWriter::image(std::string_view tag, std::string_view png, int64_t height, int64_t width,
                                int64_t step, double wall) {
  namespace detail = event_writer_detail;
  const std::string tensor = base::ProtoWriter()
                                 .number(1, detail::kString)
                                 .bytes(2, detail::shape_of({3}))
                                 .bytes(8, std::to_string(width))
                                 .bytes(8, std::to_string(height))
                                 .bytes(8, png)
                                 .bytes();
  return summary(detail::plugin_value(tag, "images", "", tensor, detail::kBlobSequenceClass), step, wall);
}

base::Status EventWriter::histogram(std::string_view tag, const std::vector<HistogramBucket>& buckets,
                                    int64_t step, double wall) {
  namespace detail = event_writer_detail;
  std::string content;
  for (const HistogramBucket& bucket : buckets)
    for (const double number : {bucket.left, bucket.right, bucket.count}) detail::append(content, number);
  const std::string tensor = base::ProtoWriter()
                                 .number(1, detail::kDouble)
                                 .bytes(2, detail::shape_of({static_cast<int64_t>(buckets.size()), 3}))
                                 .bytes(4, content)
                                 .bytes();
  return summary(detail::plugin_value(tag, "histograms", "", tensor), step, wall);
}

base::Status EventWriter::hyper_parameters(const std::vector<HyperParameter>& parameters, double wall) {
  // SessionStartInfo: hparams = 1 (a map to google.protobuf.Value: number = 2, string = 3, bool = 4),
  // start_time_secs = 5.
  base::ProtoWriter start;
  for (const auto& [name, value] : parameters) {
    base::ProtoWriter one;
    if (const auto* number = std::get_if<double>(&value)) one.real(2, *number);
    if (const auto* text = std::get_if<std::string>(&value)) one.bytes(3, base::json_of_bytes(*text));
    if (const auto* flag = std::get_if<bool>(&value)) one.number(4, *flag ? 1 : 0);
    start.bytes(1, base::ProtoWriter().bytes(1, base::json_of_bytes(name)).bytes(2, one.bytes()).bytes());
  }
  start.real(5, wall);
  return summary(event_writer_detail::hparams_value("_hparams_/session_start_info", 3, start.bytes()), 0,
                 wall);
}

base::Status EventWriter::ended(double wall) {
  // SessionEndInfo: status = 1 (STATUS_SUCCESS = 1), end_time_secs = 2.
  const std::string end = base::ProtoWriter().number(1, 1).real(2, wall).bytes();
  return summary(event_writer_detail::hparams_value("_hparams_/session_end_info", 4, end), 0, wall);
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
    if (written < 0) return base::fail_errno(errno, "write", path_);
    done += static_cast<size_t>(written);
  }
  return {};
}

}  // namespace sluice::train
