// Registration, attributes, errors and exceptions of custom calls.
#include "sluice/pjrt/program/custom_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <stdexcept>

#include "sluice/pjrt/testing/collective_programs.h"

namespace sluice::pjrt {
namespace {

using testing::bytes_of;
using ::testing::ElementsAre;
using testing::f32;
using ::testing::HasSubstr;

std::string seen;

base::Status describe(const CustomCall& call) {
  SLUICE_TRY(const CallBuffer x, call.operand(0));
  SLUICE_TRY(const CallBuffer y, call.result(0));
  SLUICE_TRY(const auto number, call.number("number"));
  SLUICE_TRY(const auto real, call.real("real"));
  SLUICE_TRY(const auto text, call.text("text"));
  SLUICE_TRY(const auto list, call.numbers("list"));
  SLUICE_TRY(const auto none, call.number("none"));
  SLUICE_TRY(const int device, call.device_id());
  seen = base::str(call.num_operands(), call.num_results(), " ", stablehlo::dtype_name(x.dtype), " ",
                   base::join(x.dims, "x"), " ", x.bytes(), " ", *number, " ", *real, " ", *text, " [",
                   base::join(*list, ","), "] ", none.has_value(), " device ", device);
  std::memcpy(y.data, x.data, x.bytes());
  return {};
}

base::Status misread(const CustomCall& call) {
  SLUICE_OK(call.number("text"));
  return {};
}

// The handler ends when a thread of the plugin's pool has done a task.
base::Status borrows_a_thread(const CustomCall& call) {
  SLUICE_TRY(const CallBuffer x, call.operand(0));
  SLUICE_TRY(const CallBuffer y, call.result(0));
  std::promise<void> done;
  const bool lent =
      call.schedule([](void* data) { static_cast<std::promise<void>*>(data)->set_value(); }, &done);
  if (!lent) return base::fail(Code::kInternal, "no thread");
  done.get_future().wait();
  std::memcpy(y.data, x.data, x.bytes());
  return {};
}

base::Status throws_error(const CustomCall&) { throw std::runtime_error("thrown inside"); }
base::Status throws_number(const CustomCall&) { throw 7; }
base::Status says_no(const CustomCall&) { return base::fail(Code::kFailedPrecondition, "no, not today"); }
base::Status asks_too_much(const CustomCall& call) {
  SLUICE_OK(call.operand(9));
  return {};
}

const char kAttributes[] =
    "number = -5 : i64, real = 2.500000e-01 : f64, text = \"hello\", list = array<i64: 1, 2, 3>";

class CustomCallTest : public ::testing::Test {
 protected:
  testing::Prepared prepare(const std::string& target) {
    return testing::prepare(*client_, testing::collective_program({type_}, {type_}, {target, kAttributes}),
                            {type_}, {{bytes_of<float>({1, 2, 3, 4})}}, {1});
  }
  std::string error(const std::string& target) {
    const auto launch = prepare(target).launch();
    if (!launch) return launch.error().what();
    return testing::errors_of(*launch)[0];
  }
  const stablehlo::Type type_ = f32({2, 2});
  std::shared_ptr<Client> client_ = testing::cpu_client(2);
};

TEST_F(CustomCallTest, SeesItsCall) {
  ASSERT_TRUE(register_custom_call<describe>(*client_->plugin(), "test_describe"));
  const Launch launch = base::value_or_throw(prepare("test_describe").launch());
  EXPECT_THAT(testing::values<float>(launch.outputs[0][0]), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(seen, "11 f32 2x2 16 -5 0.25 hello [1,2,3] 0 device 1");
}

TEST_F(CustomCallTest, BorrowsAThread) {
  ASSERT_TRUE(register_custom_call<borrows_a_thread>(*client_->plugin(), "test_borrows_a_thread"));
  const Launch launch = base::value_or_throw(prepare("test_borrows_a_thread").launch());
  EXPECT_THAT(testing::values<float>(launch.outputs[0][0]), ElementsAre(1, 2, 3, 4));
}

TEST_F(CustomCallTest, ErrorsAndExceptionsReachTheProgram) {
  const Plugin& plugin = *client_->plugin();
  ASSERT_TRUE(register_custom_call<misread>(plugin, "test_misread"));
  ASSERT_TRUE(register_custom_call<throws_error>(plugin, "test_throws_error"));
  ASSERT_TRUE(register_custom_call<throws_number>(plugin, "test_throws_number"));
  ASSERT_TRUE(register_custom_call<says_no>(plugin, "test_says_no"));
  ASSERT_TRUE(register_custom_call<asks_too_much>(plugin, "test_asks_too_much"));
  EXPECT_THAT(error("test_misread"), HasSubstr("attribute text must be an i64"));
  EXPECT_THAT(error("test_throws_error"), HasSubstr("thrown inside"));
  EXPECT_THAT(error("test_throws_number"), HasSubstr("not a std::exception"));
  EXPECT_THAT(error("test_says_no"), HasSubstr("no, not today"));
  EXPECT_THAT(error("test_asks_too_much"), HasSubstr("has no operand 9"));
}

TEST_F(CustomCallTest, TheFirstRegistrationStays) {
  ASSERT_TRUE(register_custom_call<says_no>(*client_->plugin(), "test_twice"));
  ASSERT_TRUE(register_custom_call<describe>(*client_->plugin(), "test_twice"));
  EXPECT_THAT(error("test_twice"), HasSubstr("no, not today"));
}

TEST_F(CustomCallTest, AnUnknownTargetDoesNotCompile) {
  CompileOptions options;
  options.argument_types = {type_};
  const auto program =
      client_->compile(testing::collective_program({type_}, {type_}, {"test_nobody", kAttributes}), options);
  ASSERT_FALSE(program);
  EXPECT_THAT(program.error().what(), HasSubstr("test_nobody"));
}

}  // namespace
}  // namespace sluice::pjrt
