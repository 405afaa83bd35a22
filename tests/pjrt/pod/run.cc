// One run of a program on all its devices. The arguments are the processes' own memory, without a copy.
#include <cstring>

#include "tests/pjrt/pod/engine.h"

namespace emulated_pod {

// The objects of the CPU plugin that a run makes; they go with it.
class Run {
 public:
  explicit Run(const Program& program)
      : program_(program),
        facts_(program.facts_),
        api_(program.engine_.api_),
        devices_(facts_.placement.devices.size()),
        arguments_(devices_ * facts_.parameters.size()),
        outputs_(devices_ * facts_.outputs.size()),
        events_(devices_) {}
  ~Run();
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  Status put(const std::vector<std::vector<Argument>>& arguments);
  Status start();
  // Waits, and copies the outputs that are not in their places already.
  Status finish(const std::vector<std::vector<void*>>& places);

 private:
  Status put_one(size_t device, size_t parameter, const Argument& argument);
  Status await(c::PJRT_Event* event);
  Status copy_one(c::PJRT_Buffer* output, void* place, size_t bytes);
  void destroy(c::PJRT_Buffer* buffer);

  const Program& program_;
  const Facts& facts_;
  const Api& api_;
  const size_t devices_;
  std::vector<c::PJRT_Buffer*> arguments_, outputs_;  // of all devices, one after the other
  std::vector<c::PJRT_Event*> events_;
};

Run::~Run() {
  // The launch first: it may use what the others hold.
  for (c::PJRT_Event* event : events_) {
    if (event != nullptr) (void)await(event);
  }
  for (c::PJRT_Buffer* buffer : outputs_) destroy(buffer);
  for (c::PJRT_Buffer* buffer : arguments_) destroy(buffer);
}

void Run::destroy(c::PJRT_Buffer* buffer) {
  if (buffer == nullptr) return;
  auto args = c::make<c::PJRT_Buffer_Destroy_Args>();
  args.buffer = buffer;
  (void)api_.call(args);
}

// Takes the event.
Status Run::await(c::PJRT_Event* event) {
  auto wait = c::make<c::PJRT_Event_Await_Args>();
  wait.event = event;
  Status status = api_.call(wait);
  auto args = c::make<c::PJRT_Event_Destroy_Args>();
  args.event = event;
  (void)api_.call(args);
  return status;
}

Status Run::put(const std::vector<std::vector<Argument>>& arguments) {
  for (size_t d = 0; d < devices_; ++d) {
    for (size_t p = 0; p < facts_.parameters.size(); ++p) SLUICE_OK(put_one(d, p, arguments[d][p]));
  }
  return {};
}

// XLA writes a result into memory that it may write to, and copies what it may only read.
Status Run::put_one(size_t device, size_t parameter, const Argument& argument) {
  const Shape& shape = facts_.parameters[parameter];
  auto args = c::make<c::PJRT_Client_BufferFromHostBuffer_Args>();
  args.client = program_.engine_.client_;
  args.data = argument.data;
  args.type = shape.type;
  args.dims = shape.dims.data();
  args.num_dims = shape.dims.size();
  args.host_buffer_semantics = argument.donated ? c::kMutableZeroCopy : c::kImmutableZeroCopy;
  args.device = program_.engine_.devices_[static_cast<size_t>(facts_.placement.devices[device])];
  SLUICE_OK(api_.call(args));
  arguments_[device * facts_.parameters.size() + parameter] = args.buffer;
  // The memory outlives the run in any case.
  auto done = c::make<c::PJRT_Event_Destroy_Args>();
  done.event = args.done_with_host_buffer;
  return api_.call(done);
}

Status Run::start() {
  std::vector<c::PJRT_Buffer* const*> argument_lists;
  std::vector<c::PJRT_Buffer**> output_lists;
  for (size_t d = 0; d < devices_; ++d) {
    argument_lists.push_back(arguments_.data() + d * facts_.parameters.size());
    output_lists.push_back(outputs_.data() + d * facts_.outputs.size());
  }
  auto options = c::make<c::PJRT_ExecuteOptions>();
  auto args = c::make<c::PJRT_LoadedExecutable_Execute_Args>();
  args.executable = program_.loaded_;
  args.options = &options;
  args.argument_lists = argument_lists.data();
  args.num_devices = devices_;
  args.num_args = facts_.parameters.size();
  args.output_lists = output_lists.data();
  args.device_complete_events = events_.data();
  return api_.call(args);
}

Status Run::copy_one(c::PJRT_Buffer* output, void* place, size_t bytes) {
  auto ready = c::make<c::PJRT_Buffer_ReadyEvent_Args>();
  ready.buffer = output;
  SLUICE_OK(api_.call(ready));
  SLUICE_OK(await(ready.event));
  auto pointer = c::make<c::PJRT_Buffer_UnsafePointer_Args>();
  pointer.buffer = output;
  SLUICE_OK(api_.call(pointer));
  const auto* value = reinterpret_cast<const void*>(pointer.buffer_pointer);
  if (value != place && bytes > 0) std::memcpy(place, value, bytes);
  return {};
}

Status Run::finish(const std::vector<std::vector<void*>>& places) {
  Status result;
  for (c::PJRT_Event*& event : events_) {
    Status status = event == nullptr ? Status() : await(std::exchange(event, nullptr));
    if (result && !status) result = std::move(status);
  }
  for (size_t d = 0; d < devices_; ++d) {
    for (size_t o = 0; o < facts_.outputs.size(); ++o) {
      c::PJRT_Buffer* output = outputs_[d * facts_.outputs.size() + o];
      Status status = copy_one(output, places[d][o], facts_.outputs[o].bytes());
      if (result && !status) result = std::move(status);
    }
  }
  return result;
}

Status Program::run(const std::vector<std::vector<Argument>>& arguments,
                    const std::vector<std::vector<void*>>& outputs) const {
  Run run(*this);
  SLUICE_OK(run.put(arguments));
  SLUICE_OK(run.start());
  return run.finish(outputs);
}

}  // namespace emulated_pod
