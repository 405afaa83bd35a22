// The profiler's port, asked through libcurl's HTTP/2, and by peers that do not behave.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "sluice/base/clock.h"
#include "sluice/base/formats/proto_writer.h"
#include "sluice/cloud/grpc.h"
#include "sluice/pjrt/proto_reader.h"
#include "sluice/profile/host_lines.h"
#include "sluice/profile/service/profiler_service.h"

namespace sluice::profile {
namespace {

using testing::HasSubstr;
using testing::Not;

class ProfilerServiceTest : public testing::Test {
 protected:
  void start(const GrpcLimits& limits = {}) {
    ProfilerService::Training training;
    training.about = {.host = "h", .process = 1, .processes = 2, .device = "a device"};
    training.requests = requests_;
    training.figures = [] {
      return Figures{
          .step = 1, .epoch = 2, .step_ms = 5, .rate = 100, .input = 0.25, .trace = 0.125, .device = 0.625};
    };
    training.status = [] { return std::string("{}"); };
    service_ = base::value_or_throw(ProfilerService::start({}, std::move(training), limits));
    address_ = cloud::text_of(service_->address());
  }
  base::Result<std::string> call(const std::string& method, const std::string& message,
                                 const std::atomic<bool>* cancelled = nullptr) {
    return cloud::call_grpc(http_, {.address = address_,
                                    .method = method,
                                    .message = message,
                                    .timeout = 20,
                                    .max_answer = 64 << 20,
                                    .cancelled = cancelled});
  }
  base::Result<ProfileResponse> profile(const ProfileRequest& request) {
    SLUICE_TRY(const std::string answer, call(kProfileMethod, text_of(request)));
    return parse_profile_response(answer);
  }
  // Until a profile is being taken.
  static void wait_for_recording() {
    for (int i = 0; i < 1000 && !base::spans_are_recorded(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ASSERT_TRUE(base::spans_are_recorded());
  }
  int connect() const {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(service_->address().port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return socket;
  }
  // Whether the server closes the connection within some seconds.
  static bool is_closed(int socket, double seconds = 10) {
    const base::Stopwatch watch;
    char bytes[4096];
    while (watch.seconds() < seconds) {
      pollfd polled{socket, POLLIN, 0};
      if (::poll(&polled, 1, 50) > 0 && ::recv(socket, bytes, sizeof bytes, 0) <= 0) return true;
    }
    return false;
  }

  std::shared_ptr<StepRequests> requests_ = std::make_shared<StepRequests>();
  std::unique_ptr<ProfilerService> service_;
  std::string address_;  // outlives it, for threads that ask
  cloud::Http http_;
};

TEST_F(ProfilerServiceTest, AProfileOfSomeTime) {
  start();
  std::atomic<bool> done{false};
  std::thread training([&] {
    while (!done) {
      const int64_t begin = base::span_clock();
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      base::record_span(kStepSpan, begin, base::span_clock(), {.step = 7});
    }
  });
  const auto response = profile({.duration_ms = 100, .steps = {}, .session = "s"});
  const auto xspace = profile({.duration_ms = 20, .steps = {}, .session = "s", .emit_xspace = true});
  done = true;
  training.join();
  ASSERT_TRUE(response) << response.error().what();
  EXPECT_FALSE(response->empty);
  ASSERT_EQ(response->files.size(), 3u);
  EXPECT_EQ(response->files[0].ending, "xplane.pb");
  EXPECT_TRUE(pjrt::is_message(response->files[0].bytes));
  EXPECT_EQ(response->files[1].ending, "trace.json.gz");
  EXPECT_EQ(response->files[2].ending, "txt");
  EXPECT_THAT(response->files[2].bytes, HasSubstr("Profile of process 1 of 2 on h"));
  // The steps were not recorded by the thread that took the profile.
  EXPECT_THAT(response->files[2].bytes, HasSubstr("Steps 7 to 7"));
  ASSERT_TRUE(xspace) << xspace.error().what();
  EXPECT_TRUE(xspace->files.empty());
  EXPECT_THAT(xspace->xspace, HasSubstr("/host:CPU"));
  EXPECT_FALSE(base::spans_are_recorded());
}

TEST_F(ProfilerServiceTest, BeginsWhenItIsAsked) {
  start();
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const int64_t begin = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count() + 300'000'000;
  std::thread other(
      [&] { EXPECT_TRUE(profile({.duration_ms = 50, .start_ns = begin, .steps = {}, .session = ""})); });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_FALSE(base::spans_are_recorded());
  wait_for_recording();
  other.join();
}

TEST_F(ProfilerServiceTest, TheSecondAtOnceIsRefusedAndTerminateEndsTheFirst) {
  start();
  base::Result<ProfileResponse> first = base::fail(Code::kUnknown, "");
  const base::Stopwatch watch;
  std::thread other([&] { first = profile({.duration_ms = 15'000, .steps = {}, .session = "first"}); });
  wait_for_recording();
  const auto second = profile({.duration_ms = 10, .steps = {}, .session = "second"});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), Code::kUnavailable);
  EXPECT_THAT(second.error().what(), HasSubstr("is being taken; try again when it is done"));
  const auto terminate = [&](const char* session) {
    return call(kTerminateMethod, base::ProtoWriter().bytes(1, session).bytes());
  };
  EXPECT_EQ(terminate("second").error().code(), Code::kNotFound);
  EXPECT_TRUE(terminate("first"));
  other.join();
  EXPECT_TRUE(first) << first.error().what();
  EXPECT_LT(watch.seconds(), 10);
}

TEST_F(ProfilerServiceTest, AProfileThatNobodyWaitsForEnds) {
  start();
  std::atomic<bool> cancelled{false};
  std::thread other([&] {
    EXPECT_EQ(call(kProfileMethod, text_of(ProfileRequest{.duration_ms = 60'000, .steps = {}, .session = ""}),
                   &cancelled)
                  .error()
                  .code(),
              Code::kCancelled);
  });
  wait_for_recording();
  cancelled = true;
  other.join();
  for (int i = 0; i < 400 && base::spans_are_recorded(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_FALSE(base::spans_are_recorded());
  EXPECT_TRUE(profile({.duration_ms = 5, .steps = {}, .session = ""}));
}

TEST_F(ProfilerServiceTest, StepsAreAskedOfTheThreadThatTrains) {
  start();
  requests_->step(10);
  base::Result<ProfileResponse> response = base::fail(Code::kUnknown, "");
  std::thread other([&] { response = profile({.start_ns = 0, .steps = StepRange{15, 18}, .session = ""}); });
  std::shared_ptr<StepRequest> asked;
  while ((asked = requests_->take()) == nullptr) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(asked->steps.first, 15);
  EXPECT_EQ(asked->steps.end, 18);
  EXPECT_EQ(requests_->take(), nullptr);
  auto capture = base::value_or_throw(Capture::start(nullptr));
  base::record_span(kStepSpan, base::span_clock(), base::span_clock() + 1, {.step = 15});
  asked->answer(capture.stop());
  other.join();
  ASSERT_TRUE(response) << response.error().what();
  EXPECT_THAT(response->files.at(2).bytes, HasSubstr("Steps 15 to 15"));
}

TEST_F(ProfilerServiceTest, TheEndOfTheTrainingIsSaid) {
  start();
  requests_->step(10);
  base::Result<ProfileResponse> steps = base::fail(Code::kUnknown, ""), time = steps;
  std::thread asks([&] { steps = profile({.steps = StepRange{15, 18}, .session = ""}); });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  service_.reset();
  asks.join();
  ASSERT_FALSE(steps);
  EXPECT_EQ(steps.error().code(), Code::kOutOfRange);
  EXPECT_THAT(steps.error().what(), HasSubstr("the training has ended, at step 10"));
  EXPECT_EQ(cloud::call_grpc(http_, {.address = address_, .method = kStatusMethod}).error().code(),
            Code::kUnavailable);
}

TEST_F(ProfilerServiceTest, MonitorSaysHowItGoes) {
  start();
  requests_->step(40);
  std::thread training([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    requests_->step(50);
  });
  const auto answer =
      call(kMonitorMethod, base::ProtoWriter().number(1, 300).number(2, 1).number(3, 1).bytes());
  training.join();
  ASSERT_TRUE(answer) << answer.error().what();
  EXPECT_THAT(*answer, HasSubstr("Timestamp: "));
  EXPECT_THAT(*answer, HasSubstr("Step: 50, epoch 2\n"));
  // Of the ten steps, not of the figures' last second.
  EXPECT_THAT(*answer, HasSubstr("Step time: "));
  EXPECT_THAT(*answer, Not(HasSubstr("Step time: 5.000 ms")));
  EXPECT_THAT(*answer, HasSubstr("Device busy: 62.5 %\nDevice idle: 37.5 %\nWaiting for input: 25.0 %\n"));
}

TEST_F(ProfilerServiceTest, RequestsThatCannotBeAreRefused) {
  start();
  EXPECT_EQ(call("/tensorflow.ProfilerService/StartContinuousProfiling", "").error().code(),
            Code::kUnimplemented);
  EXPECT_EQ(call(kProfileMethod, "\xff\xff").error().code(), Code::kInvalidArgument);
  EXPECT_EQ(call(kProfileMethod, "").error().code(), Code::kInvalidArgument) << "no time and no steps";
  EXPECT_FALSE(
      call(kProfileMethod, std::string(100'000, 'x')));  // curl may see the stream closed before the answer
  for (const StepRange& steps : {StepRange{0, 3}, StepRange{5, 5}, StepRange{9, 3}, StepRange{1, 100'000}})
    EXPECT_EQ(profile({.steps = steps, .session = ""}).error().code(), Code::kInvalidArgument)
        << steps.first << ":" << steps.end;
  EXPECT_EQ(profile({.duration_ms = 10'000'000, .steps = {}, .session = ""}).error().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(
      profile({.duration_ms = 10, .start_ns = int64_t{1} << 62, .steps = {}, .session = ""}).error().code(),
      Code::kInvalidArgument);
  // A browser, and one that speaks HTTP/2 and no gRPC.
  cloud::HttpRequest plain;
  plain.url = base::str("http://", cloud::text_of(service_->address()), "/");
  plain.direct = true;
  EXPECT_FALSE(http_.once(plain));
  plain.http2 = true;
  const auto answer = http_.once(plain);
  ASSERT_TRUE(answer) << answer.error().what();
  EXPECT_EQ(answer->status, 415);
}

TEST_F(ProfilerServiceTest, PeersThatSayNothingOrNonsenseAreClosed) {
  start({.request = 0.3, .idle = 0.5});
  constexpr char kPreface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  const std::string settings("\0\0\0\4\0\0\0\0\0", 9);
  // HEADERS for stream 1 without an end, which never comes whole.
  const std::string half("\0\0\1\1\0\0\0\0\1\x82", 10);
  for (const std::string& text :
       {std::string(), std::string("GET / HTTP/1.1\r\n\r\n"), std::string(kPreface), kPreface + settings,
        kPreface + settings + half, kPreface + std::string(10'000, '\xff')}) {
    const int socket = connect();
    ASSERT_EQ(::send(socket, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
    EXPECT_TRUE(is_closed(socket)) << text.size() << " bytes";
    ::close(socket);
  }
  EXPECT_TRUE(call(kStatusMethod, ""));
}

// HTTP/2's frames: length, kind, flags, stream.
std::string frame(char kind, char flags, uint32_t stream, const std::string& payload) {
  std::string text;
  for (const int shift : {16, 8, 0}) text += static_cast<char>(payload.size() >> shift & 0xFF);
  text += {kind, flags};
  for (const int shift : {24, 16, 8, 0}) text += static_cast<char>(stream >> shift & 0xFF);
  return text + payload;
}
constexpr char kData = 0, kHeaders = 1, kReset = 3, kSettings = 4, kPing = 6, kWindow = 8, kContinuation = 9;
constexpr char kEndStream = 1, kEndHeaders = 4;
const std::string kHello = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(kSettings, 0, 0, "");

// Headers of a gRPC call as literals: POST, the path, the type.
std::string call_headers(const std::string& path) {
  const auto literal = [](const std::string& text) { return static_cast<char>(text.size()) + text; };
  std::string block = "\x83\x86";  // :method POST, :scheme http
  block += '\0' + literal(":authority") + literal("h");
  block += '\0' + literal(":path") + literal(path);
  block += '\0' + literal("content-type") + literal("application/grpc");
  return block;
}

// Sends what a peer should not, and takes all that comes; whether the server closes the connection.
bool is_too_much(int socket, const std::string& text, double seconds) {
  const base::Stopwatch watch;
  char bytes[64 << 10];
  for (size_t at = 0; watch.seconds() < seconds;) {
    const short events = static_cast<short>(POLLIN | (at < text.size() ? POLLOUT : 0));
    pollfd polled{socket, events, 0};
    if (::poll(&polled, 1, 50) <= 0) continue;
    if ((polled.revents & POLLOUT) != 0) {
      const ssize_t count = ::send(socket, text.data() + at, text.size() - at, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (count < 0 && errno != EAGAIN) return true;
      if (count > 0) at += static_cast<size_t>(count);
    }
    if ((polled.revents & (POLLIN | POLLHUP | POLLERR)) != 0 && ::recv(socket, bytes, sizeof bytes, 0) <= 0)
      return true;
  }
  return false;
}

TEST_F(ProfilerServiceTest, FloodsEndTheirConnection) {
  start({.request = 30, .idle = 30});
  std::string resets = kHello, settings = kHello, pings = kHello, windows = kHello, headers = kHello;
  // Calls that begin work and are taken back at once.
  const std::string ask = base::ProtoWriter().number(1, 60'000).bytes();
  const std::string message = std::string("\0\0\0\0", 4) + static_cast<char>(ask.size()) + ask;
  for (uint32_t stream = 1; stream < 20'000; stream += 2)
    resets += frame(kHeaders, kEndHeaders, stream, call_headers(kMonitorMethod)) +
              frame(kData, kEndStream, stream, message) +
              frame(kReset, 0, stream, std::string("\0\0\0\x8", 4));
  for (int i = 0; i < 150'000; ++i) {
    settings += frame(kSettings, 0, 0, std::string("\0\4\0\0\0\1", 6));
    pings += frame(kPing, 0, 0, "12345678");
    windows += frame(kWindow, 0, 0, std::string("\0\0\0\1", 4));
  }
  // One header block that does not end, of names from the table and of literals.
  headers += frame(kHeaders, 0, 1, call_headers(kStatusMethod));
  for (int i = 0; i < 2'000; ++i)
    headers += frame(kContinuation, 0, 1, std::string(8'000, '\x90'));  // accept-encoding
  const std::pair<const char*, const std::string&> floods[] = {{"resets", resets},
                                                               {"settings", settings},
                                                               {"pings", pings},
                                                               {"windows", windows},
                                                               {"headers", headers}};
  for (const auto& [name, text] : floods) {
    const base::Stopwatch watch;
    const int socket = connect();
    EXPECT_TRUE(is_too_much(socket, text, 25)) << name;
    EXPECT_LT(watch.seconds(), 20) << name;
    ::close(socket);
    EXPECT_TRUE(call(kStatusMethod, "")) << name;
  }
}

// What they sent is counted, not what the library thinks of it.
TEST(GrpcConnection, CountsWhatIsTakenBack) {
  int begun = 0;
  GrpcConnection connection([&](const auto&) { ++begun; }, [] {});
  std::string text = kHello;
  bool goes_on = connection.receive(text);
  uint32_t stream = 1;
  for (; goes_on && stream < 2'000; stream += 2) {
    goes_on = connection.receive(frame(kHeaders, kEndHeaders, stream, call_headers("/a/b")) +
                                 frame(kData, kEndStream, stream, std::string(5, '\0')) +
                                 frame(kReset, 0, stream, std::string("\0\0\0\x8", 4)));
    connection.sent(connection.output().size());
  }
  EXPECT_FALSE(goes_on);
  EXPECT_LE(begun, 101);
  EXPECT_GE(begun, 50);
}

// Peers that ask for large answers and make no room for them, or a byte at a time.
TEST(GrpcServer, AnswersThatNobodyTakesDoNotFillTheMemory) {
  GrpcServer server(base::value_or_throw(cloud::Listener::open({}, "a port")),
                    [](const std::shared_ptr<GrpcCall>& call) { call->answer(std::string(8 << 20, 'x')); },
                    {.request = 60, .idle = 60, .stall = 60, .unsent = 40 << 20});
  std::vector<int> sockets;
  for (int i = 0; i < 4; ++i) {
    sockets.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(server.address().port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(::connect(sockets.back(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    std::string text = kHello;
    for (uint32_t stream = 1; stream < 9; stream += 2)
      text += frame(kHeaders, kEndHeaders, stream, call_headers("/a/b")) +
              frame(kData, kEndStream, stream, std::string(5, '\0'));
    ::send(sockets.back(), text.data(), text.size(), MSG_NOSIGNAL);
  }
  // Each has asked for 32 MiB: one of them may have that.
  int closed = 0;
  for (const base::Stopwatch watch; closed < 3 && watch.seconds() < 20;) {
    closed = 0;
    for (const int socket : sockets) {
      char bytes[256 << 10];
      ssize_t count = 1;
      while (count > 0) count = ::recv(socket, bytes, sizeof bytes, MSG_DONTWAIT);
      closed += count == 0 || (count < 0 && errno != EAGAIN);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_EQ(closed, 3);
  for (const int socket : sockets) ::close(socket);
}

TEST(GrpcServer, APeerThatTakesAByteAtATimeStalls) {
  GrpcServer server(base::value_or_throw(cloud::Listener::open({}, "a port")),
                    [](const std::shared_ptr<GrpcCall>& call) { call->answer(std::string(2 << 20, 'x')); },
                    {.stall = 1});
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(server.address().port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  const std::string text = kHello + frame(kHeaders, kEndHeaders, 1, call_headers("/a/b")) +
                           frame(kData, kEndStream, 1, std::string(5, '\0'));
  ::send(socket, text.data(), text.size(), MSG_NOSIGNAL);
  const std::string more =
      frame(kWindow, 0, 0, std::string("\0\0\0\1", 4)) + frame(kWindow, 0, 1, std::string("\0\0\0\1", 4));
  bool closed = false;
  for (const base::Stopwatch watch; !closed && watch.seconds() < 10;) {
    ::send(socket, more.data(), more.size(), MSG_NOSIGNAL);
    char bytes[64 << 10];
    ssize_t count = 1;
    while (count > 0) count = ::recv(socket, bytes, sizeof bytes, MSG_DONTWAIT);
    closed = count == 0 || (count < 0 && errno != EAGAIN);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  EXPECT_TRUE(closed);
  ::close(socket);
}

TEST_F(ProfilerServiceTest, MoreConnectionsThanThereMayBe) {
  start({.connections = 3, .request = 1});
  std::vector<int> sockets;
  for (int i = 0; i < 10; ++i) sockets.push_back(connect());
  for (const int socket : sockets) {
    EXPECT_TRUE(is_closed(socket));
    ::close(socket);
  }
  EXPECT_TRUE(call(kStatusMethod, ""));
}

TEST(ProfilerPort, InUse) {
  const auto first = base::value_or_throw(cloud::Listener::open({}, "the profiler's port"));
  ProfilerService::Training training;
  training.requests = std::make_shared<StepRequests>();
  const auto second = ProfilerService::start(first.address(), std::move(training));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), Code::kAlreadyExists);
  EXPECT_THAT(second.error().what(), HasSubstr("the profiler's port: cannot listen at 127.0.0.1 port"));
}

}  // namespace
}  // namespace sluice::profile
