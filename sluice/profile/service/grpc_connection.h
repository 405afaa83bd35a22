// The server's side of one gRPC connection, without a socket: bytes go in and out as strings.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "sluice/base/result.h"

struct nghttp2_session;

namespace sluice::profile {

// One unary call. Threads: any.
class GrpcCall {
 public:
  // `wake` is called behind an answer, from the thread that gave it.
  GrpcCall(std::string method, std::string message, std::function<void()> wake)
      : method(std::move(method)), message(std::move(message)), wake_(std::move(wake)) {}

  const std::string method;  // "/package.Service/Method"
  const std::string message;

  // The first answer is the one that counts.
  void answer(base::Result<std::string> result);
  // Nobody waits for the answer any longer.
  bool is_cancelled() const { return cancelled_; }
  void cancel() { cancelled_ = true; }
  // The answer; nothing while there is none. Once.
  std::optional<base::Result<std::string>> take_answer();

 private:
  const std::function<void()> wake_;
  std::atomic<bool> cancelled_{false};
  std::mutex mutex_;
  bool answered_ = false;
  std::optional<base::Result<std::string>> answer_;
};

// HTTP/2 by libnghttp2. What a peer can make it keep or do is bounded: 8 calls at once, 16 KiB of headers and
// 64 KiB of message for each; and of a connection in all 16 MiB, 100,000 frames and 100 calls that it takes
// back. What goes beyond the headers or the last three ends the connection. Threads: one.
class GrpcConnection {
 public:
  // `handler` gets every whole call; it must not wait. `wake` says that a call has been answered and flush()
  // is due.
  using Handler = std::function<void(const std::shared_ptr<GrpcCall>&)>;
  GrpcConnection(Handler handler, std::function<void()> wake);
  ~GrpcConnection();  // its calls are cancelled
  GrpcConnection(const GrpcConnection&) = delete;
  GrpcConnection& operator=(const GrpcConnection&) = delete;

  // False: this is no HTTP/2, or too much of it; what output() still has says so to the peer.
  bool receive(std::string_view bytes);
  // Takes up the answers that have been given.
  void flush();
  // The bytes to be sent, some of them if they are many; the first `count` have been.
  std::string_view output();
  void sent(size_t count) { output_.erase(0, count); }
  // Nothing more will come or go.
  bool is_over() const;
  size_t incomplete() const;  // calls of which a part has not come
  size_t calls() const { return streams_.size(); }
  bool has_unsent() const;  // of an answer, as long as the peer makes no room for it
  size_t unsent() const;    // bytes

 private:
  struct Stream {
    std::string path, content_type, method;
    size_t header_bytes = 0;
    std::string body;
    bool complete = false, answered = false, too_large = false;
    std::shared_ptr<GrpcCall> call;
    std::string reply;  // the frame of the answer
    size_t replied = 0;
  };
  struct Callbacks;

  void dispatch(int stream_id, Stream& stream);
  void submit(int stream_id, Stream& stream, base::Result<std::string> answer);
  // What ends a call: an HTTP status where it is no gRPC, else the gRPC status.
  void submit_end(int stream_id, Stream& stream, int http_status, Code code, std::string_view text);

  const Handler handler_;
  const std::function<void()> wake_;
  nghttp2_session* session_ = nullptr;
  std::map<int, Stream> streams_;
  std::string output_;
  size_t received_ = 0, frames_ = 0, taken_back_ = 0;
  bool broken_ = false;
};

}  // namespace sluice::profile
