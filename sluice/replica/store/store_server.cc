#include "sluice/replica/store/store_server.h"

#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "sluice/base/clock.h"
#include "sluice/base/files/file.h"
#include "sluice/base/log.h"
#include "sluice/base/thread.h"
#include "sluice/replica/run_key.h"

namespace sluice::replica {
namespace {

constexpr size_t kBlock = 64 << 10;
constexpr int kAtOnce = 64;
constexpr int kTick = 500;  // milliseconds between checks of the strangers' time

void watch(int events, int descriptor, uint32_t what, int how) {
  epoll_event event{};
  event.events = what;
  event.data.fd = descriptor;
  ::epoll_ctl(events, how, descriptor, &event);
}

// Returns the endpoint for processes of this machine: the loopback address if it listens at all addresses.
Endpoint reachable(int listener, bool everywhere) {
  Endpoint endpoint = own_endpoint(listener);
  if (!everywhere) return endpoint;
  if (endpoint.address.ss_family == AF_INET6)
    reinterpret_cast<sockaddr_in6&>(endpoint.address).sin6_addr = in6addr_loopback;
  else
    reinterpret_cast<sockaddr_in&>(endpoint.address).sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return endpoint;
}

}  // namespace

struct StoreServer::Connection {
  explicit Connection(Descriptor socket_, const std::string& key, double now)
      : socket(std::move(socket_)), handshake(key, kPurpose), since(now) {}
  Descriptor socket;
  Handshake handshake;
  double since;
  bool known = false;  // it has proved that it has the key
  Seal from_client, to_client;
  std::string in, out;
};

base::Result<std::unique_ptr<StoreServer>> StoreServer::start(Listening listening, const std::string& key) {
  Descriptor events(::epoll_create1(EPOLL_CLOEXEC)), stop(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (events.number() < 0 || stop.number() < 0) return base::fail_errno(errno, "watch", "the meeting point");
  return std::unique_ptr<StoreServer>(
      new StoreServer(std::move(listening), key, std::move(events), std::move(stop)));
}

StoreServer::StoreServer(Listening listening, const std::string& key, Descriptor events, Descriptor stop)
    : listening_(std::move(listening)),
      key_(key),
      events_(std::move(events)),
      stop_(std::move(stop)),
      endpoint_(reachable(listening_.sockets.front().number(), listening_.everywhere)) {
  for (const Descriptor& listener : listening_.sockets)
    watch(events_.number(), listener.number(), EPOLLIN, EPOLL_CTL_ADD);
  watch(events_.number(), stop_.number(), EPOLLIN, EPOLL_CTL_ADD);
  thread_ = std::thread([this] { serve(); });
}

StoreServer::~StoreServer() {
  ::eventfd_write(stop_.number(), 1);
  thread_.join();
}

void StoreServer::serve() {
  base::name_thread("sluice-meeting");
  std::array<epoll_event, kAtOnce> happened;
  while (true) {
    const int count =
        ::epoll_wait(events_.number(), happened.data(), kAtOnce, strangers_.empty() ? -1 : kTick);
    for (int i = 0; i < count; ++i) {
      const int descriptor = happened[static_cast<size_t>(i)].data.fd;
      if (descriptor == stop_.number()) return;
      const auto place = static_cast<size_t>(descriptor);
      if (place < connections_.size() && connections_[place]) {
        if (!move(*connections_[place])) drop(*connections_[place]);
      } else if (std::any_of(listening_.sockets.begin(), listening_.sockets.end(),
                             [&](const Descriptor& each) { return each.number() == descriptor; })) {
        accept_from(descriptor);
      }
    }
    close_late_strangers();
  }
}

void StoreServer::accept_from(int listener) {
  for (int i = 0; i < kAtOnce; ++i) {
    Descriptor socket(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.number() < 0) {
      const bool full = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
      if (full && !strangers_.empty()) drop(*strangers_.front());
      // Without a pause, the call would be repeated at once, in vain.
      else if (full)
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      return;
    }
    if (key_.empty() && is_of_another_user(socket.number())) continue;
    if (strangers_.size() >= kMaxStrangers) drop(*strangers_.front());
    set_options(socket.number());
    const int descriptor = socket.number();
    const auto place = static_cast<size_t>(descriptor);
    if (connections_.size() <= place) connections_.resize(place + 1);
    connections_[place] = std::make_unique<Connection>(std::move(socket), key_, base::monotonic_seconds());
    Connection& connection = *connections_[place];
    strangers_.push_back(&connection);
    connection.out = connection.handshake.greeting();
    watch(events_.number(), descriptor, EPOLLIN, EPOLL_CTL_ADD);
    if (!move(connection)) drop(connection);
  }
}

// Reads nothing more while an answer is being sent: this limits the memory of a connection.
bool StoreServer::move(Connection& connection) {
  if (!write(connection)) return false;
  if (connection.out.empty() && !take(connection)) return false;
  if (connection.out.empty() && !read(connection)) return false;
  watch(events_.number(), connection.socket.number(), connection.out.empty() ? EPOLLIN : EPOLLOUT,
        EPOLL_CTL_MOD);
  return true;
}

bool StoreServer::write(Connection& connection) {
  std::string_view left = connection.out;
  while (!left.empty()) {
    const ssize_t sent =
        ::send(connection.socket.number(), left.data(), left.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EAGAIN) break;
    if (sent < 0 && errno != EINTR) return false;
    left.remove_prefix(static_cast<size_t>(std::max<ssize_t>(sent, 0)));
  }
  connection.out.erase(0, connection.out.size() - left.size());
  return true;
}

bool StoreServer::read(Connection& connection) {
  const size_t room = connection.known
                          ? kBlock
                          : Handshake::kReplyBytes - std::min(Handshake::kReplyBytes, connection.in.size());
  char block[kBlock];
  const ssize_t got = ::recv(connection.socket.number(), block, room, MSG_DONTWAIT);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  if (got == 0) return false;
  connection.in.append(block, static_cast<size_t>(got));
  return take(connection);
}

// Handles all complete messages.
bool StoreServer::take(Connection& connection) {
  if (!connection.known) return connection.in.size() < Handshake::kReplyBytes || shake_hands(connection);
  while (connection.out.empty()) {
    std::string message;
    const auto whole = connection.from_client.open(connection.in, message);
    if (!whole) return false;
    if (!*whole) return true;
    if (!answer(connection, message) || !write(connection)) return false;
  }
  return true;
}

bool StoreServer::shake_hands(Connection& connection) {
  connection.out = connection.handshake.answer(connection.in);
  connection.in.clear();
  if (connection.out.empty()) {
    if (!std::exchange(refused_one_, true))
      base::warn(
          "a connection from ", text_of(peer_endpoint(connection.socket.number())),
          " does not have the key of this run (SLUICE_RUN_KEY) and was closed; the next ones are closed "
          "without a word");
    return false;
  }
  connection.known = true;
  connection.from_client = Seal(connection.handshake.key_to_server());
  connection.to_client = Seal(connection.handshake.key_to_client());
  std::erase(strangers_, &connection);
  return write(connection);
}

bool StoreServer::answer(Connection& connection, const std::string& message) {
  const auto request = request_of(message);
  if (!request) return false;
  connection.out = connection.to_client.close(text_of(table_.answer(*request)));
  return true;
}

void StoreServer::close_late_strangers() {
  const double now = base::monotonic_seconds();
  while (!strangers_.empty() && now - strangers_.front()->since > kPatience) drop(*strangers_.front());
}

void StoreServer::drop(Connection& connection) {
  std::erase(strangers_, &connection);
  connections_[static_cast<size_t>(connection.socket.number())].reset();
}

}  // namespace sluice::replica
