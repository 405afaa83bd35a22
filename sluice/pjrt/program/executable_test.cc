// What is refused before a program runs, what fails while it runs, donation, and replicas.
#include "sluice/pjrt/program/executable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "sluice/pjrt/testing/programs.h"

namespace sluice::pjrt {
namespace {

using stablehlo::DType;
using testing::add_program;
using testing::all_reduce_program;
using testing::cpu_client;
using ::testing::ElementsAre;
using testing::f32;
using ::testing::HasSubstr;
using testing::values;

class ExecutableTest : public ::testing::Test {
 protected:
  Buffer put(const std::vector<float>& x, int device = 0) {
    return base::value_or_throw(
        client_->put(x.data(), f32({static_cast<int64_t>(x.size())}), *client_->devices()[device]));
  }
  std::shared_ptr<Executable> compile(const std::string& text, size_t arguments, int replicas = 1) {
    CompileOptions options;
    options.argument_types.assign(arguments, f32({4}));
    options.num_replicas = replicas;
    options.name = "step";
    return base::value_or_throw(client_->compile(text, options));
  }
  static base::Result<Launch> run(const Executable& program, std::vector<std::vector<Buffer*>> arguments,
                                  std::vector<int64_t> not_donated = {}) {
    return program.execute(arguments, not_donated);
  }

  std::shared_ptr<Client> client_ = cpu_client(2);
};

TEST_F(ExecutableTest, RefusesAnotherTypeOfEqualSize) {
  const auto add = compile(add_program(), 2);
  Buffer a = put({1, 2, 3, 4});
  const int32_t x[] = {1, 2, 3, 4};
  Buffer wrong_type = base::value_or_throw(client_->put(x, {DType::kS32, {4}}, *client_->devices()[0]));
  auto launch = run(*add, {{&a, &wrong_type}});
  ASSERT_FALSE(launch);
  EXPECT_EQ(launch.error().code(), Code::kInvalidArgument);
  EXPECT_STREQ(launch.error().what(),
               "argument 1 of step (replica 0): expected tensor<4xf32>, found tensor<4xi32>");
  Buffer wrong_shape = base::value_or_throw(client_->put(x, f32({2, 2}), *client_->devices()[0]));
  launch = run(*add, {{&wrong_shape, &a}});
  ASSERT_FALSE(launch);
  EXPECT_STREQ(launch.error().what(),
               "argument 0 of step (replica 0): expected tensor<4xf32>, found tensor<2x2xf32>");
}

TEST_F(ExecutableTest, RefusesWhatIsNotThere) {
  const auto add = compile(add_program(), 2);
  Buffer a = put({1, 2, 3, 4}), empty, elsewhere = put({1, 2, 3, 4}, 1);
  EXPECT_THAT(
      run(*add, {{&a, nullptr}}).error().what(),
      HasSubstr("argument 1 of step (replica 0): expected a buffer of tensor<4xf32>, found an empty one"));
  EXPECT_THAT(run(*add, {{&empty, &a}}).error().what(), HasSubstr("argument 0 of step"));
  EXPECT_THAT(run(*add, {{&a}}).error().what(), HasSubstr("step takes 2 arguments, found 1"));
  EXPECT_THAT(run(*add, {{&a, &a}, {&a, &a}}).error().what(), HasSubstr("runs on 1 replicas"));
  EXPECT_THAT(run(*add, {}).error().what(), HasSubstr("found arguments for 0"));
  EXPECT_THAT(run(*add, {{&a, &elsewhere}}).error().what(), HasSubstr("expected a buffer on device 0"));
}

TEST_F(ExecutableTest, CompileErrorsSayWhere) {
  CompileOptions options;
  options.name = "broken";
  const auto broken =
      client_->compile("module {\n  func.func @main() {\n    %x = \"stablehlo.nonsense\"()", options);
  ASSERT_FALSE(broken);
  EXPECT_THAT(broken.error().what(), HasSubstr("cannot compile broken: "));
  EXPECT_THAT(broken.error().what(), HasSubstr(":3:"));
}

TEST_F(ExecutableTest, DonationReusesTheMemory) {
  const auto add = compile(add_program("tensor<4xf32>", "{tf.aliasing_output = 0 : i32}"), 2);
  Buffer a = put({1, 2, 3, 4}), b = put({10, 20, 30, 40});
  const void* before = base::value_or_throw(a.host_view()).data();
  Launch launch = base::value_or_throw(run(*add, {{&a, &b}}));
  EXPECT_TRUE(a.deleted());
  EXPECT_FALSE(b.deleted());
  EXPECT_EQ(base::value_or_throw(launch.outputs[0][0].host_view()).data(), before);
  EXPECT_THAT(values<float>(launch.outputs[0][0]), ElementsAre(11, 22, 33, 44));
  const auto again = run(*add, {{&a, &b}});
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().what(), HasSubstr("deleted or donated"));
  EXPECT_EQ(base::value_or_throw(add->memory()).aliased, 16);
}

TEST_F(ExecutableTest, AnOutputMayReplaceAnArgumentInItsList) {
  const auto add = compile(add_program("tensor<4xf32>", "{tf.aliasing_output = 0 : i32}"), 2);
  std::vector<Buffer> sum;
  sum.push_back(put({1, 2, 3, 4}));
  Buffer b = put({10, 20, 30, 40});
  std::vector<Buffer>* const outputs[] = {&sum};
  std::vector<Buffer> replaced;
  for (int i = 0; i < 3; ++i) {
    const std::vector<Buffer*> arguments = {&sum[0], &b};
    const auto done = add->execute_into(outputs, replaced, {&arguments, 1});
    ASSERT_TRUE(done) << done.error().what();
    ASSERT_EQ(done->size(), 1u);
  }
  EXPECT_THAT(values<float>(sum[0]), ElementsAre(31, 62, 93, 124));
  ASSERT_EQ(replaced.size(), 3u);
  for (const Buffer& before : replaced) EXPECT_TRUE(before.deleted());

  const std::vector<Buffer*> too_few = {&sum[0]};
  EXPECT_FALSE(add->execute_into(outputs, replaced, {&too_few, 1}));
  const std::vector<Buffer*> arguments = {&sum[0], &b};
  const auto nowhere = add->execute_into({}, replaced, {&arguments, 1});
  ASSERT_FALSE(nowhere);
  EXPECT_STREQ(nowhere.error().what(), "step has 1 outputs, found lists for 0");
  EXPECT_THAT(values<float>(sum[0]), ElementsAre(31, 62, 93, 124));
  EXPECT_EQ(replaced.size(), 3u);
}
TEST_F(ExecutableTest, DonationCanBeRefusedForOneRun) {
  const auto add = compile(add_program("tensor<4xf32>", "{tf.aliasing_output = 0 : i32}"), 2);
  Buffer a = put({1, 2, 3, 4}), b = put({10, 20, 30, 40});
  Launch launch = base::value_or_throw(run(*add, {{&a, &b}}, {0}));
  EXPECT_FALSE(a.deleted());
  EXPECT_THAT(values<float>(launch.outputs[0][0]), ElementsAre(11, 22, 33, 44));
  EXPECT_THAT(values<float>(a), ElementsAre(1, 2, 3, 4));
}

TEST_F(ExecutableTest, AViewKeepsItsBuffer) {
  const auto add = compile(add_program("tensor<4xf32>", "{tf.aliasing_output = 0 : i32}"), 2);
  Buffer a = put({1, 2, 3, 4}), b = put({10, 20, 30, 40});
  const auto view = base::value_or_throw(a.host_view());
  Launch launch = base::value_or_throw(run(*add, {{&a, &b}}));
  EXPECT_THAT(values<float>(launch.outputs[0][0]), ElementsAre(11, 22, 33, 44));
  EXPECT_EQ(static_cast<const float*>(view.data())[0], 1);
}

TEST_F(ExecutableTest, ReplicasMeetInACollective) {
  const auto sum = compile(all_reduce_program("[[0, 1]]", "1x2"), 1, 2);
  ASSERT_EQ(sum->devices().size(), 2u);
  Buffer a = put({1, 2, 3, 4}, 0), b = put({10, 20, 30, 40}, 1);
  for (int i = 0; i < 20; ++i) {
    Launch launch = base::value_or_throw(run(*sum, {{&a}, {&b}}));
    for (size_t r = 0; r < 2; ++r) {
      ASSERT_TRUE(launch.done[r].await());
      EXPECT_THAT(values<float>(launch.outputs[0][r]), ElementsAre(11, 22, 33, 44));
      EXPECT_EQ(launch.outputs[0][r].device(), client_->devices()[r]);
    }
  }
}

TEST_F(ExecutableTest, ReplicasGoWhereTheyAreSent) {
  CompileOptions options;
  options.argument_types = {f32({4})};
  options.num_replicas = 2;
  options.device_ids = {1, 0};
  const std::string replica_number =
      "module { func.func @main(%x: tensor<4xf32>) -> tensor<ui32> {\n"
      "%r = \"stablehlo.replica_id\"() : () -> tensor<ui32>\n\"func.return\"(%r) : (tensor<ui32>) -> () } }";
  const auto program = base::value_or_throw(client_->compile(replica_number, options));
  ASSERT_EQ(program->devices().size(), 2u);
  EXPECT_EQ(program->devices()[0]->id(), 1);
  Buffer on_0 = put({1, 2, 3, 4}, 0), on_1 = put({1, 2, 3, 4}, 1);
  const Launch launch = base::value_or_throw(run(*program, {{&on_1}, {&on_0}}));
  EXPECT_THAT(values<uint32_t>(launch.outputs[0][0]), ElementsAre(0));
  EXPECT_THAT(values<uint32_t>(launch.outputs[0][1]), ElementsAre(1));
}

TEST_F(ExecutableTest, OneReplicaOnAChosenDevice) {
  CompileOptions options;
  options.argument_types.assign(2, f32({4}));
  options.device_ids = {1};
  const auto add = base::value_or_throw(client_->compile(add_program(), options));
  Buffer a = put({1, 2, 3, 4}, 1);
  const Launch launch = base::value_or_throw(run(*add, {{&a, &a}}));
  EXPECT_EQ(launch.outputs[0][0].device()->id(), 1);
  EXPECT_THAT(values<float>(launch.outputs[0][0]), ElementsAre(2, 4, 6, 8));
}

TEST_F(ExecutableTest, RefusesReplicasWithoutDevices) {
  CompileOptions options;
  options.argument_types.assign(2, f32({4}));
  options.num_replicas = 3;
  EXPECT_THAT(client_->compile(add_program(), options).error().what(),
              HasSubstr("for 3 replicas: expected one device for each, found 2"));
  options.num_replicas = 2;
  options.device_ids = {1, 1};
  EXPECT_THAT(client_->compile(add_program(), options).error().what(),
              HasSubstr("device 1 is given to replicas 0 and 1"));
  options.device_ids = {0, 7};
  EXPECT_FALSE(client_->compile(add_program(), options));
}

// A temporary of 4 TiB: found out when the program starts on the device, after execute() has returned.
const char kTooMuchMemory[] =
    "module { func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
    "%b = \"stablehlo.broadcast_in_dim\"(%x) {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>) -> "
    "tensor<274877906944x4xf32>\n"
    "%s:2 = \"stablehlo.sort\"(%b, %b) ({\n"
    "^bb0(%a0: tensor<f32>, %a1: tensor<f32>, %c0: tensor<f32>, %c1: tensor<f32>):\n"
    "  %p = \"stablehlo.compare\"(%a0, %a1) {comparison_direction = #stablehlo<comparison_direction LT>} : "
    "(tensor<f32>, tensor<f32>) -> tensor<i1>\n"
    "  \"stablehlo.return\"(%p) : (tensor<i1>) -> ()\n"
    "}) {dimension = 0 : i64} : (tensor<274877906944x4xf32>, tensor<274877906944x4xf32>) -> "
    "(tensor<274877906944x4xf32>, tensor<274877906944x4xf32>)\n"
    "%o = \"stablehlo.slice\"(%s#1) {start_indices = array<i64: 0, 0>, limit_indices = array<i64: 1, 4>, "
    "strides = array<i64: 1, 1>} : (tensor<274877906944x4xf32>) -> tensor<1x4xf32>\n"
    "%r = \"stablehlo.reshape\"(%o) : (tensor<1x4xf32>) -> tensor<4xf32>\n"
    "\"func.return\"(%r) : (tensor<4xf32>) -> () } }";

TEST_F(ExecutableTest, LaterErrorsComeWithTheEventsAndOutputs) {
  const auto program = compile(kTooMuchMemory, 1);
  Buffer a = put({1, 2, 3, 4});
  auto launch = run(*program, {{&a}});
  ASSERT_TRUE(launch) << launch.error().what();
  const auto status = launch->done[0].await();
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().what(), HasSubstr("Out of memory"));
  std::promise<std::string> heard;
  launch->done[0].on_ready([&](const base::Status& s) { heard.set_value(s ? "" : s.error().what()); });
  EXPECT_THAT(heard.get_future().get(), HasSubstr("Out of memory"));
  EXPECT_THAT(launch->outputs[0][0].await().error().what(), HasSubstr("Out of memory"));
  float room[4];
  EXPECT_THAT(launch->outputs[0][0].read(room, sizeof room).error().what(), HasSubstr("Out of memory"));
  // The client goes on.
  Launch good = base::value_or_throw(run(*compile(add_program(), 2), {{&a, &a}}));
  EXPECT_THAT(values<float>(good.outputs[0][0]), ElementsAre(2, 4, 6, 8));
}

TEST_F(ExecutableTest, CallbackComesFromARunningProgram) {
  // Long enough that the callback is registered before the end.
  const std::string text =
      "module { func.func @main(%x: tensor<512x512xf32>) -> tensor<512x512xf32> {\n"
      "%a = \"stablehlo.dot_general\"(%x, %x) {dot_dimension_numbers = "
      "#stablehlo.dot<lhs_contracting_dimensions = "
      "[1], rhs_contracting_dimensions = [0]>} : (tensor<512x512xf32>, tensor<512x512xf32>) -> "
      "tensor<512x512xf32>\n"
      "%b = \"stablehlo.dot_general\"(%a, %x) {dot_dimension_numbers = "
      "#stablehlo.dot<lhs_contracting_dimensions = "
      "[1], rhs_contracting_dimensions = [0]>} : (tensor<512x512xf32>, tensor<512x512xf32>) -> "
      "tensor<512x512xf32>\n"
      "\"func.return\"(%b) : (tensor<512x512xf32>) -> () } }";
  CompileOptions options;
  options.argument_types = {f32({512, 512})};
  const auto program = base::value_or_throw(client_->compile(text, options));
  const std::vector<float> ones(512 * 512, 1);
  Buffer x = base::value_or_throw(client_->put(ones.data(), f32({512, 512}), *client_->devices()[0]));
  for (int i = 0; i < 10; ++i) {
    Launch launch = base::value_or_throw(run(*program, {{&x}}));
    std::promise<bool> good;
    launch.done[0].on_ready([&](const base::Status& status) { good.set_value(status.has_value()); });
    launch.done.clear();  // the callback does not need the event
    EXPECT_TRUE(good.get_future().get());
    EXPECT_EQ(values<float>(launch.outputs[0][0])[0], 512.0f * 512.0f);
  }
}

TEST_F(ExecutableTest, SerializesAndLoads) {
  CompileOptions options;
  options.argument_types = {f32({4})};
  options.num_replicas = 2;
  const auto sum = base::value_or_throw(client_->compile(all_reduce_program("[[0, 1]]", "1x2"), options));
  const std::string bytes = base::value_or_throw(sum->serialize());
  const auto loaded = base::value_or_throw(client_->load(bytes, options));
  Buffer a = put({1, 2, 3, 4}, 0), b = put({1, 1, 1, 1}, 1);
  const Launch launch = base::value_or_throw(run(*loaded, {{&a}, {&b}}));
  EXPECT_THAT(values<float>(launch.outputs[0][1]), ElementsAre(2, 3, 4, 5));
  EXPECT_FALSE(client_->load("no program", options));
}

TEST_F(ExecutableTest, RunsLeaveNoBuffersBehind) {
  const auto add = compile(add_program(), 2);
  Buffer a = put({1, 2, 3, 4});
  const int64_t before = Buffer::live();
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(run(*add, {{&a, &a}}));
  EXPECT_EQ(Buffer::live(), before);
}

}  // namespace
}  // namespace sluice::pjrt
