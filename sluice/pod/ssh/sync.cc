#include "sluice/pod/ssh/sync.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "sluice/base/clock.h"
#include "sluice/base/environment.h"
#include "sluice/base/files/file.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/pod/console.h"
#include "sluice/pod/ssh/child.h"
#include "sluice/pod/ssh/quote.h"
#include "sluice/pod/ssh/ssh.h"
#include "sluice/pod/ssh/sync_list.h"
#include "sluice/pod/ssh/sync_text.h"
#include "sluice/pod/ssh/upload.h"

namespace sluice::pod {
namespace {

constexpr size_t kMaxAnswers = 10'000'000;  // lines of a host
constexpr int kNoObject = 75;               // status of sync.sh: it cannot read the object

// Removes files that are of no use after the copying, however that ends.
struct RemovedFiles {
  std::vector<std::string> paths;
  const std::string& add(std::string path) { return paths.emplace_back(std::move(path)); }
  ~RemovedFiles() {
    for (const std::string& path : paths) ::unlink(path.c_str());
  }
};

// The work on one host.
struct Transfer {
  const Worker* worker;
  std::optional<Upload> upload = {};
  bool is_done = false;
  bool by_bucket = false;  // what is read now
  bool from_here = false;  // the host could not read the bucket
  // What the host has answered.
  bool lacks_all = false, has_zstd = false, has_answered = false;
  std::set<std::string> paths = {};
};

// The hosts that lack the same, and the archive of it.
struct Package {
  SyncList::Numbers numbers;
  std::string archive;
  std::string form = "gz";
  std::ptrdiff_t takers = 0;  // hosts
};

// Runs a tar of this machine, and returns its output. `doing`: for the message if a signal comes.
base::Result<std::string> run_tar(const std::vector<std::string>& command, const char* doing, const Job& job,
                                  const std::string& archive, Signals& signals) {
  SLUICE_TRY(base::Process tar, start_child(command));
  tar.close_in();
  std::string output, messages;
  const auto read = [](int descriptor, std::string& text) {  // false at the end
    char block[16 << 10];
    const ssize_t count = ::read(descriptor, block, sizeof block);
    if (count > 0) text.append(block, static_cast<size_t>(count));
    return count != 0;
  };
  while (tar.out() >= 0 || tar.error() >= 0) {
    pollfd polled[] = {{tar.error(), POLLIN, 0}, {tar.out(), POLLIN, 0}, {signals.descriptor(), POLLIN, 0}};
    ::poll(polled, 3, 200);
    if (signals.count() > 0) return base::fail(Code::kCancelled, "told to stop while --sync was ", doing);
    if (tar.error() >= 0 && !read(tar.error(), messages)) tar.close_error();
    if (tar.out() >= 0 && !read(tar.out(), output)) tar.close_out();
  }
  // Status 1: a file changed while it was read.
  if (const int status = tar.wait().code(); status > 1)
    return base::fail(Code::kUnavailable, "cannot pack ", job.sync, " into ", archive, ": ",
                      base::trim(messages), advice_for_full_disk(messages, archive));
  return output;
}

bool has_zstd_here() {
  for (const std::string& folder : base::split(base::environment("PATH").value_or(""), ':'))
    if (::access(base::join_path(folder, "zstd").c_str(), X_OK) == 0) return true;
  return false;
}

// Packs these entries. Files that vanish meanwhile are left out, as tar does where it finds the names itself.
base::Status pack(const Job& job, const SyncList& list, const Package& package, Signals& signals) {
  const std::string names = package.archive + ".names";
  for (int tries = 0;; ++tries) {
    const std::string text = list.names(package.numbers);
    SLUICE_OK(base::write_file_atomically(names, text));
    const auto packed =
        run_tar(pack_command(job, package.archive, package.form), "packing", job, package.archive, signals);
    if (packed) return {};
    if (tries == 2 || packed.error().code() == Code::kCancelled || list.names(package.numbers) == text)
      return tl::unexpected<Error>(packed.error());
  }
}

void take_answer(Transfer& transfer, const std::string& line) {
  if (line == "all") transfer.lacks_all = true;
  if (line == "end" || line == "end zstd") {
    transfer.has_answered = true;
    transfer.has_zstd = line != "end";
  } else if (transfer.paths.size() < kMaxAnswers) {
    transfer.paths.insert(line);
  }
}

std::string failures_of(const Job& job, std::deque<Transfer>& transfers) {
  std::vector<std::string> failures;
  for (Transfer& transfer : transfers) {
    if (!transfer.upload) continue;
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

// Lets the transfer begin again without the bucket.
void begin_from_here(Transfer& transfer) {
  say(base::str(transfer.worker->address, " cannot read --sync-bucket (",
                in_quotes(transfer.upload->messages()), "): it is sent the files from here"));
  transfer.from_here = true;
  transfer.upload.reset();
}

void step(std::deque<Transfer>& transfers, Signals& signals) {
  std::vector<pollfd> polled = {{signals.descriptor(), POLLIN, 0}};
  for (const Transfer& transfer : transfers)
    if (transfer.upload && !transfer.is_done) transfer.upload->add_to(polled);
  ::poll(polled.data(), polled.size(), 200);
  for (Transfer& transfer : transfers) {
    if (!transfer.upload || transfer.is_done) continue;
    transfer.upload->move();
    while (const auto line = transfer.upload->take_line()) take_answer(transfer, *line);
    if (!transfer.upload->has_ended()) continue;
    if (transfer.by_bucket && transfer.upload->status() == kNoObject)
      begin_from_here(transfer);
    else
      transfer.is_done = true;
  }
}

// Does `begin` for all transfers that are not done, and waits for their end.
base::Status serve(const Job& job, std::deque<Transfer>& transfers, Signals& signals,
                   const std::function<base::Status(Transfer&)>& begin) {
  const auto is_busy = [](const Transfer& transfer) { return transfer.upload && !transfer.is_done; };
  while (!std::all_of(transfers.begin(), transfers.end(), [](const auto& t) { return t.is_done; })) {
    if (signals.count() > 0) return base::fail(Code::kCancelled, "told to stop while --sync was copying");
    auto free = job.ssh.parallel - std::count_if(transfers.begin(), transfers.end(), is_busy);
    for (Transfer& transfer : transfers) {
      if (transfer.upload || transfer.is_done || free-- <= 0) continue;
      SLUICE_OK(begin(transfer));
    }
    step(transfers, signals);
  }
  const std::string failures = failures_of(job, transfers);
  if (!failures.empty()) return base::fail(Code::kUnavailable, "--sync failed:\n  ", failures);
  return {};
}

// Starts a step of sync.sh on a host, which reads the file: through the bucket if that is of use.
base::Status send(Transfer& transfer, const Job& job, const std::string& what, const std::string& form,
                  const std::string& file, std::ptrdiff_t hosts, SyncBucket& bucket) {
  transfer.by_bucket = !transfer.from_here && bucket.serves(file, hosts);
  SharedFile object;
  if (transfer.by_bucket) {
    SLUICE_TRY(object, bucket.share(file));
  }
  SLUICE_TRY(auto upload,
             Upload::start(shell_command(job, *transfer.worker), sync_script(job, what, form, object)));
  transfer.upload.emplace(std::move(upload));
  return transfer.upload->send_file(transfer.by_bucket ? "/dev/null" : file, 0);
}

// Returns the numbers of the host's package, or nothing if it lacks nothing.
std::optional<size_t> package_for(const Transfer& transfer, const SyncList& list,
                                  std::vector<Package>& packages) {
  const auto numbers = transfer.lacks_all ? list.all() : list.lacking(transfer.paths);
  if (numbers.empty()) return std::nullopt;
  const char* form = transfer.has_zstd && has_zstd_here() ? "zst" : "gz";
  for (size_t i = 0; i < packages.size(); ++i)
    if (packages[i].form == form && packages[i].numbers == numbers) return i;
  packages.push_back({numbers, "", form});
  return packages.size() - 1;
}

}  // namespace

std::vector<std::string> list_command(const Job& job) {
  std::vector<std::string> command = {"tar", "-C", job.sync, "-cvf", "/dev/null", "--quoting-style=escape"};
  for (const std::string& pattern : job.sync_exclude) command.push_back("--exclude=" + pattern);
  command.push_back(".");
  return command;
}

std::vector<std::string> pack_command(const Job& job, const std::string& archive, const std::string& form) {
  std::vector<std::string> command = {"tar", "-C", job.sync, "-cf", archive};
  if (form == "zst") command.insert(command.end(), {"-I", "zstd -T0"});
  if (form == "gz") command.push_back("-z");
  command.insert(command.end(), {"--no-recursion", "--null", "-T", archive + ".names"});
  return command;
}

std::string sync_script(const Job& job, const std::string& what, const std::string& form,
                        const SharedFile& object) {
  return base::str("step=", what, "\nfolder=", quote(job.folder), "\nrun=", quote(job.id), "\nform=", form,
                   "\nobject=", quote(object.address), "\nsum=", object.sha256, '\n', kSyncText);
}

base::Status sync_folder(const Job& job, const std::string& archive, Signals& signals) {
  if (!base::is_directory(job.sync))
    return base::fail(Code::kInvalidArgument, "--sync ", job.sync, " is not a folder");
  RemovedFiles removed;
  SLUICE_TRY(const std::string listed, run_tar(list_command(job), "packing", job, archive, signals));
  const SyncList list = SyncList::of(job.sync, listed, base::wall_seconds());
  const std::string lines = removed.add(archive + ".list");
  SLUICE_OK(base::write_file_atomically(lines, list.lines()));
  std::deque<Transfer> transfers;
  for (const Worker& worker : job.workers)
    if (worker.local_index == 0) transfers.push_back({&worker});
  SyncBucket bucket(job, signals);
  const auto hosts = std::ssize(transfers);
  SLUICE_OK(serve(job, transfers, signals, [&](Transfer& transfer) {
    return send(transfer, job, "ask", "gz", lines, hosts, bucket);
  }));
  std::vector<Package> packages;
  std::map<const Worker*, size_t> package_of;
  for (Transfer& transfer : transfers) {
    if (!transfer.has_answered) transfer.lacks_all = true;
    const auto package = package_for(transfer, list, packages);
    if (package) {
      package_of[transfer.worker] = *package;
      ++packages[*package].takers;
    }
    transfer.is_done = !package;
    transfer.upload.reset();
  }
  for (size_t i = 0; i < packages.size(); ++i) {
    packages[i].archive = removed.add(i == 0 ? archive : base::str(archive, '-', i));
    removed.add(packages[i].archive + ".names");
    SLUICE_OK(pack(job, list, packages[i], signals));
  }
  return serve(job, transfers, signals, [&](Transfer& transfer) {
    const Package& package = packages[package_of.at(transfer.worker)];
    return send(transfer, job, "take", package.form, package.archive, package.takers, bucket);
  });
}

}  // namespace sluice::pod
