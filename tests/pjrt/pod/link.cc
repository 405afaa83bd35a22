#include "tests/pjrt/pod/link.h"

#include <sys/socket.h>

#include <cmath>

#include "sluice/base/thread.h"

namespace emulated_pod {
namespace {

constexpr const char kGone[] = "worker 0 is gone, and with it the pod";

// For receives; 0: without end.
void set_timeout(int socket, double seconds) {
  timeval time{};
  time.tv_sec = static_cast<time_t>(seconds);
  time.tv_usec = static_cast<suseconds_t>((seconds - std::floor(seconds)) * 1e6);
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
}

}  // namespace

Link::~Link() {
  channel_.close();
  if (receiving_.joinable()) receiving_.join();
  finished_.close();
  if (finishing_.joinable()) finishing_.join();
}

Status Link::greet(int worker, int workers, int devices, const std::string& platform) {
  Writer hello;
  for (const int number : {worker, workers, devices}) hello.number(static_cast<uint64_t>(number));
  return channel_.send(Kind::kHello, hello.text(platform).take());
}

Result<std::vector<int>> Link::welcome(double timeout) {
  set_timeout(socket_, timeout);
  const auto message = channel_.receive();
  set_timeout(socket_, 0);
  if (!message || message->kind != Kind::kWelcome) {
    return fail(Code::kUnavailable, "worker 0 ended, or did not answer within ", timeout,
                " s, before all workers of the pod had met");
  }
  Reader in(message->body);
  SLUICE_OK(in.status());
  std::vector<int> counts = in.numbers<int>();
  finishing_ = std::thread([this] {
    sluice::base::name_thread("pod-finish");
    while (auto next = finished_.pop()) {
      if (!*next) return;
      (**next)();
    }
  });
  receiving_ = std::thread([this] { receive(); });
  return counts;
}

Result<std::string> Link::call(Kind kind, const std::string& body) {
  std::future<Result<std::string>> reply;
  uint64_t request;
  {
    std::lock_guard lock(mutex_);
    SLUICE_OK(lost_);
    request = ++last_request_;
    reply = calls_[request].get_future();
  }
  // When the other side is gone the receiving thread answers.
  (void)channel_.send(kind, Writer().number(request).take() + body);
  return reply.get();
}

void Link::launch(uint64_t number, const std::string& body, Done done) {
  {
    std::unique_lock lock(mutex_);
    ++unfinished_;
    if (!lost_) {
      lock.unlock();
      return finish(std::move(done), lost_);
    }
    launches_.emplace(number, std::move(done));
  }
  (void)channel_.send(Kind::kLaunch, body);
}

void Link::leave() {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return unfinished_ == 0; });
  }
  (void)channel_.send(Kind::kBye, "");
  // The pod closes the connection when it has read this.
  if (receiving_.joinable()) receiving_.join();
}

void Link::receive() {
  sluice::base::name_thread("pod-receive");
  while (auto message = channel_.receive()) {
    if (message->kind == Kind::kReply) reply(Reader(message->body));
    if (message->kind == Kind::kLaunched) launched(Reader(message->body));
  }
  lose();
}

void Link::reply(Reader in) {
  const uint64_t request = in.number();
  const Status status = in.status();
  Result<std::string> result = std::string(in.text());
  if (!status) result = tl::unexpected<Error>(status.error());
  std::lock_guard lock(mutex_);
  const auto found = calls_.find(request);
  if (found == calls_.end()) return;
  found->second.set_value(std::move(result));
  calls_.erase(found);
}

void Link::launched(Reader in) {
  const uint64_t number = in.number();
  Status status = in.status();
  std::unique_lock lock(mutex_);
  auto found = launches_.extract(number);
  lock.unlock();
  if (!found.empty()) finish(std::move(found.mapped()), std::move(status));
}

void Link::lose() {
  std::map<uint64_t, Done> launches;
  {
    std::lock_guard lock(mutex_);
    lost_ = fail(Code::kUnavailable, kGone);
    for (auto& [request, promise] : calls_) promise.set_value(tl::unexpected<Error>(lost_.error()));
    calls_.clear();
    launches.swap(launches_);
  }
  for (auto& [number, done] : launches) finish(std::move(done), lost_);
}

void Link::finish(Done done, Status status) {
  finished_.push([this, done = std::move(done), status = std::move(status)]() mutable {
    done(status);
    done = nullptr;  // what it holds goes before the launch counts as finished
    std::lock_guard lock(mutex_);
    --unfinished_;
    changed_.notify_all();
  });
}

}  // namespace emulated_pod
