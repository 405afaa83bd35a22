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
  // `wake` is called after the answer is given, on the thread that gave it.
  GrpcCall(std::string method, std::string message, std::function<void()> wake)
      : method(std::move(method)), message(std::move(message)), wake_(std::move(wake)) {}

  const std::string method;  // "/package.Service/Method"
  const std::string message;

  // Only the first answer counts.
  void answer(base::Result<std::string> result);
  // Whether the client no longer waits for the answer.
  bool is_cancelled() const { return cancelled_; }
  void cancel() { cancelled_ = true; }
  // Returns the answer once; nullopt if there is none yet.
  std::optional<base::Result<std::string>> take_answer();

 private:
  const std::function<void()> wake_;
  std::atomic<bool> cancelled_{false};
  std::mutex mutex_;
  bool answered_ = false;
  std::optional<base::Result<std::string>> answer_;
};

// HTTP/2 by libnghttp2. A peer's use of memory and work is bounded: 8 calls at a time, with 16 KiB of headers
// and 64 KiB of message each; and for the whole connection 16 MiB, 100,000 frames and 100 calls that it
// cancels. The connection ends at the limit of headers and at each of the last three. Threads: one.
class GrpcConnection {
 public:
  // `handler` gets every complete call; it must not wait. `wake` means that a call was answered and flush()
  // should be called.
  using Handler = std::function<void(const std::shared_ptr<GrpcCall>&)>;
  GrpcConnection(Handler handler, std::function<void()> wake);
  ~GrpcConnection();  // cancels its calls
  GrpcConnection(const GrpcConnection&) = delete;
  GrpcConnection& operator=(const GrpcConnection&) = delete;

  // False: this is not HTTP/2, or too much of it; the rest of output() tells the peer.
  bool receive(std::string_view bytes);
  // Sends the answers that have been given to output().
  void flush();
  // The bytes to send, or some of them if there are many; sent(count) removes the first ones.
  std::string_view output();
  void sent(size_t count) { output_.erase(0, count); }
  // Whether nothing more will be received or sent.
  bool is_over() const;
  size_t incomplete() const;  // calls that have not arrived completely
  size_t calls() const { return streams_.size(); }
  bool has_unsent() const;  // bytes of answers for which the peer has not made room
  size_t unsent() const;    // in bytes

 private:
  struct Stream {
    std::string path, content_type, method;
    size_t header_bytes = 0;
    std::string body;
    bool complete = false, answered = false, too_large = false;
    std::shared_ptr<GrpcCall> call;
    std::string reply;  // the frames of the answer
    size_t replied = 0;
  };
  struct Callbacks;

  void dispatch(int stream_id, Stream& stream);
  void submit(int stream_id, Stream& stream, base::Result<std::string> answer);
  // Ends a call with an HTTP status if it is not gRPC, else with a gRPC status.
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
