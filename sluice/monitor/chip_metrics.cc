#include "sluice/monitor/chip_metrics.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <map>

#include "sluice/base/clock.h"
#include "sluice/base/environment.h"
#include "sluice/base/formats/proto_writer.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/number.h"
#include "sluice/base/text/strings.h"
#include "sluice/cloud/grpc.h"
#include "sluice/pjrt/proto_reader.h"

namespace sluice::monitor {
namespace {

using pjrt::ProtoReader;

constexpr int kPort = 8431, kRefusalMilliseconds = 200;  // loopback refuses at once
constexpr size_t kMaxAnswer = 1 << 20;                   // bytes
constexpr std::string_view kDutyCycle = "tpu.runtime.tensorcore.dutycycle.percent",
                           kUsed = "tpu.runtime.hbm.memory.usage.bytes",
                           kTotal = "tpu.runtime.hbm.memory.total.bytes";

bool is_listening(int port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int error = ::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? 0 : errno;
  pollfd polled{socket, POLLOUT, 0};
  socklen_t size = sizeof error;
  if (error == EINPROGRESS && ::poll(&polled, 1, kRefusalMilliseconds) > 0)
    ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size);
  ::close(socket);
  return error == 0 || error == EINPROGRESS;  // EINPROGRESS: too busy to answer
}

double double_of(std::string_view bytes) {
  double value = 0;
  if (bytes.size() == sizeof value) std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

// Reads the device of an Attribute {key = 1, value = 2 {string_attr = 1, int_attr = 3}}; newer libtpu writes
// some devices as text.
std::optional<int> device_of(std::string_view attribute) {
  ProtoReader fields(attribute);
  std::optional<int> device;
  while (fields.next()) {
    if (fields.field() != 2 || !fields.is_bytes()) continue;
    ProtoReader value(fields.bytes());
    device = 0;  // a value of 0 is omitted
    while (value.next()) {
      if (value.field() == 3) device = static_cast<int>(value.number());
      if (value.field() == 1 && value.is_bytes()) device = base::number_of<int>(value.bytes());
    }
    if (value.broken()) return std::nullopt;
  }
  return fields.broken() ? std::nullopt : device;
}

// Reads a Gauge {as_double = 1, as_int = 2}, or a Counter, which has the same fields.
std::optional<double> value_of(std::string_view gauge) {
  ProtoReader fields(gauge);
  double value = 0;
  while (fields.next()) {
    if (fields.field() == 1) value = double_of(fields.bytes());
    if (fields.field() == 2) value = static_cast<double>(static_cast<int64_t>(fields.number()));
  }
  return fields.broken() || !std::isfinite(value) ? std::nullopt : std::optional(value);
}

// Reads a Metric {attribute = 1, gauge = 3, counter = 4}.
std::optional<DeviceValue> device_value(std::string_view metric) {
  ProtoReader fields(metric);
  std::optional<int> device;
  std::optional<double> value;
  while (fields.next()) {
    if (!fields.is_bytes()) continue;
    if (fields.field() == 1) device = device_of(fields.bytes());
    if (fields.field() == 3 || fields.field() == 4) value = value_of(fields.bytes());
  }
  if (fields.broken() || !device || *device < 0 || !value) return std::nullopt;
  return DeviceValue{*device, *value};
}

// Reads one metric from one service; empty if this libtpu does not have it.
base::Result<std::vector<DeviceValue>> ask(cloud::Http& http, int port, std::string_view name,
                                           double seconds) {
  // MetricRequest {metric_name = 1}
  const std::string body = base::ProtoWriter().bytes(1, name).bytes();
  const auto message =
      cloud::call_grpc(http, {.address = base::str("127.0.0.1:", port),
                              .method = "/tpu.monitoring.runtime.RuntimeMetricService/GetRuntimeMetric",
                              .message = body,
                              .timeout = seconds,
                              .max_answer = kMaxAnswer});
  if (!message && message.error().code() == Code::kNotFound) return std::vector<DeviceValue>();
  if (!message) return tl::unexpected<Error>(message.error());
  return parse_metric(*message);
}

// Reads all three metrics from one service.
base::Status add_service(cloud::Http& http, int port, double deadline, std::map<int, ChipMetrics>& chips) {
  const base::Stopwatch watch;
  std::vector<DeviceValue> used, total, duty;
  SLUICE_TRY(used, ask(http, port, kUsed, deadline - watch.seconds()));
  SLUICE_TRY(total, ask(http, port, kTotal, deadline - watch.seconds()));
  SLUICE_TRY(duty, ask(http, port, kDutyCycle, deadline - watch.seconds()));
  std::map<int, ChipMetrics> own;
  for (const DeviceValue& one : used)
    own[one.device].memory_used = static_cast<uint64_t>(std::max(0.0, one.value));
  for (const DeviceValue& one : total)
    own[one.device].memory_total = static_cast<uint64_t>(std::max(0.0, one.value));
  // Memory is reported for each core, duty cycles for each chip.
  const size_t cores =
      duty.empty() || own.size() % duty.size() != 0 ? 1 : std::max<size_t>(1, own.size() / duty.size());
  if (cores == 1) {
    for (const DeviceValue& one : duty) own[one.device].duty_cycle = one.value;
  } else {
    std::sort(duty.begin(), duty.end(), [](const auto& a, const auto& b) { return a.device < b.device; });
    size_t place = 0;
    for (auto& [device, chip] : own) chip.duty_cycle = duty[place++ / cores].value;
  }
  for (auto& [device, chip] : own) {
    chip.device = device;
    chips[device] = chip;
  }
  return {};
}

}  // namespace

std::vector<int> metrics_ports() {
  std::vector<int> ports;
  for (const std::string& part :
       base::split(base::environment("TPU_RUNTIME_METRICS_PORTS").value_or(""), ','))
    if (const auto port = base::number_of<uint16_t>(base::trim(part)); port && *port > 0)
      ports.push_back(*port);
  if (ports.empty()) ports.push_back(kPort);
  return ports;
}

RuntimeMetrics read_runtime_metrics(cloud::Http& http, const std::vector<int>& ports, double deadline) {
  RuntimeMetrics metrics;
  std::map<int, ChipMetrics> chips;
  for (const int port : ports) {
    if (!is_listening(port)) continue;
    metrics.running = true;
    if (const auto added = add_service(http, port, deadline, chips); !added)
      metrics.faults.push_back(
          base::str("port ", port, " gives no metrics of chips: ", added.error().what()));
  }
  for (const auto& [device, chip] : chips) metrics.chips.push_back(chip);
  return metrics;
}

base::Result<std::vector<DeviceValue>> parse_metric(std::string_view message) {
  std::vector<DeviceValue> values;
  // MetricResponse {metric = 1}, TPUMetric {metrics = 3}
  ProtoReader response(message);
  while (response.next()) {
    if (response.field() != 1 || !response.is_bytes()) continue;
    ProtoReader metric(response.bytes());
    while (metric.next()) {
      if (metric.field() != 3 || !metric.is_bytes()) continue;
      const auto value = device_value(metric.bytes());
      if (!value)
        return base::fail(Code::kDataLoss, "a value in the answer names no device, or is not a number");
      values.push_back(*value);
    }
    if (metric.broken()) return base::fail(Code::kDataLoss, "the answer is not a list of metrics");
  }
  if (response.broken()) return base::fail(Code::kDataLoss, "the answer is not a protocol buffer");
  return values;
}

}  // namespace sluice::monitor
