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
#include "sluice/base/proto_writer.h"
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
