#include "sluice/provision/remote/shell.h"

#include <poll.h>

#include <optional>

#include "sluice/base/clock.h"
#include "sluice/pod/ssh/ssh.h"
#include "sluice/pod/ssh/upload.h"

namespace sluice::provision {
namespace {

struct Conversation {
  size_t worker;
  pod::Upload upload;
  double begun;
};

constexpr size_t kMaxAnswer = 16 << 20;  // bytes; no script of ours writes that much

void read_lines(pod::Upload& upload, Answer& answer) {
  while (const auto line = upload.take_line())
    if (answer.output.size() < kMaxAnswer) answer.output += *line + "\n";
}

void finish(const pod::Job& job, Conversation& conversation, Answer& answer) {
  const pod::Worker& worker = job.workers[conversation.worker];
  read_lines(conversation.upload, answer);
  answer.status = conversation.upload.status();
  answer.messages = conversation.upload.messages();
  answer.unreachable = !worker.host.empty() && pod::is_ssh_failure(answer.status);
  if (answer.unreachable) answer.messages = pod::explain_ssh(job, worker, answer.messages);
}

}  // namespace

std::vector<Answer> run_scripts(const pod::Job& job, const std::string& script, double deadline) {
  std::vector<Answer> answers(job.workers.size());
  std::vector<Conversation> open;
  size_t next = 0;
  while (next < job.workers.size() || !open.empty()) {
    while (next < job.workers.size() && static_cast<int>(open.size()) < job.ssh.parallel) {
      const size_t worker = next++;
      if (job.workers[worker].local_index != 0) continue;
      auto upload = pod::Upload::start(pod::shell_command(job, job.workers[worker]), script);
      if (upload) {
        open.push_back({worker, std::move(*upload), base::monotonic_seconds()});
      } else {
        answers[worker] = {127, "", upload.error().what(), true};
      }
    }
    std::vector<pollfd> polled;
    for (const Conversation& conversation : open) conversation.upload.add_to(polled);
    ::poll(polled.data(), polled.size(), 100);
    std::vector<Conversation> still;
    for (Conversation& conversation : open) {
      Answer& answer = answers[conversation.worker];
      conversation.upload.move();
      read_lines(conversation.upload, answer);
      if (conversation.upload.has_ended()) {
        finish(job, conversation, answer);
      } else if (base::monotonic_seconds() - conversation.begun > deadline) {
        answer.status = 124;
        answer.messages = base::str("no answer within ", deadline, " s");
      } else {
        still.push_back(std::move(conversation));
      }
    }
    open = std::move(still);
  }
  return answers;
}

}  // namespace sluice::provision
