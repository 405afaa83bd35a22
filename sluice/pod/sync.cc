#include "sluice/pod/sync.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <optional>

#include "sluice/base/file.h"
#include "sluice/pod/child.h"
#include "sluice/pod/quote.h"
#include "sluice/pod/ssh.h"

namespace sluice::pod {
namespace {

// One host's copy.
struct Transfer {
  const Worker* worker;
  std::optional<Child> child;
  std::string messages;
  int archive = -1;
  std::string block;  // read, not yet sent
  bool is_done = false;

  explicit Transfer(const Worker& of) : worker(&of) {}
  Transfer(const Transfer&) = delete;
  ~Transfer() {
    if (archive >= 0) ::close(archive);
  }
  void send();
  void listen();
};

void Transfer::send() {
  while (child->in() >= 0) {
    if (block.empty()) {
      block.resize(256 << 10);
      const ssize_t count = ::read(archive, block.data(), block.size());
      block.resize(static_cast<size_t>(std::max<ssize_t>(0, count)));
      if (block.empty()) return child->close_in();
    }
    const ssize_t count = ::write(child->in(), block.data(), block.size());
    if (count > 0) block.erase(0, static_cast<size_t>(count));
    if (count < 0 && errno == EAGAIN) return;
    if (count < 0 && errno != EINTR) return child->close_in();
  }
}

void Transfer::listen() {
  char text[4096];
  for (const bool error : {false, true}) {
    const int descriptor = error ? child->error() : child->out();
    if (descriptor < 0) continue;
    ssize_t count;
    while ((count = ::read(descriptor, text, sizeof text)) > 0)
      messages.append(text, static_cast<size_t>(count));
    if (count < 0 && errno == EAGAIN) continue;
    error ? child->close_error() : child->close_out();
  }
}

base::Status pack(const Job& job, const std::string& archive) {
  if (!base::is_directory(job.sync))
    return base::fail(Code::kInvalidArgument, "--sync ", job.sync, " is no folder");
  SLUICE_TRY(Child tar, Child::start(pack_command(job, archive)));
  tar.close_in();
  std::string messages;
  char text[4096];
  pollfd end{tar.error(), POLLIN, 0};
  while (true) {
    ::poll(&end, 1, -1);
    const ssize_t count = ::read(tar.error(), text, sizeof text);
    if (count > 0) messages.append(text, static_cast<size_t>(count));
    if (count == 0) break;
  }
  // 1: a file changed while it was read.
  if (const int status = tar.wait(); status > 1)
    return base::fail(Code::kUnavailable, "cannot pack ", job.sync, ": ", base::trim(messages));
  return {};
}

base::Status begin(Transfer& transfer, const Job& job, const std::string& archive) {
  transfer.archive = ::open(archive.c_str(), O_RDONLY | O_CLOEXEC);
  if (transfer.archive < 0) return base::fail_errno(errno, "read", archive);
  SLUICE_TRY(transfer.child, Child::start(shell_command(job, *transfer.worker)));
  transfer.block = framed(unpack_script(job));
  return {};
}

void step(std::deque<Transfer>& transfers, Signals& signals) {
  std::vector<pollfd> polled = {{signals.descriptor(), POLLIN, 0}};
  for (const Transfer& transfer : transfers) {
    if (!transfer.child || transfer.is_done) continue;
    if (transfer.child->in() >= 0) polled.push_back({transfer.child->in(), POLLOUT, 0});
    if (transfer.child->error() >= 0) polled.push_back({transfer.child->error(), POLLIN, 0});
  }
  ::poll(polled.data(), polled.size(), 200);
  for (Transfer& transfer : transfers) {
    if (!transfer.child || transfer.is_done) continue;
    transfer.send();
    transfer.listen();
    transfer.is_done = transfer.child->out() < 0 && transfer.child->error() < 0 && transfer.child->poll();
  }
}

std::string failures_of(std::deque<Transfer>& transfers) {
  std::vector<std::string> failures;
  for (Transfer& transfer : transfers) {
    const int status = *transfer.child->poll();
    if (status == 0) continue;
    failures.push_back(is_ssh_failure(status)
                           ? explain_ssh(transfer.worker->host, transfer.messages)
                           : base::str(transfer.worker->address, ": tar: ", base::trim(transfer.messages)));
  }
  return base::join(failures, "\n  ");
}

}  // namespace

std::vector<std::string> pack_command(const Job& job, const std::string& archive) {
  std::vector<std::string> command = {"tar", "-C", job.sync, "-czf", archive};
  for (const std::string& pattern : job.sync_exclude) command.push_back("--exclude=" + pattern);
  command.push_back(".");
  return command;
}

std::string unpack_script(const Job& job) {
  return base::str("cd && mkdir -p -- ", quote(job.folder), " && cd -- ", quote(job.folder),
                   " && exec tar --no-same-owner -xzf -");
}

base::Status sync_folder(const Job& job, const std::string& archive, Signals& signals) {
  SLUICE_OK(pack(job, archive));
  std::deque<Transfer> transfers;
  for (const Worker& worker : job.workers)
    if (worker.local_index == 0) transfers.emplace_back(worker);
  const auto is_busy = [](const Transfer& transfer) { return transfer.child && !transfer.is_done; };
  while (!std::all_of(transfers.begin(), transfers.end(), [](const auto& t) { return t.is_done; })) {
    if (signals.count() > 0) return base::fail(Code::kCancelled, "told to stop while --sync was copying");
    auto free = job.ssh.parallel - std::count_if(transfers.begin(), transfers.end(), is_busy);
    for (Transfer& transfer : transfers) {
      if (transfer.child || free-- <= 0) continue;
      SLUICE_OK(begin(transfer, job, archive));
    }
    step(transfers, signals);
  }
  const std::string failures = failures_of(transfers);
  if (!failures.empty()) return base::fail(Code::kUnavailable, "--sync failed:\n  ", failures);
  return base::remove_file(archive);
}

}  // namespace sluice::pod
