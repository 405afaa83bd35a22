#include "sluice/monitor/status_server.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "sluice/base/clock.h"
#include "sluice/base/file.h"
#include "sluice/base/number.h"
#include "sluice/base/strings.h"
#include "sluice/base/thread.h"
#include "sluice/monitor/host_report.h"

namespace sluice::monitor {
namespace {

constexpr double kPatience = 2;  // seconds for a request to come and for its answer to go
constexpr size_t kMaxRequest = 8 << 10;
constexpr char kProcessLabel[] = "process", kDeviceLabel[] = "device";

struct Response {
  int status = 200;
  const char* words = "OK";
  const char* type = "text/plain; charset=utf-8";
  std::string body = {};
};

// The training that the process belongs to, as far as it is on this machine.
HostReport look_at_training(cloud::Http& http, int process) {
  HostReport report;
  report.host = own_identity().host;
  report.time = base::wall_seconds();
  report.metrics = read_runtime_metrics(http, metrics_ports());
  if (const auto folder = status_folder()) report.processes = read_statuses(*folder, report.time);
  const auto is_own = [&](const SeenProcess& seen) { return seen.status.identity.process == process; };
  const auto own = std::find_if(report.processes.begin(), report.processes.end(), is_own);
  const std::string run = own == report.processes.end() ? "" : own->status.identity.run;
  std::erase_if(report.processes, [&](const SeenProcess& seen) {
    return !is_own(seen) && (run.empty() || seen.status.identity.run != run);
  });
  return report;
}

// A family of samples in Prometheus' text format.
class Family {
 public:
  Family(std::string& out, const char* name, const char* help, const char* label)
      : out_(out), name_(name), help_(help), label_(label) {}
  void add(int64_t which, const std::optional<double>& value) {
    if (!value) return;
    if (!begun_) out_ += base::str("# HELP ", name_, " ", help_, "\n# TYPE ", name_, " gauge\n");
    begun_ = true;
    char number[32];
    std::snprintf(number, sizeof number, "%.10g", *value);
    out_ += base::str(name_, "{", label_, "=\"", which, "\"} ", number, "\n");
  }

 private:
  std::string& out_;
  const char *name_, *help_, *label_;
  bool begun_ = false;
};

std::string prometheus_text(const HostReport& report) {
  std::string out;
  const auto of_processes = [&](const char* name, const char* help, auto value) {
    Family family(out, name, help, kProcessLabel);
    for (const SeenProcess& seen : report.processes) family.add(seen.status.identity.index, value(seen));
  };
  using Value = std::optional<double>;
  of_processes("sluice_step", "Steps so far.", [](const SeenProcess& p) -> Value { return p.status.step; });
  of_processes("sluice_epoch", "The epoch.", [](const SeenProcess& p) -> Value { return p.status.epoch; });
  of_processes("sluice_step_seconds", "Of one step.",
               [](const SeenProcess& p) -> Value { return p.status.step_ms / 1000; });
  of_processes("sluice_examples_per_second", "Of all replicas of the process.",
               [](const SeenProcess& p) -> Value { return p.status.rate; });
  const auto share = [&](const char* name, const char* help, double TimeShares::*part) {
    of_processes(name, help, [part](const SeenProcess& p) -> Value {
      return p.status.shares ? Value((*p.status.shares).*part) : std::nullopt;
    });
  };
  share("sluice_input_share", "Part of the time that waited for data.", &TimeShares::input);
  share("sluice_trace_share", "Part of the time that the host recorded, with an idle device.",
        &TimeShares::trace);
  share("sluice_device_share", "Part of the time with a program on the device.", &TimeShares::device);
  const auto optional = [&](const char* name, const char* help, auto member) {
    of_processes(name, help, [member](const SeenProcess& p) -> Value {
      const auto& value = p.status.*member;
      return value ? Value(*value) : std::nullopt;
    });
  };
  const auto quantile = [&](const char* name, const char* help, std::optional<double> ProcessStatus::*ms) {
    of_processes(name, help, [ms](const SeenProcess& p) -> Value {
      return p.status.*ms ? Value(*(p.status.*ms) / 1000) : std::nullopt;
    });
  };
  quantile("sluice_step_p50_seconds", "Half of the steps took no longer.", &ProcessStatus::step_p50_ms);
  quantile("sluice_step_p95_seconds", "95 of 100 steps took no longer.", &ProcessStatus::step_p95_ms);
  optional("sluice_tokens_per_second", "Of all replicas of all processes.",
           &ProcessStatus::tokens_per_second);
  optional("sluice_flops_per_second", "Of one replica: products and convolutions of the model.",
           &ProcessStatus::flops_per_second);
  optional("sluice_memory_used_bytes", "Of the fullest device of the process.",
           &ProcessStatus::memory_in_use);
  optional("sluice_memory_peak_bytes", "Of the fullest device of the process.", &ProcessStatus::memory_peak);
  of_processes("sluice_mfu", "Share of the peak that the model's own operations use.",
               [](const SeenProcess& p) { return p.status.mfu; });
  of_processes("sluice_silent_seconds", "Since the process wrote these figures.",
               [](const SeenProcess& p) -> Value { return p.age; });
  const auto of_chips = [&](const char* name, const char* help, auto value) {
    Family family(out, name, help, kDeviceLabel);
    for (const ChipMetrics& chip : report.metrics.chips) family.add(chip.device, value(chip));
  };
  of_chips("sluice_chip_duty_cycle_percent", "Of the TensorCore.",
           [](const ChipMetrics& chip) { return chip.duty_cycle; });
  of_chips("sluice_chip_memory_used_bytes", "HBM.",
           [](const ChipMetrics& chip) -> Value { return chip.memory_used; });
  of_chips("sluice_chip_memory_total_bytes", "HBM.",
           [](const ChipMetrics& chip) -> Value { return chip.memory_total; });
  return out;
}

// Up to the blank line behind the headers; "" when it does not come.
std::string read_request(int connection) {
  std::string request;
  const base::Stopwatch watch;
  while (request.find("\r\n\r\n") == std::string::npos) {
    const double left = kPatience - watch.seconds();
    pollfd polled{connection, POLLIN, 0};
    char bytes[2048];
    if (left <= 0 || request.size() > kMaxRequest || ::poll(&polled, 1, static_cast<int>(left * 1000)) <= 0)
      return "";
    const ssize_t count = ::recv(connection, bytes, sizeof bytes, MSG_DONTWAIT);
    if (count <= 0) return "";
    request.append(bytes, static_cast<size_t>(count));
  }
  return request;
}

void send_all(int connection, std::string_view bytes) {
  const base::Stopwatch watch;
  while (!bytes.empty()) {
    const double left = kPatience - watch.seconds();
    pollfd polled{connection, POLLOUT, 0};
    if (left <= 0 || ::poll(&polled, 1, static_cast<int>(left * 1000)) <= 0) return;
    const ssize_t count = ::send(connection, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count < 0 && errno != EAGAIN) return;
    if (count > 0) bytes.remove_prefix(static_cast<size_t>(count));
  }
}

Response respond(const std::string& request, int process) {
  const auto words = base::split(request.substr(0, request.find("\r\n")), ' ');
  if (words.size() != 3 || !base::starts_with(words[2], "HTTP/1.")) return {400, "Bad Request"};
  if (words[0] != "GET") return {405, "Method Not Allowed"};
  const std::string path = words[1].substr(0, words[1].find('?'));
  if (path != "/metrics" && path != "/status")
    return {404, "Not Found", "text/plain; charset=utf-8", "here are /metrics and /status\n"};
  cloud::Http http;
  const HostReport report = look_at_training(http, process);
  if (path == "/metrics")
    return {200, "OK", "text/plain; version=0.0.4; charset=utf-8", prometheus_text(report)};
  return {200, "OK", "application/json", text_of({report}, 2) + "\n"};
}

}  // namespace

base::Result<ListenAddress> parse_listen_address(const std::string& text) {
  ListenAddress address;
  const size_t colon = text.rfind(':');
  const auto port =
      base::number_of<uint16_t>(std::string_view(text).substr(colon == std::string::npos ? 0 : colon + 1));
  if (colon != std::string::npos) address.host = text.substr(0, colon);
  if (base::starts_with(address.host, "[") && base::ends_with(address.host, "]"))
    address.host = address.host.substr(1, address.host.size() - 2);
  if (!port || address.host.empty())
    return base::fail(Code::kInvalidArgument,
                      "the status port: expected a port, 9100, or an address with it, 0.0.0.0:9100; found \"",
                      text, "\"");
  address.port = *port;
  return address;
}

base::Result<std::unique_ptr<StatusServer>> StatusServer::start(const std::string& text, int process) {
  SLUICE_TRY(const ListenAddress address, parse_listen_address(text));
  const std::string shown = base::str(address.host, " port ", address.port);
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  const int problem =
      ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (problem != 0)
    return base::fail(Code::kInvalidArgument, "the status port: cannot listen at ", shown, ": ",
                      ::gai_strerror(problem), "; give an address of this machine");
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> list(found, ::freeaddrinfo);
  const int listener = ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(listener, found->ai_addr, found->ai_addrlen) != 0 || ::listen(listener, 8) != 0) {
    const int number = errno;
    ::close(listener);
    return base::fail(number == EADDRINUSE ? Code::kAlreadyExists : Code::kUnavailable,
                      "the status port: cannot listen at ", shown, ": ", std::strerror(number),
                      number == EADDRINUSE ? "; choose another port, or 0 for one that is free" : "");
  }
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&own), &size);
  const int port = ntohs(own.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(own).sin6_port
                                                   : reinterpret_cast<const sockaddr_in&>(own).sin_port);
  return std::unique_ptr<StatusServer>(new StatusServer(listener, port, process));
}

StatusServer::StatusServer(int listener, int port, int process)
    : listener_(listener), port_(port), process_(process), thread_([this] { serve(); }) {}

StatusServer::~StatusServer() {
  ends_ = true;
  ::shutdown(listener_, SHUT_RDWR);  // wakes the thread
  thread_.join();
  ::close(listener_);
}

void StatusServer::serve() {
  base::name_thread("sluice-status");
  while (!ends_) {
    const int connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection >= 0) answer(connection);
    // Without descriptors left, for example.
    else if (!ends_ && errno != EINTR && errno != ECONNABORTED)
      ::poll(nullptr, 0, 500);
  }
}

void StatusServer::answer(int connection) {
  const std::string request = read_request(connection);
  if (!request.empty()) {
    const Response response = respond(request, process_);
    send_all(connection, base::str("HTTP/1.1 ", response.status, " ", response.words, "\r\nContent-Type: ",
                                   response.type, "\r\nContent-Length: ", response.body.size(),
                                   "\r\nConnection: close\r\n\r\n", response.body));
  }
  ::close(connection);
}

}  // namespace sluice::monitor
