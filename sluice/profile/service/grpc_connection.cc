#include "sluice/profile/service/grpc_connection.h"

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "sluice/base/check.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/cloud/grpc.h"

namespace sluice::profile {
namespace {

constexpr uint32_t kMaxCalls = 8, kMaxHeaders = 16 << 10;
constexpr size_t kMaxMessage = 64 << 10, kMaxReceived = 16 << 20, kOutput = 256 << 10;
constexpr size_t kMaxFrames = 100'000, kMaxTakenBack = 100;
constexpr size_t kMaxAcknowledgements = 100;  // of pings and settings, waiting to be sent

nghttp2_nv field(std::string_view name, std::string_view value) {
  // nghttp2 copies both of them.
  return {reinterpret_cast<uint8_t*>(const_cast<char*>(name.data())),
          reinterpret_cast<uint8_t*>(const_cast<char*>(value.data())), name.size(), value.size(),
          NGHTTP2_NV_FLAG_NONE};
}

}  // namespace

void GrpcCall::answer(base::Result<std::string> result) {
  {
    const std::lock_guard lock(mutex_);
    if (answered_) return;
    answered_ = true;
    answer_.emplace(std::move(result));
  }
  wake_();
}

std::optional<base::Result<std::string>> GrpcCall::take_answer() {
  const std::lock_guard lock(mutex_);
  return std::exchange(answer_, std::nullopt);
}

// The callbacks of libnghttp2 for reading and writing.
struct GrpcConnection::Callbacks {
  static GrpcConnection& self(void* data) { return *static_cast<GrpcConnection*>(data); }

  static int begin_frame(nghttp2_session*, const nghttp2_frame_hd* head, void* data) {
    GrpcConnection& connection = self(data);
    if (head->type == NGHTTP2_RST_STREAM) ++connection.taken_back_;
    const bool excess = ++connection.frames_ > kMaxFrames || connection.taken_back_ > kMaxTakenBack;
    return excess ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
  }

  static int begin_headers(nghttp2_session*, const nghttp2_frame* frame, void* data) {
    if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
      self(data).streams_.try_emplace(frame->hd.stream_id);
    return 0;
  }

  static int header(nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name, size_t name_size,
                    const uint8_t* value, size_t value_size, uint8_t, void* data) {
    auto& streams = self(data).streams_;
    const auto found = streams.find(frame->hd.stream_id);
    if (found == streams.end()) return 0;
    Stream& stream = found->second;
    stream.header_bytes += name_size + value_size + 32;  // as HTTP/2 counts them
    // An error that only resets the call would still process the remaining headers.
    if (stream.header_bytes > kMaxHeaders) return NGHTTP2_ERR_CALLBACK_FAILURE;
    const std::string_view key(reinterpret_cast<const char*>(name), name_size);
    const std::string_view text(reinterpret_cast<const char*>(value), value_size);
    if (key == ":path") stream.path = text;
    if (key == ":method") stream.method = text;
    if (key == "content-type") stream.content_type = text;
    return 0;
  }

  static int data_chunk(nghttp2_session*, uint8_t, int32_t id, const uint8_t* bytes, size_t size,
                        void* data) {
    auto& streams = self(data).streams_;
    const auto found = streams.find(id);
    if (found == streams.end() || found->second.too_large) return 0;
    Stream& stream = found->second;
    if (stream.body.size() + size > kMaxMessage) {
      stream.too_large = true;
      stream.body.clear();
      self(data).submit_end(id, stream, 200, Code::kResourceExhausted,
                            base::str("a request may have ", kMaxMessage, " bytes"));
      return 0;
    }
    stream.body.append(reinterpret_cast<const char*>(bytes), size);
    return 0;
  }

  static int frame_received(nghttp2_session*, const nghttp2_frame* frame, void* data) {
    const bool carries = frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;
    if (!carries || (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0) return 0;
    auto& streams = self(data).streams_;
    const auto found = streams.find(frame->hd.stream_id);
    if (found == streams.end() || found->second.complete) return 0;
    found->second.complete = true;
    if (!found->second.too_large) self(data).dispatch(found->first, found->second);
    return 0;
  }

  static int stream_closed(nghttp2_session*, int32_t id, uint32_t, void* data) {
    auto& streams = self(data).streams_;
    const auto found = streams.find(id);
    if (found == streams.end()) return 0;
    if (found->second.call) found->second.call->cancel();
    streams.erase(found);
    return 0;
  }

  static ssize_t read(nghttp2_session* session, int32_t id, uint8_t* buffer, size_t room, uint32_t* flags,
                      nghttp2_data_source* source, void*) {
    auto& stream = *static_cast<Stream*>(source->ptr);
    const size_t count = std::min(room, stream.reply.size() - stream.replied);
    std::memcpy(buffer, stream.reply.data() + stream.replied, count);
    stream.replied += count;
    if (stream.replied < stream.reply.size()) return static_cast<ssize_t>(count);
    *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
    const nghttp2_nv trailer[] = {field("grpc-status", "0")};
    if (nghttp2_submit_trailer(session, id, trailer, 1) != 0) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    return static_cast<ssize_t>(count);
  }
};

GrpcConnection::GrpcConnection(Handler handler, std::function<void()> wake)
    : handler_(std::move(handler)), wake_(std::move(wake)) {
  nghttp2_session_callbacks* callbacks = nullptr;
  nghttp2_option* option = nullptr;
  SLUICE_CHECK(nghttp2_session_callbacks_new(&callbacks) == 0 && nghttp2_option_new(&option) == 0);
  nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, Callbacks::begin_frame);
  nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, Callbacks::begin_headers);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, Callbacks::header);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, Callbacks::data_chunk);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, Callbacks::frame_received);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, Callbacks::stream_closed);
  nghttp2_option_set_no_closed_streams(option, 1);
  nghttp2_option_set_max_outbound_ack(option, kMaxAcknowledgements);
  const int made = nghttp2_session_server_new2(&session_, callbacks, this, option);
  nghttp2_option_del(option);
  nghttp2_session_callbacks_del(callbacks);
  SLUICE_CHECK(made == 0);
  const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, kMaxCalls},
                                             {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, kMaxHeaders}};
  SLUICE_CHECK(nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings, std::size(settings)) == 0);
}

GrpcConnection::~GrpcConnection() {
  for (auto& [id, stream] : streams_)
    if (stream.call) stream.call->cancel();
  nghttp2_session_del(session_);
}

bool GrpcConnection::receive(std::string_view bytes) {
  if (broken_) return false;
  received_ += bytes.size();
  if (received_ > kMaxReceived) {
    nghttp2_session_terminate_session(session_, NGHTTP2_ENHANCE_YOUR_CALM);
    broken_ = true;
    return false;
  }
  const ssize_t taken =
      nghttp2_session_mem_recv(session_, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  broken_ = taken != static_cast<ssize_t>(bytes.size());
  if (broken_) nghttp2_session_terminate_session(session_, NGHTTP2_ENHANCE_YOUR_CALM);
  flush();
  return !broken_;
}

void GrpcConnection::flush() {
  for (auto& [id, stream] : streams_) {
    if (!stream.call || stream.answered) continue;
    if (auto answer = stream.call->take_answer()) submit(id, stream, std::move(*answer));
  }
}

std::string_view GrpcConnection::output() {
  while (output_.size() < kOutput) {
    const uint8_t* bytes = nullptr;
    const ssize_t size = nghttp2_session_mem_send(session_, &bytes);
    if (size < 0) broken_ = true;
    if (size <= 0) break;
    output_.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
  }
  return output_;
}

bool GrpcConnection::is_over() const {
  return output_.empty() &&
         (broken_ || (nghttp2_session_want_read(session_) == 0 && nghttp2_session_want_write(session_) == 0));
}

size_t GrpcConnection::incomplete() const {
  return static_cast<size_t>(std::count_if(streams_.begin(), streams_.end(),
                                           [](const auto& entry) { return !entry.second.complete; }));
}

bool GrpcConnection::has_unsent() const {
  return !output_.empty() || std::any_of(streams_.begin(), streams_.end(), [](const auto& entry) {
    return entry.second.replied < entry.second.reply.size();
  });
}

size_t GrpcConnection::unsent() const {
  size_t bytes = output_.size();
  for (const auto& [id, stream] : streams_) bytes += stream.reply.size() - stream.replied;
  return bytes;
}

void GrpcConnection::dispatch(int stream_id, Stream& stream) {
  if (stream.method != "POST" || !base::starts_with(stream.content_type, "application/grpc"))
    return submit_end(stream_id, stream, 415, Code::kUnknown, "here is a gRPC service");
  const auto message = cloud::grpc_message(stream.body);
  if (!message)
    return submit_end(
        stream_id, stream, 200,
        message.error().code() == Code::kUnimplemented ? Code::kUnimplemented : Code::kInvalidArgument,
        message.error().what());
  stream.call = std::make_shared<GrpcCall>(stream.path, std::string(*message), wake_);
  stream.body.clear();
  handler_(stream.call);
}

void GrpcConnection::submit(int stream_id, Stream& stream, base::Result<std::string> answer) {
  if (!answer) return submit_end(stream_id, stream, 200, answer.error().code(), answer.error().what());
  stream.answered = true;
  stream.reply = cloud::grpc_frame(*answer);
  const nghttp2_nv head[] = {field(":status", "200"), field("content-type", "application/grpc")};
  nghttp2_data_provider provider{};
  provider.source.ptr = &stream;  // entries of a map do not move
  provider.read_callback = Callbacks::read;
  if (nghttp2_submit_response(session_, stream_id, head, std::size(head), &provider) != 0) broken_ = true;
}

void GrpcConnection::submit_end(int stream_id, Stream& stream, int http_status, Code code,
                                std::string_view text) {
  stream.answered = true;
  const std::string status = std::to_string(http_status), number = std::to_string(static_cast<int>(code)),
                    message = cloud::percent_encode(text);
  const nghttp2_nv head[] = {field(":status", status), field("content-type", "application/grpc"),
                             field("grpc-status", number), field("grpc-message", message)};
  if (nghttp2_submit_response(session_, stream_id, head, std::size(head), nullptr) != 0) broken_ = true;
  // The rest of the request is not needed.
  if (!stream.complete) nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, stream_id, NGHTTP2_NO_ERROR);
}

}  // namespace sluice::profile
