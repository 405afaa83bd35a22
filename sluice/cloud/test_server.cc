#include "sluice/cloud/test_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "sluice/base/formats/crc32c.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/lower_case.h"
#include "sluice/base/text/strings.h"
#include "sluice/cloud/storage.h"

namespace sluice::cloud::test {
namespace {

std::string decoded(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      result += static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
      i += 2;
    } else {
      result += text[i];
    }
  }
  return result;
}

bool send_all(int connection, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

// Reads into `text` until it holds `size` bytes or, for size 0, the end of a header.
bool receive(int connection, std::string& text, std::size_t size) {
  char piece[16384];
  while (size > 0 ? text.size() < size : text.find("\r\n\r\n") == std::string::npos) {
    const ssize_t got = ::recv(connection, piece, sizeof piece, 0);
    if (got <= 0) return false;
    text.append(piece, static_cast<std::size_t>(got));
  }
  return true;
}

Request parse_head(const std::string& head) {
  Request request;
  const auto lines = base::split(head, '\n');
  const auto words = base::split(lines[0], ' ');
  request.method = words[0];
  const std::string target = words.size() > 1 ? words[1] : "/";
  const std::size_t mark = target.find('?');
  request.path = target.substr(0, mark);
  request.query = mark == std::string::npos ? "" : target.substr(mark + 1);
  for (const std::string& line : lines) {
    const std::size_t colon = line.find(':');
    if (&line == &lines[0] || colon == std::string::npos) continue;
    request.headers[base::lower_case(line.substr(0, colon))] = base::trim(line.substr(colon + 1));
  }
  return request;
}

}  // namespace

std::string Request::parameter(const std::string& name) const {
  for (const std::string& part : base::split(query, '&'))
    if (base::starts_with(part, name + "=")) return decoded(std::string_view(part).substr(name.size() + 1));
  return "";
}

Server::Server(Handler handler) : handler_(std::move(handler)) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener_, 64) != 0) {
    std::perror("the test's server cannot listen");
    std::abort();
  }
  acceptor_ = std::thread([this] { accept_all(); });
}

Server::~Server() {
  stopping_ = true;
  ::shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  {
    const std::lock_guard lock(mutex_);
    for (const int connection : open_) ::shutdown(connection, SHUT_RDWR);
  }
  for (std::thread& worker : workers_) worker.join();
  ::close(listener_);
}

std::string Server::address() const {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
  return "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
}

bool stand_for_cloud(const Server& server) {
  return ::setenv("STORAGE_EMULATOR_HOST", server.address().c_str(), 1) == 0 &&
         ::setenv("SLUICE_CLOUD_RETRY", "0.001:0.01:5", 1) == 0;
}

void Server::accept_all() {
  while (!stopping_) {
    const int connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) continue;
    const int on = 1;
    ::setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const std::lock_guard lock(mutex_);
    open_.insert(connection);
    ++connections_;
    workers_.emplace_back([this, connection] { serve(connection); });
  }
}

void Server::serve(int connection) {
  std::string text;
  while (!stopping_ && receive(connection, text, 0)) {
    const std::size_t end = text.find("\r\n\r\n") + 4;
    Request request = parse_head(text.substr(0, end));
    text.erase(0, end);
    const std::size_t length = std::strtoul(request.header("content-length").c_str(), nullptr, 10);
    if (length > 0 && !receive(connection, text, length)) break;
    request.body = text.substr(0, length);
    text.erase(0, length);
    ++requests_;
    if (!answer(connection, request)) break;
  }
  const std::lock_guard lock(mutex_);
  open_.erase(connection);
  ::close(connection);
}

bool Server::answer(int connection, const Request& request) {
  const Reply reply = handler_(request);
  std::string head = "HTTP/1.1 " + std::to_string(reply.status) + " Status\r\n";
  for (const std::string& header : reply.headers) head += header + "\r\n";
  if (!reply.without_length)
    head += base::str("Content-Length: ", reply.declared.value_or(reply.body.size()), "\r\n");
  if (!send_all(connection, head + "\r\n")) return false;
  const std::size_t size = std::min(reply.cut_after.value_or(reply.body.size()), reply.body.size());
  if (request.method != "HEAD" && !send_all(connection, std::string_view(reply.body).substr(0, size)))
    return false;
  while (reply.stall && !stopping_) {
    pollfd gone{connection, POLLRDHUP, 0};
    if (::poll(&gone, 1, 20) > 0) return false;  // the client closed the connection
  }
  if (reply.cut_after) {
    const linger reset{1, 0};
    ::setsockopt(connection, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  }
  return !reply.cut_after && !reply.without_length && !reply.declared;
}

void Bucket::put(const std::string& name, std::string bytes) {
  const std::lock_guard lock(mutex_);
  objects_[name] = Object{std::move(bytes), ++next_};
}

std::optional<Bucket::Object> Bucket::get(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = objects_.find(name);
  return found == objects_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<std::string> Bucket::names() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, object] : objects_) names.push_back(name);
  return names;
}

void Bucket::lie_about_crc(const std::string& name, std::uint32_t crc) {
  const std::lock_guard lock(mutex_);
  objects_[name].crc32c = crc;
}

namespace {

std::string json_of(const std::string& name, const Bucket::Object& object) {
  const std::uint32_t crc = object.crc32c.value_or(base::crc32c(object.bytes.data(), object.bytes.size()));
  return base::str("{\"name\":\"", name, "\",\"size\":\"", object.bytes.size(), "\",\"generation\":\"",
                   object.generation, "\",\"crc32c\":\"", base64_of_crc32c(crc), "\"}");
}

Reply condition_not_met() { return {412, {}, R"({"error":{"message":"conditionNotMet"}})"}; }
Reply not_found() { return {404, {}, R"({"error":{"message":"No such object"}})"}; }

}  // namespace

Reply Bucket::operator()(const Request& request) {
  const std::lock_guard lock(mutex_);
  const std::size_t at = request.path.find("/o/");
  if (base::starts_with(request.path, "/upload/")) return upload(request);
  if (at == std::string::npos) return list(request);
  std::string name = request.path.substr(at + 3);
  if (base::ends_with(name, "/compose")) return compose(decoded(name.substr(0, name.size() - 8)), request);
  const std::size_t rewrite = name.find("/rewriteTo/");
  const std::string target = rewrite == std::string::npos ? "" : decoded(name.substr(name.rfind("/o/") + 3));
  name = decoded(name.substr(0, rewrite));
  const auto found = objects_.find(name);
  if (found == objects_.end()) return not_found();
  const std::string generation = request.parameter("generation");
  if (!generation.empty() && generation != std::to_string(found->second.generation)) return not_found();
  if (request.method == "DELETE") {
    objects_.erase(found);
    return {204};
  }
  if (!target.empty()) {
    objects_[target] = Object{found->second.bytes, ++next_};
    return {200, {}, "{\"done\":true,\"resource\":" + json_of(target, objects_[target]) + "}"};
  }
  return request.parameter("alt") == "media" ? media(name, request) : describe(name);
}

Reply Bucket::compose(const std::string& target, const Request& request) {
  std::string bytes;
  const auto body = nlohmann::json::parse(request.body);
  for (const auto& source : body["sourceObjects"]) {
    const auto part = objects_.find(source["name"].get<std::string>());
    if (part == objects_.end()) return not_found();
    const auto conditions = source.value("objectPreconditions", nlohmann::json::object());
    const std::string now = std::to_string(part->second.generation);
    if (conditions.value("ifGenerationMatch", now) != now) return condition_not_met();
    bytes += part->second.bytes;
  }
  const auto held = objects_.find(target);
  const std::string wanted = request.parameter("ifGenerationMatch");
  if (!wanted.empty() && wanted != (held == objects_.end() ? "0" : std::to_string(held->second.generation)))
    return condition_not_met();
  objects_[target] = Object{bytes, ++next_};
  return {200, {}, json_of(target, objects_[target])};
}

Reply Bucket::describe(const std::string& name) const { return {200, {}, json_of(name, objects_.at(name))}; }

Reply Bucket::media(const std::string& name, const Request& request) const {
  const std::string& bytes = objects_.at(name).bytes;
  std::size_t first = 0, last = 0;
  if (std::sscanf(request.header("range").c_str(), "bytes=%zu-%zu", &first, &last) != 2)
    return {200, {}, bytes};
  if (first >= bytes.size()) return {416, {base::str("Content-Range: bytes */", bytes.size())}};
  last = std::min(last, bytes.size() - 1);
  return {206,
          {base::str("Content-Range: bytes ", first, "-", last, "/", bytes.size())},
          bytes.substr(first, last - first + 1)};
}

Reply Bucket::list(const Request& request) const {
  constexpr int kPage = 2;
  const std::string prefix = request.parameter("prefix"), after = request.parameter("pageToken");
  std::string items, next;
  int count = 0;
  for (const auto& [name, object] : objects_) {
    if (!base::starts_with(name, prefix) || name <= after) continue;
    if (!request.parameter("delimiter").empty() && name.find('/', prefix.size()) != std::string::npos)
      continue;
    if (count++ == kPage) break;
    items += (items.empty() ? "" : ",") + json_of(name, object);
    next = name;
  }
  return {200,
          {},
          "{\"items\":[" + items + "]" + (count > kPage ? ",\"nextPageToken\":\"" + next + "\"" : "") + "}"};
}

Reply Bucket::upload(const Request& request) {
  if (request.method == "POST") {
    const std::string name = request.parameter("name"), wanted = request.parameter("ifGenerationMatch");
    const auto old = objects_.find(name);
    const std::string now = old == objects_.end() ? "0" : std::to_string(old->second.generation);
    if (!wanted.empty() && wanted != now) return condition_not_met();
    const std::string id = std::to_string(++next_);
    sessions_[id] = Session{name, ""};
    return {200, {"Location: http://" + request.header("host") + request.path + "?upload_id=" + id}};
  }
  const std::string id = request.parameter("upload_id");
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return {410};
  if (request.method == "DELETE") {
    sessions_.erase(found);
    return {499};
  }
  Session& session = found->second;
  const std::string range = request.header("content-range");
  std::size_t first = 0, last = 0;
  if (std::sscanf(range.c_str(), "bytes %zu-%zu/", &first, &last) == 2) {
    if (first != session.bytes.size() || request.body.size() != last - first + 1) return {400, {}, "a gap"};
    session.bytes += request.body;
  }
  const std::string total = range.substr(range.find('/') + 1);
  if (total != std::to_string(session.bytes.size())) {
    if (session.bytes.empty()) return {308};
    return {308, {base::str("Range: bytes=0-", session.bytes.size() - 1)}};
  }
  Object object{session.bytes, ++next_};
  if (damage_) object.crc32c = 1;
  const std::string name = session.name;
  objects_[name] = object;
  sessions_.erase(found);
  return {200, {}, json_of(name, object)};
}

}  // namespace sluice::cloud::test
