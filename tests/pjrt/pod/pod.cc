#include "tests/pjrt/pod/pod.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace emulated_pod {
namespace {

std::vector<Pod*> open_pods(Pod* pod, bool open);

void linger_in_all() {
  for (Pod* left : open_pods(nullptr, false)) left->linger();
}

// The main thread's end comes before everything that is registered for the process's: before the clean-up of
// what XLA made while it compiled, which a program that is being compiled for another worker still needs.
struct LingerAtThreadEnd {
  ~LingerAtThreadEnd() {
    if (::gettid() == ::getpid()) linger_in_all();
  }
};

// The pods that others may need when this process ends. Opens or closes one of them; gives all.
std::vector<Pod*> open_pods(Pod* pod, bool open) {
  static std::mutex mutex;
  static auto& pods = *new std::vector<Pod*>();
  static const int registered = std::atexit(linger_in_all);
  (void)registered;
  std::lock_guard lock(mutex);
  if (open) {
    thread_local const LingerAtThreadEnd before_all;
    pods.push_back(pod);
  } else {
    std::erase(pods, pod);
  }
  return pods;
}

}  // namespace

Pod::Pod(const PodOptions& options)
    : options_(options),
      counts_(static_cast<size_t>(options.workers)),
      members_(static_cast<size_t>(options.workers)),
      failed_(static_cast<size_t>(options.workers)),
      compiling_(
          std::make_unique<sluice::base::ThreadPool>("pod-compile", static_cast<size_t>(options.workers))) {}

Result<std::unique_ptr<Pod>> Pod::open(const PodOptions& options) {
  std::unique_ptr<Pod> pod(new Pod(options));
  if (options.workers > 1) {
    SLUICE_TRY(pod->listening_, listen_at(options.socket));
    pod->accepting_ = std::thread([pod = pod.get()] { pod->accept(); });
    open_pods(pod.get(), true);
  }
  return pod;
}

Pod::~Pod() {
  open_pods(this, false);
  if (accepting_.joinable()) {
    stop_listening(listening_);
    accepting_.join();
  }
  {
    std::unique_lock lock(mutex_);
    if (met_) wait_for_leavers(lock, options_.timeout);
  }
  for (const auto& member : connections_) {
    member->channel.close();
    member->reading.join();
  }
  compiling_.reset();
  if (schedule_) schedule_->close();
  if (executing_.joinable()) executing_.join();
  schedule_.reset();  // with the programs of what is still waiting
  connections_.clear();
  if (!met_ && listening_.open()) ::unlink(options_.socket.c_str());
}

void Pod::wait_for_leavers(std::unique_lock<std::mutex>& lock, double seconds) {
  changed_.wait_for(lock, std::chrono::duration<double>(seconds), [this] {
    return std::all_of(connections_.begin(), connections_.end(),
                       [](const auto& member) { return member->gone; });
  });
}

void Pod::linger() {
  constexpr double kSeconds = 10;
  std::unique_lock lock(mutex_);
  if (!met_) return;
  schedule_->lose(0, fail(Code::kUnavailable, "worker 0 has ended"));
  members_[0]->gone = true;
  wait_for_leavers(lock, kSeconds);
}

Result<File> Pod::connect() {
  SLUICE_TRY(auto ends, connected_sockets());
  admit(std::move(ends.first));
  return std::move(ends.second);
}

void Pod::accept() {
  sluice::base::name_thread("pod-accept");
  while (auto socket = accept_from(listening_)) admit(std::move(*socket));
}

void Pod::admit(File socket) {
  std::lock_guard lock(mutex_);
  Member& member = *connections_.emplace_back(std::make_unique<Member>(std::move(socket)));
  member.reading = std::thread([this, &member] { serve(member); });
}

// Reads a worker's messages until it leaves.
void Pod::serve(Member& member) {
  sluice::base::name_thread("pod-serve");
  auto message = member.channel.receive();
  const Status greeted = message && message->kind == Kind::kHello ? greet(member, *message)
                                                                  : fail(Code::kUnavailable, "no greeting");
  if (!greeted) {
    member.channel.close();
    return leave(member, greeted);
  }
  while ((message = member.channel.receive())) {
    if (message->kind == Kind::kBye) {
      leave(member, fail(Code::kUnavailable, "worker ", member.worker, " has left the pod"));
      return member.channel.close();
    }
    handle(member, std::move(*message));
  }
  leave(member, fail(Code::kUnavailable, "worker ", member.worker,
                     " has died: its connection ended without a good-bye"));
}

Status Pod::greet(Member& member, const Message& hello) {
  Reader in(hello.body);
  const auto worker = static_cast<int>(in.number()), workers = static_cast<int>(in.number()),
             devices = static_cast<int>(in.number());
  const std::string platform(in.text());
  std::lock_guard lock(mutex_);
  const Status status = check_newcomer(worker, workers, platform);
  if (status) {
    member.worker = worker;
    members_[static_cast<size_t>(worker)] = &member;
    counts_[static_cast<size_t>(worker)] = devices;
    platform_ = platform;
  } else {
    // Before anybody hears of it and the pod ends.
    (void)member.channel.send(Kind::kWelcome, Writer().status(status).take());
    // Of two with one index the first stays, and the pod may still meet.
    if (status.error().code() != Code::kAlreadyExists) refused_ = status;
  }
  changed_.notify_all();
  return status;
}

Status Pod::check_newcomer(int worker, int workers, const std::string& platform) const {
  if (workers != options_.workers || worker < 0 || worker >= workers) {
    return fail(Code::kInvalidArgument, "a process came as worker ", worker, " of ", workers,
                ", while worker 0 expects ", options_.workers, " workers");
  }
  if (members_[static_cast<size_t>(worker)] != nullptr || met_) {
    return fail(Code::kAlreadyExists, "worker ", worker, " is there already: two processes have that index");
  }
  if (platform_.empty() || platform == platform_) return {};
  return fail(Code::kInvalidArgument, "worker ", worker, " is ", platform, ", while the others are ",
              platform_);
}

void Pod::leave(Member& member, Status why) {
  std::lock_guard lock(mutex_);
  member.gone = true;
  if (member.worker >= 0 && met_) schedule_->lose(member.worker, std::move(why));
  if (member.worker >= 0 && !met_) members_[static_cast<size_t>(member.worker)] = nullptr;
  changed_.notify_all();
}

bool Pod::all_came() const { return std::find(members_.begin(), members_.end(), nullptr) == members_.end(); }

std::string Pod::missing() const {
  std::vector<size_t> workers;
  for (size_t w = 0; w < members_.size(); ++w) {
    if (members_[w] == nullptr) workers.push_back(w);
  }
  return str(workers.size() == 1 ? "worker " : "workers ", sluice::base::join(workers, ", "));
}

Status Pod::meet() {
  std::unique_lock lock(mutex_);
  const std::chrono::duration<double> patience(options_.timeout);
  changed_.wait_for(lock, patience, [this] { return all_came() || !refused_; });
  Status status = refused_;
  if (status && !all_came()) {
    status = fail(Code::kDeadlineExceeded, "the pod of ", options_.workers, " workers did not meet within ",
                  options_.timeout, " s: ", missing(), " did not come");
  }
  if (status) status = start();
  welcome(status);
  // Nobody else is expected; a pod that starts next makes its own.
  if (listening_.open()) ::unlink(options_.socket.c_str());
  return status;
}

Status Pod::start() {
  layout_ = Layout(counts_);
  SLUICE_TRY(engine_, Engine::open(layout_.devices()));
  library_ = std::make_unique<Library>(*engine_);
  schedule_ = std::make_unique<Schedule>(layout_, options_.timeout);
  executing_ = std::thread([this] { execute(); });
  met_ = true;
  return {};
}

void Pod::welcome(const Status& status) {
  const std::string body = Writer().status(status).numbers(counts_).take();
  for (Member* member : members_) {
    if (member != nullptr) (void)member->channel.send(Kind::kWelcome, body);
  }
}

}  // namespace emulated_pod
