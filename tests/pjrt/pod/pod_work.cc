// What the pod does for its workers once they have met.

#include "tests/pjrt/pod/pod.h"

namespace emulated_pod {

void Pod::handle(Member& member, Message message) {
  Reader in(message.body);
  switch (message.kind) {
    case Kind::kChunk:
      // What lies there is refused when a launch names it.
      (void)member.add_chunk(message);
      return;
    case Kind::kDropChunk:
      return member.drop_chunk(in.number());
    case Kind::kRelease:
      return member.release(std::string(in.text()));
    case Kind::kLaunch:
      return launch(member, message.body);
    default:
      break;
  }
  // Compiling takes its time: the worker's launches go on meanwhile.
  auto shared = std::make_shared<Message>(std::move(message));
  compiling_->submit([this, &member, shared] {
    Reader request(shared->body);
    const uint64_t number = request.number();
    const auto reply = answer(member, *shared, request);
    Writer out;
    out.number(number).status(reply ? Status() : Status(tl::unexpected<Error>(reply.error())));
    (void)member.channel.send(Kind::kReply, out.text(reply ? *reply : "").take());
  });
}

Result<std::string> Pod::answer(Member& member, const Message& message, Reader& request) {
  if (message.kind == Kind::kSerialize || message.kind == Kind::kOptimized) {
    SLUICE_TRY(const auto program, member.program(std::string(request.text())));
    return message.kind == Kind::kSerialize ? program->serialize() : program->optimized();
  }
  const std::string_view text = request.text();
  auto made = message.kind == Kind::kLoad ? library_->load(text) : library_->compile(text, request.text());
  if (!made) return tl::unexpected<Error>(made.error());
  member.hold(*made);
  Writer out;
  (*made)->facts().write(out);
  return out.take();
}

void Pod::launch(Member& member, std::string_view body) {
  const auto request = LaunchRequest::read(body);
  auto launch = request ? member.resolve(*request) : Result<Launch>(tl::unexpected<Error>(request.error()));
  if (launch) return schedule_->add(std::move(*launch));
  const Status status = tl::unexpected<Error>(launch.error());
  (void)member.channel.send(Kind::kLaunched,
                            Writer().number(request ? request->number : 0).status(status).take());
}

void Pod::execute() {
  sluice::base::name_thread("pod-execute");
  while (auto turn = schedule_->next()) {
    const Status status = turn->status ? run(turn->launches) : turn->status;
    // Worker 0 last: when it goes, so does the pod.
    for (auto launch = turn->launches.rbegin(); launch != turn->launches.rend(); ++launch) {
      const auto worker = static_cast<size_t>(launch->worker);
      if (!status) failed_[worker][launch->number] = status;
      (void)members_[worker]->channel.send(Kind::kLaunched,
                                           Writer().number(launch->number).status(status).take());
    }
  }
}

Status Pod::run(const std::vector<Launch>& launches) {
  std::vector<const Launch*> of_worker(members_.size());
  for (const Launch& launch : launches) {
    of_worker[static_cast<size_t>(launch.worker)] = &launch;
    SLUICE_OK(launch.arguments_status);
    const auto& failed = failed_[static_cast<size_t>(launch.worker)];
    for (const uint64_t before : launch.after) {
      if (const auto found = failed.find(before); found != failed.end()) return found->second;
    }
  }
  const Program& program = *launches.front().program;
  std::vector<size_t> next(members_.size());
  std::vector<std::vector<Argument>> arguments;
  std::vector<std::vector<void*>> outputs;
  for (const int device : program.facts().placement.devices) {
    const auto worker = static_cast<size_t>(layout_.owner(device));
    const size_t local = next[worker]++;
    arguments.push_back(of_worker[worker]->arguments.at(local));
    outputs.push_back(of_worker[worker]->outputs.at(local));
  }
  return program.run(arguments, outputs);
}

}  // namespace emulated_pod
