#include "sluice/replica/admission.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <list>
#include <thread>

#include "sluice/base/clock.h"
#include "sluice/base/result.h"

namespace sluice::replica {
namespace {

constexpr size_t kMaxStrangers = 64;
constexpr double kSeconds = 5;

struct Stranger {
  Descriptor socket;
  Handshake handshake;
  double since;
  std::string reply = {};
};

// Returns whether the stranger's reply is complete, or its connection closed.
bool has_spoken(Stranger& stranger) {
  char bytes[Handshake::kReplyBytes];
  const ssize_t got =
      ::recv(stranger.socket.number(), bytes, sizeof bytes - stranger.reply.size(), MSG_DONTWAIT);
  if (got < 0) return errno != EAGAIN && errno != EINTR;
  stranger.reply.append(bytes, static_cast<size_t>(got));
  return got == 0 || stranger.reply.size() == Handshake::kReplyBytes;
}

void take_in(int listener, const std::string& key, const std::string& purpose,
             std::list<Stranger>& strangers) {
  Descriptor socket(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (socket.number() < 0) {
    const bool full = errno == EMFILE || errno == ENFILE;
    if (full && !strangers.empty())
      strangers.pop_front();
    else if (full)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return;
  }
  if (key.empty() && is_of_another_user(socket.number())) return;
  set_options(socket.number());
  if (strangers.size() == kMaxStrangers) strangers.pop_front();
  Stranger& stranger =
      strangers.emplace_back(Stranger{std::move(socket), Handshake(key, purpose), base::monotonic_seconds()});
  const std::string greeting = stranger.handshake.greeting();
  if (::send(stranger.socket.number(), greeting.data(), greeting.size(), MSG_NOSIGNAL | MSG_DONTWAIT) !=
      static_cast<ssize_t>(greeting.size()))
    strangers.pop_back();
}

}  // namespace

base::Result<Descriptor> accept_known(int listener, const std::string& key, const std::string& purpose,
                                      const Patience& patience) {
  std::list<Stranger> strangers;  // oldest first
  while (true) {
    std::vector<pollfd> polled = {{listener, POLLIN, 0}};
    for (const Stranger& each : strangers) polled.push_back({each.socket.number(), POLLIN, 0});
    ::poll(polled.data(), polled.size(), kPatienceMilliseconds);
    SLUICE_OK(patience());
    const double now = base::monotonic_seconds();
    for (auto each = strangers.begin(); each != strangers.end();) {
      if (!has_spoken(*each)) {
        each = now - each->since > kSeconds ? strangers.erase(each) : std::next(each);
        continue;
      }
      const std::string answer = each->handshake.answer(each->reply);
      if (!answer.empty() && send_all(each->socket.number(), answer, patience))
        return std::move(each->socket);
      each = strangers.erase(each);
    }
    if (polled[0].revents != 0) take_in(listener, key, purpose, strangers);
  }
}

base::Status shake_hands(int socket, Handshake& handshake, const Patience& patience) {
  std::string greeting, answer;
  SLUICE_OK(receive(socket, Handshake::kGreetingBytes, greeting, patience));
  const std::string reply = handshake.reply(greeting);
  if (reply.empty())
    return base::fail(Code::kUnavailable, "another program listens there, or another version of Sluice");
  SLUICE_OK(send_all(socket, reply, patience));
  const base::Status answered = receive(socket, Handshake::kTagBytes, answer, patience);
  if (handshake.accepts(answer)) return {};
  if (!answered && answered.error().code() == Code::kDeadlineExceeded) return answered;
  // The other end closed without an answer, or gave an answer that only a process without the key gives.
  return base::fail(Code::kPermissionDenied, "what listens there does not have this run's key");
}

base::Result<Descriptor> connect_known(const std::vector<Endpoint>& endpoints, const std::string& key,
                                       const std::string& purpose, const Patience& patience) {
  SLUICE_TRY(Descriptor socket, connect_to(endpoints, patience));
  Handshake handshake(key, purpose);
  SLUICE_OK(shake_hands(socket.number(), handshake, patience));
  return socket;
}

}  // namespace sluice::replica
