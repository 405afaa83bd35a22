#include "sluice/profile/service/grpc_server.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <vector>

#include "sluice/base/check.h"
#include "sluice/base/clock.h"
#include "sluice/base/thread.h"

namespace sluice::profile {
namespace {

constexpr size_t kReceive = 64 << 10;           // bytes at a time
constexpr size_t kProgress = 1 << 20;           // the bytes that a peer must take within `stall`
constexpr double kNever = 1e18, kFarewell = 2;  // seconds

void set(int socket, int level, int option, int value) {
  ::setsockopt(socket, level, option, &value, sizeof value);
}

}  // namespace

// Wakes the server's thread.
class GrpcServer::Bell {
 public:
  Bell() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) { SLUICE_CHECK(descriptor_ >= 0); }
  ~Bell() { ::close(descriptor_); }
  Bell(const Bell&) = delete;
  Bell& operator=(const Bell&) = delete;
  int descriptor() const { return descriptor_; }
  void ring() const { ::eventfd_write(descriptor_, 1); }
  void silence() const {
    eventfd_t count = 0;
    ::eventfd_read(descriptor_, &count);
  }

 private:
  const int descriptor_;
};

// A connection with its socket and its deadlines.
class GrpcServer::Peer {
 public:
  Peer(int socket, const GrpcServer& server, double now)
      : socket_(socket),
        limits_(server.limits_),
        connection_(server.handler_, [bell = server.bell_] { bell->ring(); }),
        incomplete_since_(now),
        idle_since_(now),
        moved_(now) {
    set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
    // The calls of a peer that vanished are dropped.
    set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
    set(socket, IPPROTO_TCP, TCP_KEEPIDLE, 10);
    set(socket, IPPROTO_TCP, TCP_KEEPINTVL, 5);
    set(socket, IPPROTO_TCP, TCP_KEEPCNT, 3);
  }
  ~Peer() { ::close(socket_); }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  pollfd polled() {
    const short events = connection_.output().empty() ? POLLIN : POLLIN | POLLOUT;
    return {socket_, events, 0};
  }

  // Returns false if the connection is over.
  bool serve(short events, double now) {
    if ((events & (POLLIN | POLLHUP | POLLERR)) != 0 && !receive()) return false;
    greeted_ = greeted_ || connection_.calls() > 0;
    connection_.flush();
    return send(now) && !connection_.is_over() && now < deadline(now);
  }

  // Returns when the connection is closed if nothing happens, in seconds of the monotonic clock.
  double deadline(double now) {
    double at = kNever;
    if (greeted_ && connection_.incomplete() == 0)
      incomplete_since_ = now;
    else
      at = std::min(at, incomplete_since_ + limits_.request);
    if (connection_.calls() > 0)
      idle_since_ = now;
    else
      at = std::min(at, idle_since_ + limits_.idle);
    if (!connection_.has_unsent())
      begin_to_move(now);
    else
      at = std::min(at, moved_ + limits_.stall);
    return at;
  }
  size_t unsent() const { return connection_.unsent(); }
  bool is_quiet() const {
    return connection_.calls() == connection_.incomplete() && !connection_.has_unsent();
  }

 private:
  bool receive() {
    char bytes[kReceive];
    const ssize_t count = ::recv(socket_, bytes, sizeof bytes, MSG_DONTWAIT);
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    if (count == 0) return false;
    if (connection_.receive({bytes, static_cast<size_t>(count)})) return true;
    send(0);  // sends the reason if that is possible at once
    return false;
  }

  bool send(double now) {
    for (std::string_view bytes = connection_.output(); !bytes.empty(); bytes = connection_.output()) {
      const ssize_t count = ::send(socket_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (count < 0) return errno == EAGAIN || errno == EINTR;
      connection_.sent(static_cast<size_t>(count));
      if ((moved_bytes_ += static_cast<size_t>(count)) >= kProgress) begin_to_move(now);
    }
    return true;
  }

  void begin_to_move(double now) {
    moved_ = now;
    moved_bytes_ = 0;
  }

  const int socket_;
  const GrpcLimits& limits_;
  GrpcConnection connection_;
  bool greeted_ = false;  // whether a first call has begun
  double incomplete_since_, idle_since_, moved_;
  size_t moved_bytes_ = 0;  // since moved_
};

GrpcServer::GrpcServer(cloud::Listener listener, GrpcConnection::Handler handler, const GrpcLimits& limits)
    : listener_(std::move(listener)),
      handler_(std::move(handler)),
      limits_(limits),
      bell_(std::make_shared<Bell>()),
      thread_([this] { serve(); }) {}

GrpcServer::~GrpcServer() {
  ends_ = true;
  bell_->ring();
  thread_.join();
}

// Closes the peers with the most unsent answers, so that these do not fill the memory.
void GrpcServer::close_greedy(std::vector<std::unique_ptr<Peer>>& peers) const {
  const auto all = [&] {
    size_t bytes = 0;
    for (const auto& peer : peers) bytes += peer->unsent();
    return bytes;
  };
  while (!peers.empty() && all() > limits_.unsent)
    peers.erase(std::max_element(peers.begin(), peers.end(),
                                 [](const auto& a, const auto& b) { return a->unsent() < b->unsent(); }));
}

void GrpcServer::serve() {
  base::name_thread("sluice-profiler");
  // The thread must not block on a connection that is cancelled before it is accepted.
  ::fcntl(listener_.descriptor(), F_SETFL, O_NONBLOCK);
  std::vector<std::unique_ptr<Peer>> peers;
  double listens_again = 0;  // when to accept again after a failure, for example without descriptors
  double ends_at = kNever;
  while (true) {
    double now = base::monotonic_seconds(), next = kNever;
    if (ends_) {
      // The last answers are sent.
      next = ends_at = std::min(ends_at, now + kFarewell);
      if (now >= ends_at ||
          std::all_of(peers.begin(), peers.end(), [](const auto& peer) { return peer->is_quiet(); }))
        return;
    }
    const bool listens = now >= listens_again && !ends_;
    std::vector<pollfd> polled = {{bell_->descriptor(), POLLIN, 0},
                                  {listener_.descriptor(), static_cast<short>(listens ? POLLIN : 0), 0}};
    if (!listens && !ends_) next = listens_again;
    for (const auto& peer : peers) {
      polled.push_back(peer->polled());
      next = std::min(next, peer->deadline(now));
    }
    const double wait = next == kNever ? -1 : std::clamp(std::ceil((next - now) * 1000), 0.0, 60'000.0);
    if (::poll(polled.data(), polled.size(), static_cast<int>(wait)) < 0 && errno != EINTR) return;
    if (polled[0].revents != 0) bell_->silence();
    now = base::monotonic_seconds();
    for (size_t i = 0; i < peers.size(); ++i)
      if (!peers[i]->serve(polled[i + 2].revents, now)) peers[i].reset();
    std::erase(peers, nullptr);
    close_greedy(peers);
    if ((polled[1].revents & POLLIN) == 0) continue;
    const int socket = ::accept4(listener_.descriptor(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (socket < 0)
      listens_again = errno == EINTR || errno == ECONNABORTED || errno == EAGAIN ? 0 : now + 0.5;
    else if (peers.size() >= limits_.connections)
      ::close(socket);
    else
      peers.push_back(std::make_unique<Peer>(socket, *this, now));
  }
}

}  // namespace sluice::profile
