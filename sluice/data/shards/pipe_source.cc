// A source that reads the output of a command.
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "sluice/base/files/file.h"
#include "sluice/base/process.h"
#include "sluice/base/text/strings.h"
#include "sluice/data/shards/remote_source.h"

namespace sluice::data {
namespace {

constexpr int kPipeBytes = 1 << 20;  // doubles the speed of the default of 64 KiB

class PipeSource : public Source {
 public:
  PipeSource(std::string name, base::Process child, const std::atomic<bool>* cancelled)
      : name_(std::move(name)), child_(std::move(child)), cancelled_(cancelled) {}

  base::Result<std::size_t> read(void* bytes, std::size_t size) override {
    while (!ended_) {
      SLUICE_OK(wait_for_bytes());
      const ssize_t got = ::read(child_.out(), bytes, size);
      if (got > 0) return static_cast<std::size_t>(got);
      if (got < 0 && errno != EINTR && errno != EAGAIN) return base::fail_errno(errno, "read", name_);
      if (got == 0) {
        SLUICE_OK(wait_for_exit());
        ended_ = true;
      }
    }
    return std::size_t{0};
  }

  const std::string& name() const override { return name_; }

 private:
  bool cancelled() const { return cancelled_ != nullptr && *cancelled_; }

  base::Status wait_for_bytes() const {
    while (!cancelled()) {
      pollfd wanted{child_.out(), POLLIN, 0};
      if (::poll(&wanted, 1, 100) > 0) return {};
    }
    return base::fail(Code::kCancelled, name_, ": reading was cancelled");
  }

  base::Status wait_for_exit() {
    std::optional<base::ExitStatus> status;
    while (!(status = child_.poll())) {
      if (cancelled()) return base::fail(Code::kCancelled, name_, ": waiting for its end was cancelled");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // its output is closed: it is about to end
    }
    if (status->code() == 0) return {};
    if (status->by_signal())
      return base::fail(Code::kDataLoss, name_, ": the command was killed by ", status->text());
    return base::fail(Code::kDataLoss, name_, ": the command failed with ", status->text(),
                      status->code() == 127 ? " (not found)" : "",
                      ": what it wrote may not be the whole shard");
  }

  const std::string name_;
  base::Process child_;
  const std::atomic<bool>* cancelled_;
  bool ended_ = false;
};

}  // namespace

bool is_pipe(const std::string& url) { return base::starts_with(url, "pipe:"); }

base::Result<std::unique_ptr<Source>> open_pipe_source(const std::string& url, const SourceOptions& options) {
  if (options.begin > 0 || options.end)
    return base::fail(Code::kInvalidArgument, "cannot read a part of ", url,
                      ": expected a file or an object");
  base::ProcessOptions process;
  process.output = base::ProcessOptions::Output::kPipe;
  process.own_session = true;  // so that killing it also kills the processes that it has started
  SLUICE_TRY(base::Process child, base::Process::start({"/bin/sh", "-c", url.substr(5)}, process));
  ::fcntl(child.out(), F_SETPIPE_SZ, kPipeBytes);
  return std::make_unique<PipeSource>(url, std::move(child), options.cancelled);
}

}  // namespace sluice::data
