#include "sluice/pjrt/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <future>
#include <thread>

#include "sluice/pjrt/testing/programs.h"

namespace sluice::pjrt {
namespace {

using stablehlo::DType;
using testing::add_program;
using testing::cpu_client;
using ::testing::ElementsAre;
using testing::f32;
using ::testing::HasSubstr;
using testing::values;

CompileOptions two_arguments(const stablehlo::Type& type = f32({4})) {
  CompileOptions options;
  options.argument_types = {type, type};
  options.name = "add";
  return options;
}

// 64-byte aligned host memory.
class AlignedFloats {
 public:
  explicit AlignedFloats(size_t count)
      : data_(static_cast<float*>(std::aligned_alloc(64, (count * sizeof(float) + 63) / 64 * 64))) {}
  ~AlignedFloats() { std::free(data_); }
  AlignedFloats(const AlignedFloats&) = delete;
  float* data() { return data_; }

 private:
  float* data_;
};

TEST(Client, SaysWhatItIs) {
  const auto client = cpu_client(3);
  EXPECT_EQ(client->platform_name(), "cpu");
  EXPECT_EQ(client->process_index(), 0);
  EXPECT_EQ(client->global_devices().size(), 3u);
  EXPECT_EQ(client->processes(), 1);
  ASSERT_EQ(client->devices().size(), 3u);
  EXPECT_EQ(client->devices()[2]->id(), 2);
  EXPECT_EQ(client->devices()[2]->kind(), "cpu");
  EXPECT_EQ(client->device(1), client->devices()[1]);
  EXPECT_EQ(client->device(3), nullptr);
  EXPECT_FALSE(client->devices()[0]->memory());  // this plugin does not say
}

TEST(Client, RefusesNoDevices) {
  ClientOptions options;
  options.cpu_device_count = 0;
  const auto client = Client::create(base::value_or_throw(Plugin::load("cpu")), options);
  ASSERT_FALSE(client);
  EXPECT_THAT(client.error().what(), HasSubstr("at least 1 CPU device, found 0"));
}

TEST(Client, Adds) {
  const auto client = cpu_client();
  Device& device = *client->devices()[0];
  const float x[] = {1, 2, 3, 4}, y[] = {10, 20, 30, 40};
  Buffer a = base::value_or_throw(client->put(x, f32({4}), device));
  Buffer b = base::value_or_throw(client->put(y, f32({4}), device));
  const auto add = base::value_or_throw(client->compile(add_program(), two_arguments()));
  EXPECT_EQ(add->num_outputs(), 1u);
  EXPECT_EQ(add->output_type(0), f32({4}));
  EXPECT_FALSE(add->from_cache());
  EXPECT_GT(add->seconds(), 0);
  const std::vector<std::vector<Buffer*>> arguments = {{&a, &b}};
  Launch launch = base::value_or_throw(add->execute(arguments));
  ASSERT_TRUE(launch.done[0].await());
  EXPECT_TRUE(launch.done[0].ready());
  EXPECT_THAT(values<float>(launch.outputs[0][0]), ElementsAre(11, 22, 33, 44));
  EXPECT_THAT(values<float>(a), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(launch.outputs[0][0].device(), &device);
}

TEST(Client, TellsMemoryAndCost) {
  const auto add = base::value_or_throw(cpu_client()->compile(add_program(), two_arguments()));
  const auto memory = base::value_or_throw(add->memory());
  EXPECT_EQ(memory.arguments, 32);
  EXPECT_EQ(memory.outputs, 16);
  EXPECT_EQ(memory.aliased, 0);
  EXPECT_EQ(base::value_or_throw(add->cost()).flops, 4);
}

TEST(Client, BuffersOfAllTypesComeBackAsTheyWere) {
  const auto client = cpu_client();
  const std::vector<unsigned char> bytes = {1, 0, 1, 1, 0, 1, 0, 0, 1, 0, 0, 1, 0, 1, 1, 1,
                                            1, 0, 1, 1, 0, 1, 0, 0, 1, 0, 0, 1, 0, 1, 1, 1,
                                            1, 0, 1, 1, 0, 1, 0, 0, 1, 0, 0, 1, 0, 1, 1, 1};
  for (int d = 0; d <= static_cast<int>(DType::kF64); ++d) {
    const stablehlo::Type type{static_cast<DType>(d), {2, 3}};
    Buffer buffer = base::value_or_throw(client->put(bytes.data(), type, *client->devices()[0]));
    EXPECT_EQ(buffer.type(), type);
    std::vector<unsigned char> back(type.bytes());
    ASSERT_TRUE(buffer.read(back.data(), back.size())) << type.str();
    EXPECT_EQ(back,
              std::vector<unsigned char>(bytes.begin(), bytes.begin() + static_cast<long>(type.bytes())));
  }
}

TEST(Client, ScalarsAndEmptyTensors) {
  const auto client = cpu_client();
  const float seven = 7;
  EXPECT_THAT(values<float>(base::value_or_throw(client->put(&seven, f32({}), *client->devices()[0]))),
              ElementsAre(7));
  Buffer empty = base::value_or_throw(client->put(nullptr, f32({0, 3}), *client->devices()[0]));
  EXPECT_TRUE(empty.read(nullptr, 0));
  EXPECT_FALSE(client->put(nullptr, f32({3}), *client->devices()[0]));
}

TEST(Client, ReadsIntoTheRightRoomOnly) {
  const auto client = cpu_client();
  const float x[] = {1, 2, 3, 4};
  Buffer buffer = base::value_or_throw(client->put(x, f32({4}), *client->devices()[0]));
  float room[4];
  const auto status = buffer.read(room, 12);
  ASSERT_FALSE(status);
  EXPECT_STREQ(status.error().what(),
               "cannot copy a buffer of tensor<4xf32> to the host: expected room for 16 bytes, found 12");
}

TEST(Client, KeepsDimensionsInOrder) {
  const auto client = cpu_client();
  const float x[] = {1, 2, 3, 4, 5, 6};
  CompileOptions options;
  options.argument_types = {f32({2, 3})};
  const auto transpose = base::value_or_throw(
      client->compile("module { func.func @main(%x: tensor<2x3xf32>) -> tensor<3x2xf32> {\n"
                      "%y = \"stablehlo.transpose\"(%x) {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) "
                      "-> tensor<3x2xf32>\n"
                      "\"func.return\"(%y) : (tensor<3x2xf32>) -> () } }",
                      options));
  Buffer buffer = base::value_or_throw(client->put(x, f32({2, 3}), *client->devices()[0]));
  const std::vector<std::vector<Buffer*>> arguments = {{&buffer}};
  const Launch launch = base::value_or_throw(transpose->execute(arguments));
  EXPECT_THAT(values<float>(launch.outputs[0][0]), ElementsAre(1, 4, 2, 5, 3, 6));
}

TEST(Client, ReadsManyDimensions) {
  const auto client = cpu_client();
  const float x[] = {1, 2, 3, 4};
  const stablehlo::Type type = f32({1, 1, 2, 1, 1, 1, 1, 1, 1, 2});
  EXPECT_THAT(values<float>(base::value_or_throw(client->put(x, type, *client->devices()[0]))),
              ElementsAre(1, 2, 3, 4));
}

TEST(HostMemory, SharedWhereAligned) {
  const auto client = cpu_client();
  AlignedFloats host(4);
  for (int i = 0; i < 4; ++i) host.data()[i] = static_cast<float>(i);
  std::promise<void> released;
  {
    Buffer buffer = base::value_or_throw(client->put(host.data(), f32({4}), *client->devices()[0],
                                                     HostCopy::kShare, [&] { released.set_value(); }));
    auto view = buffer.host_view();
    ASSERT_TRUE(view);
    EXPECT_EQ(view->data(), host.data());
    EXPECT_EQ(released.get_future().wait_for(std::chrono::seconds(0)), std::future_status::timeout);
    released = std::promise<void>();
  }
  EXPECT_EQ(released.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
}

TEST(HostMemory, CopiedInTheBackground) {
  const auto client = cpu_client();
  std::vector<float> host(1 << 20, 3);
  std::promise<void> released;
  Buffer buffer = base::value_or_throw(client->put(host.data(), f32({1 << 20}), *client->devices()[0],
                                                   HostCopy::kBackground, [&] { released.set_value(); }));
  released.get_future().wait();
  std::fill(host.begin(), host.end(), 4.0f);
  EXPECT_THAT(values<float>(buffer), ::testing::Each(3));
}

TEST(HostMemory, CopiedDuringTheCall) {
  const auto client = cpu_client();
  std::vector<float> host(1000, 3);
  bool released = false;
  Buffer buffer = base::value_or_throw(client->put(host.data(), f32({1000}), *client->devices()[0],
                                                   HostCopy::kDuringCall, [&] { released = true; }));
  EXPECT_TRUE(released);
  std::fill(host.begin(), host.end(), 4.0f);
  EXPECT_THAT(values<float>(buffer), ::testing::Each(3));
}

TEST(HostMemory, ViewIsThePluginsOwn) {
  const auto client = cpu_client();
  const float x[] = {1, 2, 3, 4};
  Buffer buffer = base::value_or_throw(client->put(x, f32({4}), *client->devices()[0]));
  const auto view = base::value_or_throw(buffer.host_view());
  EXPECT_NE(view.data(), x);
  EXPECT_EQ(static_cast<const float*>(view.data())[3], 4);
}

TEST(Buffer, MovesAndIsCounted) {
  const auto client = cpu_client();
  const float x[] = {1, 2, 3, 4};
  const int64_t before = Buffer::live();
  {
    Buffer a = base::value_or_throw(client->put(x, f32({4}), *client->devices()[0]));
    Buffer b = std::move(a);
    EXPECT_FALSE(a);
    EXPECT_TRUE(a.deleted());
    EXPECT_FALSE(b.deleted());
    EXPECT_EQ(Buffer::live(), before + 1);
    b = base::value_or_throw(client->put(x, f32({4}), *client->devices()[0]));
    EXPECT_EQ(Buffer::live(), before + 1);
  }
  EXPECT_EQ(Buffer::live(), before);
}

TEST(Buffer, OutlivesTheClientsHandle) {
  const float x[] = {1, 2, 3, 4};
  auto client = cpu_client();
  Buffer buffer = base::value_or_throw(client->put(x, f32({4}), *client->devices()[0]));
  client.reset();
  EXPECT_THAT(values<float>(buffer), ElementsAre(1, 2, 3, 4));
}

TEST(Event, EmptyIsReadyAndGood) {
  const Event event;
  EXPECT_TRUE(event.ready());
  EXPECT_TRUE(event.await());
  bool called = false;
  event.on_ready([&](const base::Status& status) { called = status.has_value(); });
  EXPECT_TRUE(called);
}

TEST(Client, WorksFromManyThreads) {
  const auto client = cpu_client();
  const auto add = base::value_or_throw(client->compile(add_program(), two_arguments()));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const float x[] = {1.0f * static_cast<float>(t), 2, 3, 4};
      for (int i = 0; i < 50; ++i) {
        Buffer a = base::value_or_throw(client->put(x, f32({4}), *client->devices()[0]));
        const std::vector<std::vector<Buffer*>> arguments = {{&a, &a}};
        const Launch launch = base::value_or_throw(add->execute(arguments));
        EXPECT_THAT(values<float>(launch.outputs[0][0]), ElementsAre(2.0f * static_cast<float>(t), 4, 6, 8));
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST(Client, TwoClientsInOneProcess) {
  const auto first = cpu_client(1), second = cpu_client(2);
  const float x[] = {1, 2, 3, 4};
  Buffer on_first = base::value_or_throw(first->put(x, f32({4}), *first->devices()[0]));
  Buffer on_second = base::value_or_throw(second->put(x, f32({4}), *second->devices()[1]));
  EXPECT_THAT(values<float>(on_first), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(values<float>(on_second), ElementsAre(1, 2, 3, 4));
}

}  // namespace
}  // namespace sluice::pjrt
