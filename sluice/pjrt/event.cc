#include "sluice/pjrt/event.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "sluice/base/log.h"
#include "sluice/pjrt/api.h"

namespace sluice::pjrt {
namespace {

using Look = std::function<base::Status()>;
std::mutex look_mutex;
std::shared_ptr<const Look>& present_look() {
  static auto* look = new std::shared_ptr<const Look>();
  return *look;
}
std::shared_ptr<const Look> current_look() {
  std::scoped_lock lock(look_mutex);
  return present_look();
}

}  // namespace

void end_waits(Look look) {
  std::scoped_lock lock(look_mutex);
  present_look() = look ? std::make_shared<const Look>(std::move(look)) : nullptr;
}

struct Event::Handle {
  Api api;
  c::PJRT_Event* raw;

  Handle(const Api& api, c::PJRT_Event* raw) : api(api), raw(raw) {}
  Handle(const Handle&) = delete;
  ~Handle() {
    auto args = c::make<c::PJRT_Event_Destroy_Args>();
    args.event = raw;
    if (auto status = api.call(args); !status) base::warn("destroying an event: ", status.error().what());
  }
};

struct Event::Callback {
  std::function<void(base::Status)> function;
  std::shared_ptr<Handle> handle;
  // Marks the hand-over from one of the plugin's threads to another, which race detectors cannot see.
  std::atomic<bool> published{false};

  static void run(c::PJRT_Error* error, void* user_arg) {
    std::unique_ptr<Callback> self(static_cast<Callback*>(user_arg));
    while (!self->published.load(std::memory_order_acquire)) {
    }
    self->function(self->handle->api.status(error));
  }
};

Event::Event(const Api& api, c::PJRT_Event* event) {
  if (event != nullptr) handle_ = std::make_shared<Handle>(api, event);
}

namespace {

// The callback may run after the wait was given up, so it shares ownership.
struct Waited {
  std::mutex mutex;
  std::condition_variable changed;
  bool over = false;
};

base::Status wait_until(const Event& event, const Look& look) {
  constexpr auto kBetweenLooks = std::chrono::milliseconds(100);
  const auto waited = std::make_shared<Waited>();
  event.on_ready([waited](const base::Status&) {
    std::scoped_lock lock(waited->mutex);
    waited->over = true;
    waited->changed.notify_all();
  });
  std::unique_lock lock(waited->mutex);
  while (!waited->changed.wait_for(lock, kBetweenLooks, [&] { return waited->over; })) {
    lock.unlock();
    SLUICE_OK(look());
    lock.lock();
  }
  return {};
}

}  // namespace

base::Status Event::await() const {
  if (!handle_) return {};
  if (const auto look = current_look(); look && !ready()) SLUICE_OK(wait_until(*this, *look));
  auto args = c::make<c::PJRT_Event_Await_Args>();
  args.event = handle_->raw;
  return handle_->api.call(args);
}

bool Event::ready() const {
  if (!handle_) return true;
  auto args = c::make<c::PJRT_Event_IsReady_Args>();
  args.event = handle_->raw;
  // An event that cannot be queried counts as ready: waiting for it then returns its error.
  return !handle_->api.call(args) || args.is_ready;
}

void Event::on_ready(std::function<void(base::Status)> callback) const {
  if (ready()) return callback(await());
  auto state = std::make_unique<Callback>();
  state->function = std::move(callback);
  state->handle = handle_;
  state->published.store(true, std::memory_order_release);
  auto args = c::make<c::PJRT_Event_OnReady_Args>();
  args.event = handle_->raw;
  args.callback = &Callback::run;
  args.user_arg = state.get();
  if (auto status = handle_->api.call(args); !status) return state->function(std::move(status));
  (void)state.release();  // the callback owns it now
}

}  // namespace sluice::pjrt
