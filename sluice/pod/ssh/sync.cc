#include "sluice/pod/ssh/sync.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <optional>

#include "sluice/base/files/file.h"
#include "sluice/pod/ssh/child.h"
#include "sluice/pod/ssh/quote.h"
#include "sluice/pod/ssh/ssh.h"
#include "sluice/pod/ssh/upload.h"

namespace sluice::pod {
namespace {

// Removes the archive, which is of no use after the copying, however that ends.
struct RemovedFile {
  const std::string& path;
  ~RemovedFile() { ::unlink(path.c_str()); }
};

// The copy to one host.
struct Transfer {
  const Worker* worker;
  std::optional<Upload> upload;
  bool is_done = false;

  explicit Transfer(const Worker& of) : worker(&of) {}
};

base::Status pack(const Job& job, const std::string& archive, Signals& signals) {
  if (!base::is_directory(job.sync))
    return base::fail(Code::kInvalidArgument, "--sync ", job.sync, " is not a folder");
  SLUICE_TRY(base::Process tar, start_child(pack_command(job, archive)));
  tar.close_in();
  std::string messages;
  char text[4096];
  while (true) {
    pollfd polled[] = {{tar.error(), POLLIN, 0}, {signals.descriptor(), POLLIN, 0}};
    ::poll(polled, 2, 200);
    if (signals.count() > 0) return base::fail(Code::kCancelled, "told to stop while --sync was packing");
    const ssize_t count = ::read(tar.error(), text, sizeof text);
    if (count > 0) messages.append(text, static_cast<size_t>(count));
    if (count == 0) break;
  }
  // Status 1: a file changed while it was read.
  if (const int status = tar.wait().code(); status > 1)
    return base::fail(Code::kUnavailable, "cannot pack ", job.sync, " into ", archive, ": ",
                      base::trim(messages), advice_for_full_disk(messages, archive));
  return {};
}

base::Status begin(Transfer& transfer, const Job& job, const std::string& archive) {
  SLUICE_TRY(auto upload, Upload::start(shell_command(job, *transfer.worker), unpack_script(job)));
  transfer.upload.emplace(std::move(upload));
  return transfer.upload->send_file(archive, 0);
}

void step(std::deque<Transfer>& transfers, Signals& signals) {
  std::vector<pollfd> polled = {{signals.descriptor(), POLLIN, 0}};
  for (const Transfer& transfer : transfers)
    if (transfer.upload && !transfer.is_done) transfer.upload->add_to(polled);
  ::poll(polled.data(), polled.size(), 200);
  for (Transfer& transfer : transfers) {
    if (!transfer.upload || transfer.is_done) continue;
    transfer.upload->move();
    transfer.is_done = transfer.upload->has_ended();
  }
}

std::string failures_of(const Job& job, std::deque<Transfer>& transfers) {
  std::vector<std::string> failures;
  for (Transfer& transfer : transfers) {
    const int status = transfer.upload->status();
    if (status == 0) continue;
    const std::string& messages = transfer.upload->messages();
    const std::string place =
        base::str(job.folder.empty() ? "the home folder" : job.folder, " of that host (--chdir)");
    failures.push_back(is_ssh_failure(status)
                           ? explain_ssh(job, *transfer.worker, messages)
                           : base::str(transfer.worker->address, ": tar: ", in_quotes(messages),
                                       advice_for_full_disk(messages, place)));
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
  const RemovedFile removed{archive};
  SLUICE_OK(pack(job, archive, signals));
  std::deque<Transfer> transfers;
  for (const Worker& worker : job.workers)
    if (worker.local_index == 0) transfers.emplace_back(worker);
  const auto is_busy = [](const Transfer& transfer) { return transfer.upload && !transfer.is_done; };
  while (!std::all_of(transfers.begin(), transfers.end(), [](const auto& t) { return t.is_done; })) {
    if (signals.count() > 0) return base::fail(Code::kCancelled, "told to stop while --sync was copying");
    auto free = job.ssh.parallel - std::count_if(transfers.begin(), transfers.end(), is_busy);
    for (Transfer& transfer : transfers) {
      if (transfer.upload || free-- <= 0) continue;
      SLUICE_OK(begin(transfer, job, archive));
    }
    step(transfers, signals);
  }
  const std::string failures = failures_of(job, transfers);
  if (!failures.empty()) return base::fail(Code::kUnavailable, "--sync failed:\n  ", failures);
  return {};
}

}  // namespace sluice::pod
