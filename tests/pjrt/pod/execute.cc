// A launch, as its worker makes it: checked, given memory for its outputs, and sent.
#include <algorithm>
#include <set>

#include "tests/pjrt/pod/client.h"
#include "tests/pjrt/pod/entry.h"

namespace emulated_pod {

// What the caller or the device's memory makes impossible is found before anything changes.
class Execution {
 public:
  Execution(const Loaded& loaded, const c::PJRT_LoadedExecutable_Execute_Args& args)
      : loaded_(loaded), facts_(loaded.executable->facts()), args_(args), client_(loaded.client) {}

  Status run() {
    SLUICE_OK(check_call());
    plan_donations();
    std::lock_guard lock(client_.launching_);
    SLUICE_OK(take_arguments());
    SLUICE_OK(check_memory());
    consume();
    SLUICE_OK(make_outputs());
    send();
    give_out();
    return {};
  }

 private:
  Status check_call() const;
  Status take_arguments();
  Status take_argument(size_t device, size_t parameter, std::set<const Buffer*>& donated);
  Status check_memory() const;
  void consume();
  Status make_outputs();
  void send();
  void give_out();

  const Buffer* buffer(size_t device, size_t parameter) const {
    return reinterpret_cast<const Buffer*>(args_.argument_lists[device][parameter]);
  }
  void plan_donations();

  const Loaded& loaded_;
  const Facts& facts_;
  const c::PJRT_LoadedExecutable_Execute_Args& args_;
  Client& client_;
  std::vector<int64_t> donation_;              // of each parameter in this launch
  std::vector<std::optional<size_t>> source_;  // of each output: the argument whose memory it takes over
  LaunchRequest request_;
  std::shared_ptr<Event> done_ = std::make_shared<Event>();
  // [device][parameter] and [device][output]
  std::vector<std::vector<Buffer::Content>> arguments_, outputs_;
};

Status Execution::check_call() const {
  if (loaded_.devices.empty()) {
    return fail(Code::kInvalidArgument, "@", facts_.name, " runs on devices ",
                sluice::base::join(facts_.placement.devices, ", "),
                ", none of which is addressable in process ", client_.settings().worker);
  }
  if (args_.execute_device != nullptr)
    return fail(Code::kUnimplemented, "the emulated pod runs no program on one device of several");
  if (args_.num_devices != loaded_.devices.size()) {
    return fail(Code::kInvalidArgument, "Attempted to execute with ", args_.num_devices,
                " argument lists when local device count is ", loaded_.devices.size(),
                " (total device count: ", facts_.placement.devices.size(), ")");
  }
  if (args_.num_args != facts_.parameters.size()) {
    return fail(Code::kInvalidArgument, "Execution supplied ", args_.num_args,
                " buffers but compiled program expected ", facts_.parameters.size(), " buffers");
  }
  return {};
}

void Execution::plan_donations() {
  donation_ = facts_.donation;
  if (args_.options != nullptr) {
    for (size_t i = 0; i < args_.options->num_non_donatable_input_indices; ++i) {
      const auto kept = static_cast<size_t>(args_.options->non_donatable_input_indices[i]);
      if (kept < donation_.size()) donation_[kept] = kKept;
    }
  }
  source_.resize(facts_.outputs.size());
  for (size_t p = 0; p < donation_.size(); ++p) {
    if (donation_[p] >= 0) source_.at(static_cast<size_t>(donation_[p])) = p;
  }
}

Status Execution::take_arguments() {
  request_.number = client_.last_launch_ + 1;
  request_.program = facts_.key;
  std::set<const Buffer*> donated;
  for (size_t d = 0; d < loaded_.devices.size(); ++d) {
    arguments_.emplace_back();
    request_.inputs.emplace_back();
    for (size_t p = 0; p < facts_.parameters.size(); ++p) SLUICE_OK(take_argument(d, p, donated));
  }
  std::sort(request_.after.begin(), request_.after.end());
  request_.after.erase(std::unique(request_.after.begin(), request_.after.end()), request_.after.end());
  return {};
}

Status Execution::take_argument(size_t device, size_t parameter, std::set<const Buffer*>& donated) {
  const Buffer* given = buffer(device, parameter);
  const std::string where = str("argument ", parameter, " to replica ", device);
  if (given == nullptr) return fail(Code::kInvalidArgument, where, " is null");
  SLUICE_TRY(Buffer::Content content, given->content());
  if (given->device().id() != loaded_.devices[device]->id()) {
    return fail(Code::kInvalidArgument, "Buffer passed to Execute() as ", where, " is on device ",
                given->device().id(), ", but replica is assigned to device ", loaded_.devices[device]->id());
  }
  const size_t expected = facts_.parameters[parameter].bytes();
  if (given->shape().bytes() != expected) {
    return fail(Code::kInvalidArgument, "Executable expected parameter ", parameter, " of size ", expected,
                " but got buffer with incompatible size ", given->shape().bytes());
  }
  const bool taken = donation_[parameter] != kKept;
  if (donated.count(given) > 0 || (taken && !donated.insert(given).second)) {
    return fail(Code::kInvalidArgument,
                "Attempt to use a buffer that was previously donated in the same call: ", where);
  }
  if (!content.defined->ready()) {
    request_.after.push_back(content.launch);
  } else if (const Status status = content.defined->await(); !status && request_.arguments_status) {
    request_.arguments_status = status;
  }
  request_.inputs[device].push_back({content.memory->place(), false});
  arguments_[device].push_back(std::move(content));
  return {};
}

Status Execution::check_memory() const {
  int64_t outputs = 0;
  for (size_t o = 0; o < facts_.outputs.size(); ++o) {
    if (!source_[o]) outputs += static_cast<int64_t>(facts_.outputs[o].bytes());
  }
  for (const Device* device : loaded_.devices)
    SLUICE_OK(device->memory->admit_launch(outputs, facts_.temporary_bytes()));
  return {};
}

// Of these arguments nothing is left to the caller. One that is being copied to the host keeps its value
// until then: the program copies it, as it copies what it may not take over.
void Execution::consume() {
  for (size_t d = 0; d < loaded_.devices.size(); ++d) {
    for (size_t p = 0; p < facts_.parameters.size(); ++p) {
      if (donation_[p] != kKept) request_.inputs[d][p].donated = const_cast<Buffer*>(buffer(d, p))->remove();
    }
  }
}

Status Execution::make_outputs() {
  for (size_t d = 0; d < loaded_.devices.size(); ++d) {
    auto& outputs = outputs_.emplace_back();
    auto& places = request_.outputs.emplace_back();
    for (size_t o = 0; o < facts_.outputs.size(); ++o) {
      Buffer::Content& content = outputs.emplace_back();
      const auto from = source_[o];
      if (from) {
        content = arguments_[d][*from];
      } else {
        content.charge = std::make_shared<Charge>(loaded_.devices[d]->memory, facts_.outputs[o].bytes());
      }
      if (!from || !request_.inputs[d][*from].donated) {
        SLUICE_TRY(content.memory, client_.arena_->allocate(facts_.outputs[o].bytes()));
      }
      content.defined = done_;
      content.launch = request_.number;
      places.push_back(content.memory->place());
    }
  }
  return {};
}

// The memory stays while the pod works in it; what counts on the device goes with the buffers.
void Execution::send() {
  std::vector<std::shared_ptr<Memory>> used;
  for (const auto* lists : {&arguments_, &outputs_}) {
    for (const auto& list : *lists) {
      for (const Buffer::Content& content : list) used.push_back(content.memory);
    }
  }
  client_.last_launch_ = request_.number;
  const std::string body = request_.write();
  client_.link_->launch(request_.number, body,
                        [done = done_, used = std::move(used),
                         executable = loaded_.executable](const Status& status) { done->set(status); });
}

void Execution::give_out() {
  for (size_t d = 0; d < loaded_.devices.size(); ++d) {
    for (size_t o = 0; o < facts_.outputs.size(); ++o) {
      args_.output_lists[d][o] = reinterpret_cast<c::PJRT_Buffer*>(
          new Buffer(*loaded_.devices[d], facts_.outputs[o], std::move(outputs_[d][o])));
    }
    if (args_.device_complete_events == nullptr) continue;
    args_.device_complete_events[d] = new_event(done_);
  }
}

Status execute(const Loaded& loaded, const c::PJRT_LoadedExecutable_Execute_Args& args) {
  return Execution(loaded, args).run();
}

}  // namespace emulated_pod
