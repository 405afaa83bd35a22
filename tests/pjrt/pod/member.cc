#include "tests/pjrt/pod/member.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

namespace emulated_pod {

Member::~Member() {
  for (const auto& [id, chunk] : chunks_) ::munmap(chunk.data, chunk.size);
}

Status Member::add_chunk(const Message& message) {
  Reader in(message.body);
  const uint64_t id = in.number();
  const uint64_t size = in.number();
  void* data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, message.file.fd(), 0);
  if (data == MAP_FAILED) {
    return fail(Code::kResourceExhausted, "cannot map ", size, " bytes of worker ", worker, ": ",
                std::strerror(errno));
  }
  std::lock_guard lock(mutex_);
  chunks_[id] = {static_cast<char*>(data), size};
  return {};
}

void Member::drop_chunk(uint64_t id) {
  std::lock_guard lock(mutex_);
  const auto found = chunks_.find(id);
  if (found == chunks_.end()) return;
  ::munmap(found->second.data, found->second.size);
  chunks_.erase(found);
}

void Member::hold(std::shared_ptr<Program> program) {
  std::lock_guard lock(mutex_);
  Held& held = held_[program->facts().key];
  held.program = std::move(program);
  ++held.count;
}

void Member::release(const std::string& key) {
  std::shared_ptr<Program> last;  // destroyed outside the lock
  std::lock_guard lock(mutex_);
  const auto found = held_.find(key);
  if (found == held_.end() || --found->second.count > 0) return;
  last = std::move(found->second.program);
  held_.erase(found);
}

Result<std::shared_ptr<Program>> Member::program(const std::string& key) const {
  std::lock_guard lock(mutex_);
  const auto found = held_.find(key);
  if (found == held_.end()) return fail(Code::kInternal, "worker ", worker, " holds no program ", key);
  return found->second.program;
}

Result<void*> Member::address(const Place& place, size_t bytes) const {
  const auto found = chunks_.find(place.chunk);
  if (found == chunks_.end() || place.offset > found->second.size ||
      bytes > found->second.size - place.offset)
    return fail(Code::kInternal, "worker ", worker, " names memory that it has not");
  return static_cast<void*>(found->second.data + place.offset);
}

Result<Launch> Member::resolve(const LaunchRequest& request) const {
  Launch launch;
  launch.worker = worker;
  launch.number = request.number;
  launch.after = request.after;
  launch.arguments_status = request.arguments_status;
  SLUICE_TRY(launch.program, program(request.program));
  const Facts& facts = launch.program->facts();
  std::lock_guard lock(mutex_);
  for (size_t d = 0; d < request.inputs.size(); ++d) {
    auto& arguments = launch.arguments.emplace_back();
    auto& outputs = launch.outputs.emplace_back();
    for (size_t p = 0; p < request.inputs[d].size(); ++p) {
      const LaunchRequest::Input& input = request.inputs[d][p];
      SLUICE_TRY(void* data, address(input.place, facts.parameters.at(p).bytes()));
      arguments.push_back({data, input.donated});
    }
    for (size_t o = 0; o < request.outputs[d].size(); ++o) {
      SLUICE_TRY(void* data, address(request.outputs[d][o], facts.outputs.at(o).bytes()));
      outputs.push_back(data);
    }
  }
  return launch;
}

}  // namespace emulated_pod
