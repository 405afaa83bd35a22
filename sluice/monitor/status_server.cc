#include "sluice/monitor/status_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "sluice/base/clock.h"
#include "sluice/base/files/file.h"
#include "sluice/base/process.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/lower_case.h"
#include "sluice/base/text/number.h"
#include "sluice/base/text/strings.h"
#include "sluice/base/thread.h"
#include "sluice/monitor/host_report.h"

namespace sluice::monitor {
namespace {

constexpr double kPatience = 2;  // seconds for a request to arrive, and for its answer to be sent
constexpr size_t kMaxRequest = 8 << 10, kMaxConnections = 32;
constexpr int kLook = 200;  // milliseconds between checks of the connections' time

struct Response {
  int status = 200;
  const char* words = "OK";
  const char* type = "text/plain; charset=utf-8";
  std::string body = {};
};

// Returns the processes on this machine of the training that the process belongs to; if `wanted`, only the
// one with this index.
HostReport look_at_training(cloud::Http& http, int process, std::optional<int> wanted) {
  HostReport report;
  report.host = own_identity().host;
  report.time = base::wall_seconds();
  report.metrics = read_runtime_metrics(http, metrics_ports());
  if (const auto folder = status_folder()) report.processes = read_statuses(*folder, report.time);
  const auto is_own = [&](const SeenProcess& seen) { return seen.status.identity.process == process; };
  const auto own = std::find_if(report.processes.begin(), report.processes.end(), is_own);
  const ProcessIdentity who = own == report.processes.end() ? ProcessIdentity() : own->status.identity;
  std::erase_if(report.processes, [&](const SeenProcess& seen) {
    const ProcessIdentity& other = seen.status.identity;
    const bool same_run = !who.run.empty() && other.run == who.run;
    const bool met = !who.coordinator.empty() && other.coordinator == who.coordinator;
    return (!is_own(seen) && !same_run && !met) || (wanted && other.index != *wanted);
  });
  // The meeting place of the processes is not published.
  for (SeenProcess& seen : report.processes) seen.status.identity.coordinator.clear();
  return report;
}

// Writes a family of samples in Prometheus' text format.
class Family {
 public:
  Family(std::string& out, const char* name, const char* help) : out_(out), name_(name), help_(help) {}
  // Adds a sample with these labels, such as `process="1"`, if there is a value.
  void add(const std::string& labels, const std::optional<double>& value) {
    if (!value) return;
    if (!begun_) out_ += base::str("# HELP ", name_, " ", help_, "\n# TYPE ", name_, " gauge\n");
    begun_ = true;
    char number[32];
    std::snprintf(number, sizeof number, "%.10g", *value);
    out_ += base::str(name_, "{", labels, "} ", number, "\n");
  }

 private:
  std::string& out_;
  const char *name_, *help_;
  bool begun_ = false;
};

std::string label(const char* name, int64_t value) { return base::str(name, "=\"", value, "\""); }

std::string labels_of(const ProcessIdentity& who) {
  const std::string process = label("process", who.index);
  return who.slice < 0 ? process : base::str(process, ",", label("slice", who.slice));
}

std::string prometheus_text(const HostReport& report) {
  std::string out;
  const auto of_processes = [&](const char* name, const char* help, auto value) {
    Family family(out, name, help);
    for (const SeenProcess& seen : report.processes) family.add(labels_of(seen.status.identity), value(seen));
  };
  using Value = std::optional<double>;
  of_processes("sluice_step", "Steps so far.", [](const SeenProcess& p) -> Value { return p.status.step; });
  of_processes("sluice_epoch", "The epoch.", [](const SeenProcess& p) -> Value { return p.status.epoch; });
  of_processes("sluice_step_seconds", "Seconds of one step.",
               [](const SeenProcess& p) -> Value { return p.status.step_ms / 1000; });
  of_processes("sluice_examples_per_second", "Examples a second of all replicas of the process.",
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
  optional("sluice_tokens_per_second", "Tokens a second of all replicas of all processes.",
           &ProcessStatus::tokens_per_second);
  optional("sluice_flops_per_second",
           "Floating-point operations a second of one replica: products and convolutions of the model.",
           &ProcessStatus::flops_per_second);
  optional("sluice_memory_used_bytes", "Bytes in use on the fullest device of the process.",
           &ProcessStatus::memory_in_use);
  optional("sluice_memory_peak_bytes", "Most bytes in use so far on the fullest device of the process.",
           &ProcessStatus::memory_peak);
  of_processes("sluice_mfu", "Share of the peak that the model's own operations use.",
               [](const SeenProcess& p) { return p.status.mfu; });
  of_processes("sluice_silent_seconds", "Since the process wrote these figures.",
               [](const SeenProcess& p) -> Value { return p.age; });
  const auto of_chips = [&](const char* name, const char* help, auto value) {
    Family family(out, name, help);
    for (const ChipMetrics& chip : report.metrics.chips)
      family.add(label("device", chip.device), value(chip));
  };
  of_chips("sluice_chip_duty_cycle_percent", "Share of the time in which the TensorCore computes.",
           [](const ChipMetrics& chip) { return chip.duty_cycle; });
  of_chips("sluice_chip_memory_used_bytes", "HBM.",
           [](const ChipMetrics& chip) -> Value { return chip.memory_used; });
  of_chips("sluice_chip_memory_total_bytes", "HBM.",
           [](const ChipMetrics& chip) -> Value { return chip.memory_total; });
  return out;
}

bool is_address(const std::string& host) {
  in6_addr any{};
  return ::inet_pton(AF_INET, host.c_str(), &any) == 1 || ::inet_pton(AF_INET6, host.c_str(), &any) == 1;
}

// Returns the host of the header "Host:", without its port; nullopt if there is no such header.
std::optional<std::string> host_of(const std::string& request) {
  for (const std::string& line : base::split(request, '\n')) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos || base::lower_case(line.substr(0, colon)) != "host") continue;
    std::string host = base::lower_case(base::trim(std::string_view(line).substr(colon + 1)));
    if (host.starts_with('[')) return host.substr(1, host.find(']') - 1);
    return host.substr(0, host.find(':'));
  }
  return std::nullopt;
}

// Refuses DNS rebinding: a web page may point its own name at this machine, so that the browser sends
// requests here and lets the page read the answers. Such a request has the page's host name.
bool is_ours(const std::optional<std::string>& host, const std::string& listens) {
  return !host || is_address(*host) || *host == "localhost" || *host == base::lower_case(listens) ||
         *host == base::lower_case(base::host_name());
}

// `request`: its lines. `listens`: the host on which this server listens.
Response respond(const std::string& request, const std::string& listens, int process) {
  const auto words = base::split(request.substr(0, request.find("\r\n")), ' ');
  if (words.size() != 3 || !base::starts_with(words[2], "HTTP/1.")) return {400, "Bad Request"};
  if (!is_ours(host_of(request), listens))
    return {421, "Misdirected Request", "text/plain; charset=utf-8",
            "this server has another name: ask for it by its address, localhost or its host's own name\n"};
  if (words[0] != "GET") return {405, "Method Not Allowed"};
  const size_t mark = words[1].find('?');
  const std::string path = words[1].substr(0, mark);
  if (path != "/metrics" && path != "/status")
    return {404, "Not Found", "text/plain; charset=utf-8", "here are /metrics and /status\n"};
  std::optional<int> wanted;
  constexpr std::string_view kProcess = "process=";
  for (const std::string& part :
       base::split(mark == std::string::npos ? "" : words[1].substr(mark + 1), '&')) {
    if (!base::starts_with(part, kProcess)) continue;
    wanted = base::number_of<int>(part.substr(kProcess.size()));
    if (!wanted)
      return {400, "Bad Request", "text/plain; charset=utf-8",
              "expected ?process=NUMBER, such as ?process=1\n"};
  }
  cloud::Http http;
  const HostReport report = look_at_training(http, process, wanted);
  if (wanted && report.processes.empty())
    return {404, "Not Found", "text/plain; charset=utf-8",
            base::str("there is no process ", *wanted, " of this training on this machine\n")};
  if (path == "/metrics")
    return {200, "OK", "text/plain; version=0.0.4; charset=utf-8", prometheus_text(report)};
  return {200, "OK", "application/json", text_of({report}, 2) + "\n"};
}

}  // namespace

base::Result<std::unique_ptr<StatusServer>> StatusServer::start(const std::string& text, int process) {
  const std::string what = "the status port";
  SLUICE_TRY(const cloud::ListenAddress address, cloud::parse_listen_address(text, what));
  SLUICE_TRY(auto listener, cloud::Listener::open(address, what));
  return std::unique_ptr<StatusServer>(new StatusServer(std::move(listener), process));
}

// A connection with one request and its answer.
struct StatusServer::Connection {
  int socket;
  double until;  // of the monotonic clock: the deadline of the request, then of the answer
  std::string request = {}, answer = {};
  bool answered = false;
  Connection(int socket_, double until_) : socket(socket_), until(until_) {}
  ~Connection() { ::close(socket); }
};

StatusServer::StatusServer(cloud::Listener listener, int process)
    : listener_(std::move(listener)), process_(process), thread_([this] { serve(); }) {}

StatusServer::~StatusServer() {
  ends_ = true;
  ::shutdown(listener_.descriptor(), SHUT_RDWR);  // wakes the thread
  thread_.join();
}

void StatusServer::serve() {
  base::name_thread("sluice-status");
  ::fcntl(listener_.descriptor(), F_SETFL, O_NONBLOCK);
  while (!ends_) {
    std::vector<pollfd> polled = {{listener_.descriptor(), POLLIN, 0}};
    for (const auto& each : connections_)
      polled.push_back({each->socket, static_cast<short>(each->answered ? POLLOUT : POLLIN), 0});
    ::poll(polled.data(), polled.size(), connections_.empty() ? -1 : kLook);
    const double now = base::monotonic_seconds();
    for (size_t i = 0; i < connections_.size(); ++i)
      if (!move(*connections_[i], polled[i + 1].revents != 0) || now > connections_[i]->until)
        connections_[i].reset();
    std::erase(connections_, nullptr);
    if (polled[0].revents != 0 && !ends_) accept_one();
  }
  connections_.clear();
}

void StatusServer::accept_one() {
  // The oldest connection makes room.
  if (connections_.size() == kMaxConnections) connections_.erase(connections_.begin());
  const int socket = ::accept4(listener_.descriptor(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (socket >= 0)
    connections_.push_back(std::make_unique<Connection>(socket, base::monotonic_seconds() + kPatience));
  // For example, if no descriptors are left.
  else if (errno != EINTR && errno != ECONNABORTED && errno != EAGAIN)
    ::poll(nullptr, 0, 500);
}

// Returns false if the connection is over.
bool StatusServer::move(Connection& connection, bool ready) const {
  if (!ready) return true;
  return connection.answered ? send(connection) : receive(connection);
}

bool StatusServer::receive(Connection& connection) const {
  char bytes[2048];
  const ssize_t count = ::recv(connection.socket, bytes, sizeof bytes, MSG_DONTWAIT);
  if (count < 0) return errno == EAGAIN || errno == EINTR;
  if (count == 0) return false;
  connection.request.append(bytes, static_cast<size_t>(count));
  if (connection.request.size() > kMaxRequest) return false;
  const size_t end = connection.request.find("\r\n\r\n");
  if (end == std::string::npos) return true;
  const Response response =
      respond(connection.request.substr(0, end + 2), listener_.address().host, process_);
  connection.answer =
      base::str("HTTP/1.1 ", response.status, " ", response.words, "\r\nContent-Type: ", response.type,
                "\r\nContent-Length: ", response.body.size(), "\r\nConnection: close\r\n\r\n", response.body);
  connection.answered = true;
  connection.until = base::monotonic_seconds() + kPatience;
  return send(connection);
}

bool StatusServer::send(Connection& connection) {
  const ssize_t count = ::send(connection.socket, connection.answer.data(), connection.answer.size(),
                               MSG_DONTWAIT | MSG_NOSIGNAL);
  if (count < 0) return errno == EAGAIN || errno == EINTR;
  connection.answer.erase(0, static_cast<size_t>(count));
  return !connection.answer.empty();
}

}  // namespace sluice::monitor
