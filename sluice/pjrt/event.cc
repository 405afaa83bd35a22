#include "sluice/pjrt/event.h"

#include <atomic>
#include <utility>

#include "sluice/base/log.h"
#include "sluice/pjrt/api.h"

namespace sluice::pjrt {

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
  // The plugin hands this object from one thread to another; tools that watch for data races cannot see how.
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

base::Status Event::await() const {
  if (!handle_) return {};
  auto args = c::make<c::PJRT_Event_Await_Args>();
  args.event = handle_->raw;
  return handle_->api.call(args);
}

bool Event::ready() const {
  if (!handle_) return true;
  auto args = c::make<c::PJRT_Event_IsReady_Args>();
  args.event = handle_->raw;
  // An event that cannot be asked counts as ready: whoever awaits it then gets its error.
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
