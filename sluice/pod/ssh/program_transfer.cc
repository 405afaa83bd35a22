// send_program(): one connection to each host, which requests the part of the archive that it needs.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <optional>
#include <sstream>
#include <utility>

#include "sluice/base/clock.h"
#include "sluice/base/files/file.h"
#include "sluice/base/text/quantity.h"
#include "sluice/pod/console.h"
#include "sluice/pod/program.h"
#include "sluice/pod/ssh/quote.h"
#include "sluice/pod/ssh/ssh.h"
#include "sluice/pod/ssh/upload.h"

namespace sluice::pod {
namespace {

constexpr int kTries = 3;                      // consecutive connections without progress
constexpr double kPause = 1, kProgress = 0.5;  // seconds: before another try, between two progress lines

// The last answer of program.sh.
struct Answer {
  std::string word;  // "": no answer yet
  std::string rest;
};

class HostTransfer {
 public:
  HostTransfer(const Job& job, const Worker& worker, const std::string& unpacked)
      : job_(job), worker_(worker), unpacked_(unpacked) {}

  bool is_busy() const { return upload_.has_value(); }
  bool is_over() const { return is_here_ || !failure_.empty(); }
  bool may_start() const { return !is_busy() && !is_over() && base::monotonic_seconds() >= next_try_; }
  bool was_sent() const { return is_here_ && was_sent_; }
  const std::string& failure() const { return failure_; }
  void add_to(std::vector<pollfd>& polled) const {
    if (upload_) upload_->add_to(polled);
  }
  // Returns a notice that is to be shown now, once.
  std::string take_notice() { return std::exchange(notice_, {}); }
  // Returns the bytes of the archive that the host has, and the size of the form that it takes; 0 if it needs
  // none.
  std::pair<uint64_t, uint64_t> progress() const { return {sent(), total_}; }

  void start() {
    answer_ = {};
    auto upload = Upload::start(shell_command(job_, worker_), program_script(job_.program));
    if (!upload) return give_up(upload.error().what());
    upload_.emplace(std::move(*upload));
  }

  void move() {
    if (!upload_) return;
    upload_->move();
    const bool has_ended = upload_->has_ended();  // if true, all lines are here
    while (failure_.empty()) {
      const auto line = upload_->take_line();
      if (!line) break;
      take(*line);
    }
    if (!failure_.empty())
      upload_.reset();
    else if (has_ended)
      end();
  }

 private:
  uint64_t sent() const { return upload_ && is_sending_ ? upload_->position() : there_; }
  void give_up(const std::string& why) { failure_ = base::str(worker_.address, ": ", why); }

  void take(const std::string& line) {
    std::istringstream words(line);
    std::string mark, word, rest;
    words >> mark >> word;
    std::getline(words >> std::ws, rest);
    if (mark != "sluice-program") return;  // a line of the host's own start-up files
    answer_ = {word, rest};
    if (word == "send")
      send(rest);
    else if (word != "wait")
      upload_->end_input();
  }

  // Sends the archive from the requested byte on: "zst 1024".
  void send(const std::string& wish) {
    std::istringstream words(wish);
    std::string form;
    uint64_t offset = 0;
    words >> form >> offset;
    is_packed_ = form != "tar";
    total_ = is_packed_ ? job_.program.bytes : job_.program.tar_bytes;
    if (offset > there_) tries_ = 0;  // the last connection made progress
    there_ = offset;
    is_sending_ = was_sent_ = true;
    base::Status begun;
    if (!is_packed_ && !base::path_exists(unpacked_)) begun = unpack_program(job_.program, unpacked_);
    if (begun) begun = upload_->send_file(is_packed_ ? job_.program.path : unpacked_, offset);
    if (!begun) give_up(begun.error().what());
  }

  void end() {
    const int status = upload_->status();
    const std::string messages = upload_->messages();
    upload_.reset();
    is_sending_ = false;
    if (answer_.word == "there" || answer_.word == "done") {
      is_here_ = true;
      there_ = total_;
    } else if (answer_.word == "failed") {
      give_up(answer_.rest + advice_for_full_disk(answer_.rest, "that folder of the host"));
    } else if (answer_.word == "damaged") {
      look_at_damage();
    } else {
      look_at_loss(status, messages);
    }
  }

  void look_at_damage() {
    there_ = 0;
    const std::string& expected = is_packed_ ? job_.program.sha256 : job_.program.tar_sha256;
    if (was_damaged_)
      return give_up(base::str("the program arrives damaged, twice now: its SHA-256 there is ", answer_.rest,
                               ", expected ", expected));
    was_damaged_ = true;
    notice_ = base::str(worker_.address, ": the program arrived damaged (SHA-256 ", answer_.rest,
                        ", expected ", expected, "); sending it again");
  }

  // Handles a connection that broke or was never made.
  void look_at_loss(int status, const std::string& messages) {
    const bool is_ssh = is_ssh_failure(status) && !worker_.host.empty();
    const std::string why =
        is_ssh ? explain_ssh(job_, worker_, messages)
               : base::str("the program was not taken (status ", status, "): ", in_quotes(messages));
    const bool is_lasting = is_ssh && answer_.word.empty() && !is_passing(messages);
    if (is_lasting || ++tries_ >= kTries) return give_up(why);
    next_try_ = base::monotonic_seconds() + kPause;
    if (!answer_.word.empty()) notice_ = worker_.address + ": the connection broke; continuing where it was";
  }

  const Job& job_;
  const Worker& worker_;
  const std::string& unpacked_;
  std::optional<Upload> upload_;
  Answer answer_;
  std::string failure_, notice_;
  bool is_packed_ = true;  // the form that the host takes
  bool is_here_ = false, is_sending_ = false, was_sent_ = false, was_damaged_ = false;
  int tries_ = 0;
  double next_try_ = 0;
  uint64_t there_ = 0, total_ = 0;
};

using Transfers = std::deque<HostTransfer>;

// A line that is rewritten again and again, only on a terminal.
class Progress {
 public:
  void show(const Transfers& transfers) {
    if (!is_terminal_ || clock_.seconds() < next_) return;
    next_ = clock_.seconds() + kProgress;
    uint64_t sent = 0, total = 0;
    size_t ready = 0;
    for (const HostTransfer& transfer : transfers) {
      sent += transfer.progress().first;
      total += transfer.progress().second;
      ready += transfer.is_over();
    }
    std::fprintf(stderr, "\rsluice run: program: %zu of %zu hosts, %s of %s\033[K", ready, transfers.size(),
                 base::size_text(sent).c_str(), base::size_text(total).c_str());
  }
  ~Progress() { clear(); }
  void clear() const {
    if (is_terminal_ && next_ > 0) std::fputs("\r\033[K", stderr);
  }

 private:
  const bool is_terminal_ = ::isatty(STDERR_FILENO) == 1;
  base::Stopwatch clock_;
  double next_ = 0;
};

void step(Transfers& transfers, const Job& job, Signals& signals) {
  auto free =
      job.ssh.parallel - std::count_if(transfers.begin(), transfers.end(),
                                       [](const HostTransfer& transfer) { return transfer.is_busy(); });
  for (HostTransfer& transfer : transfers)
    if (transfer.may_start() && free-- > 0) transfer.start();
  std::vector<pollfd> polled = {{signals.descriptor(), POLLIN, 0}};
  for (const HostTransfer& transfer : transfers) transfer.add_to(polled);
  ::poll(polled.data(), polled.size(), 200);
  for (HostTransfer& transfer : transfers) transfer.move();
}

base::Status send_to_all(Transfers& transfers, const Job& job, Signals& signals) {
  Progress progress;
  while (!std::all_of(transfers.begin(), transfers.end(),
                      [](const HostTransfer& transfer) { return transfer.is_over(); })) {
    if (signals.count() > 0) return base::fail(Code::kCancelled, "told to stop while --program was sent");
    step(transfers, job, signals);
    for (HostTransfer& transfer : transfers) {
      const std::string notice = transfer.take_notice();
      if (notice.empty()) continue;
      progress.clear();
      say(notice);
    }
    progress.show(transfers);
  }
  return {};
}

}  // namespace

base::Status send_program(const Job& job, const std::string& folder, Signals& signals) {
  const base::Stopwatch clock;
  const std::string unpacked = base::join_path(folder, "program.tar");
  Transfers transfers;
  for (const Worker& worker : job.workers)
    if (worker.local_index == 0) transfers.emplace_back(job, worker, unpacked);
  const base::Status sent = send_to_all(transfers, job, signals);
  SLUICE_OK(base::remove_file(unpacked));
  SLUICE_OK(sent);
  std::vector<std::string> failures;
  size_t received = 0;
  for (const HostTransfer& transfer : transfers) {
    if (!transfer.failure().empty()) failures.push_back(transfer.failure());
    received += transfer.was_sent();
  }
  if (!failures.empty())
    return base::fail(Code::kUnavailable, "--program failed:\n  ", base::join(failures, "\n  "));
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.1f s", clock.seconds());
  say(base::str("program ", job.program.path, " (SHA-256 ", job.program.sha256.substr(0, 12), "…, ",
                base::size_text(job.program.bytes), "): sent to ", received, ", there already on ",
                transfers.size() - received, " of ",
                base::counted(static_cast<int64_t>(transfers.size()), "host"), ", ", seconds));
  return {};
}

}  // namespace sluice::pod
