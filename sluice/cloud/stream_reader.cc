// Reads from servers without ranges: the whole file in one answer, at the pace of the reader.
#include <algorithm>
#include <thread>

#include "sluice/base/queue.h"
#include "sluice/base/thread.h"
#include "sluice/cloud/object_reader.h"

namespace sluice::cloud {
namespace {

constexpr std::size_t kPieces = 64;  // of at most 256 KiB, between the transfer and the reader

class StreamReader : public ObjectReader {
 public:
  StreamReader(Remote remote, const ReadOptions& options)
      : remote_(std::move(remote)), options_(options), pieces_(kPieces), thread_([this] { work(); }) {}
  ~StreamReader() override {
    stop_ = true;
    pieces_.cancel();
    thread_.join();
  }

  const Remote& remote() const override { return remote_; }

  base::Result<std::string_view> next(std::size_t most) override {
    while (used_ == piece_.size()) {
      if (ended_) return std::string_view();
      SLUICE_OK(pop());
    }
    const std::string_view some = std::string_view(piece_).substr(used_, most);
    used_ += some.size();
    return some;
  }

 private:
  // Takes the next piece; sets ended_ if there are no more.
  base::Status pop() {
    bool waiting = false;
    auto piece = pieces_.try_pop(&waiting);
    while (waiting) {
      if (options_.cancelled != nullptr && *options_.cancelled) return cancelled_error(remote_.name);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      piece = pieces_.try_pop(&waiting);
    }
    if (!piece) return tl::unexpected<Error>(piece.error());
    ended_ = !piece->has_value();
    piece_ = std::move(*piece).value_or("");
    used_ = 0;
    return {};
  }

  void work() {
    base::name_thread("sluice-stream");
    const auto status = transfer();
    if (status)
      pieces_.close();
    else
      pieces_.close(status.error());
  }

  // Transfers the whole content; after a break again from the start, without the bytes already handed on.
  base::Status transfer() {
    Backoff again = remote_.access.http->backoff(&stop_);
    std::uint64_t seen = 0;
    while (true) {
      const std::uint64_t before = seen;
      std::uint64_t at = 0;
      bool changed = false;
      HttpRequest request;
      request.url = remote_.address;
      request.headers = {"Accept-Encoding: identity"};
      request.follow_redirects = remote_.access.signer == nullptr;
      request.cancelled = &stop_;
      request.on_body = [&](const HttpResponse& head, const char* bytes, std::size_t size) {
        changed = changed || !same(head);
        if (changed) return false;
        const std::size_t known =
            static_cast<std::size_t>(std::min<std::uint64_t>(size, seen - std::min(seen, at)));
        at += size;
        seen = std::max(seen, at);
        return hand_on(std::string_view(bytes + known, size - known), at - (size - known));
      };
      const auto response = remote_.access.once(request);
      if (changed) return tl::unexpected<Error>(lost("it was replaced while it was read"));
      if (response && response->status == 200) {
        if (!remote_.size_known || at == remote_.size) return {};
        return tl::unexpected<Error>(lost(base::str("it ended after ", at, " of ", remote_.size, " bytes")));
      }
      if (stop_) return cancelled_error(remote_.name);
      if (seen > before) again.progress();
      if (response && !is_transient(response->status))
        return tl::unexpected<Error>(status_error(*response, remote_.name));
      if (!response && response.error().code() != Code::kUnavailable)
        return base::fail_at(response, remote_.name);
      if (seen > 0 && remote_.version.empty())
        return tl::unexpected<Error>(
            lost(base::str("the connection broke after ", seen,
                           " bytes, and the server gives neither parts nor an ETag to continue with")));
      const Error cause = response ? status_error(*response, remote_.name)
                                   : Error(Code::kUnavailable, remote_.name + ": " + response.error().what());
      SLUICE_OK(again.wait(cause, response ? retry_after(*response) : std::nullopt));
    }
  }

  bool same(const HttpResponse& head) const {
    return remote_.version.empty() || head.header("etag") == remote_.version ||
           head.header("last-modified") == remote_.version;
  }

  // Hands on the requested part of the bytes, which begin at `at`.
  bool hand_on(std::string_view bytes, std::uint64_t at) {
    const std::uint64_t end = options_.end.value_or(UINT64_MAX);
    const std::uint64_t from = std::max(options_.begin, at), to = std::min(end, at + bytes.size());
    if (from >= to) return true;
    return pieces_.push(
        std::string(bytes.substr(static_cast<std::size_t>(from - at), static_cast<std::size_t>(to - from))));
  }

  Error lost(const std::string& why) const { return Error(Code::kDataLoss, remote_.name + ": " + why); }

  const Remote remote_;
  const ReadOptions options_;
  std::atomic<bool> stop_{false};
  base::Queue<std::string> pieces_;
  std::string piece_;
  std::size_t used_ = 0;
  bool ended_ = false;
  std::thread thread_;  // last: it uses all members above
};

}  // namespace

std::unique_ptr<ObjectReader> open_stream_reader(Remote remote, const ReadOptions& options) {
  return std::make_unique<StreamReader>(std::move(remote), options);
}

}  // namespace sluice::cloud
