// Buffers and events.
#include "tests/pjrt/pod/entry.h"

namespace emulated_pod {
namespace {

Status buffer_destroy(c::PJRT_Buffer_Destroy_Args& args) {
  delete &of(args.buffer);
  return {};
}

Status buffer_delete(c::PJRT_Buffer_Delete_Args& args) {
  (void)of(args.buffer).remove();
  return {};
}

Status buffer_is_deleted(c::PJRT_Buffer_IsDeleted_Args& args) {
  args.is_deleted = of(args.buffer).deleted();
  return {};
}

// The memory of a device is its own, whatever it is emulated with.
Status buffer_is_on_cpu(c::PJRT_Buffer_IsOnCpu_Args& args) {
  args.is_on_cpu = false;
  return {};
}

Status buffer_ready_event(c::PJRT_Buffer_ReadyEvent_Args& args) {
  SLUICE_TRY(Buffer::Content content, of(args.buffer).content());
  args.event = new_event(std::move(content.defined));
  return {};
}

// Null, or the last dimension fastest.
Status check_layout(const c::PJRT_Buffer_MemoryLayout* layout) {
  if (layout == nullptr) return {};
  const size_t rank = layout->tiled.minor_to_major_size;
  bool row_major = layout->type == 0 && layout->tiled.num_tiles == 0;
  for (size_t i = 0; i < rank && row_major; ++i)
    row_major = layout->tiled.minor_to_major[i] == static_cast<int64_t>(rank - 1 - i);
  if (row_major) return {};
  return fail(Code::kUnimplemented, "the emulated pod gives out values in row-major order only");
}

Status buffer_to_host(c::PJRT_Buffer_ToHostBuffer_Args& args) {
  SLUICE_OK(check_layout(args.host_layout));
  const size_t bytes = of(args.src).shape().bytes();
  if (args.dst == nullptr) {
    args.dst_size = bytes;
    return {};
  }
  if (args.dst_size < bytes)
    return fail(Code::kInvalidArgument, "invalid dst_size: expected at least ", bytes, ", got ",
                args.dst_size);
  SLUICE_TRY(auto copied, of(args.src).read(args.dst));
  args.event = new_event(std::move(copied));
  return {};
}

Status event_destroy(c::PJRT_Event_Destroy_Args& args) {
  delete &of(args.event);
  return {};
}

Status event_is_ready(c::PJRT_Event_IsReady_Args& args) {
  args.is_ready = of(args.event)->ready();
  return {};
}

Status event_error(c::PJRT_Event_Error_Args& args) {
  if (!of(args.event)->ready())
    return fail(Code::kFailedPrecondition, "PJRT_Event_Error may be asked of an event that is ready only");
  return of(args.event)->await();
}

Status event_await(c::PJRT_Event_Await_Args& args) {
  const std::shared_ptr<Event> event = of(args.event);
  return event->await();
}

Status event_on_ready(c::PJRT_Event_OnReady_Args& args) {
  const std::shared_ptr<Event> event = of(args.event);
  event->on_ready([callback = args.callback, user_arg = args.user_arg](const Status& status) {
    callback(make_error(status), user_arg);
  });
  return {};
}

}  // namespace

void set_buffer_entries(c::PJRT_Api& api) {
  set_entries<&buffer_destroy, &buffer_delete, &buffer_is_deleted, &buffer_is_on_cpu, &buffer_ready_event,
              &buffer_to_host>(api);
}

void set_event_entries(c::PJRT_Api& api) {
  set_entries<&event_destroy, &event_is_ready, &event_error, &event_await, &event_on_ready>(api);
}

}  // namespace emulated_pod
