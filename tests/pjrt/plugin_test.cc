// What one process sees of the emulated pod, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <thread>

#include "sluice/base/files/file.h"
#include "sluice/base/span.h"
#include "sluice/pjrt/program/compile_options.h"
#include "sluice/pjrt/testing/programs.h"
#include "sluice/profile/capture.h"
#include "tests/pjrt/processes.h"
#include "tests/pjrt/programs.h"
#include "tests/pjrt/raw_client.h"

namespace emulated_pod::testing {
namespace {

using sluice::Code;
using sluice::base::value_or_throw;
using sluice::pjrt::Client;
using sluice::pjrt::ClientOptions;
using sluice::pjrt::Plugin;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A process alone with so many devices; more variables may be given.
class Alone {
 public:
  explicit Alone(int devices, Environment variables = {})
      : environment_(with(std::move(variables), devices)), client(value_or_throw(RawClient::create())) {}

 private:
  static Environment with(Environment variables, int devices) {
    variables["EMULATED_POD_DEVICES"] = std::to_string(devices);
    return variables;
  }
  ScopedEnvironment environment_;

 public:
  std::unique_ptr<RawClient> client;
};

std::string on(const std::vector<int>& ids) { return sluice::pjrt::serialize_compile_options(ids); }

template <typename T>
void expect_refused(const Result<T>& result, Code code, const std::string& text) {
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), code) << result.error().what();
  EXPECT_THAT(result.error().what(), HasSubstr(text));
}

// Its devices are left out, with one line, and the host's part is there.
TEST(PodPlugin, AProfilerOfAnotherVersion) {
  const Environment variables = {{"EMULATED_POD_PROFILER", "48"}};
  const ScopedEnvironment environment(variables);
  const auto folder = value_or_throw(sluice::base::TemporaryDirectory::create());
  const std::string copy = folder.path("libanother.so");  // a plugin is loaded once, with what its table was
  std::filesystem::copy_file(SLUICE_POD_PLUGIN_PATH, copy);
  const auto plugin = value_or_throw(Plugin::load(copy));
  ::testing::internal::CaptureStderr();
  auto capture = value_or_throw(sluice::profile::Capture::start(plugin));
  { const sluice::base::Span span("ours"); }
  const auto captured = capture.stop();
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("its table has 48 bytes, at least 80 were expected"));
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  EXPECT_EQ(captured.device, "");
  const auto files = value_or_throw(sluice::profile::files_of(captured, {.host = "h"}));
  EXPECT_THAT(files.at(0).bytes, HasSubstr("ours"));
}

TEST(PodPlugin, LooksLikeATpu) {
  const ScopedEnvironment environment({{"EMULATED_POD_DEVICES", "8"}, {"EMULATED_POD_MEMORY", "1000000"}});
  ClientOptions options;
  options.cache_dir = "";
  const auto plugin = value_or_throw(Plugin::load(SLUICE_POD_PLUGIN_PATH));
  const auto client = value_or_throw(Client::create(plugin, options));
  EXPECT_EQ(plugin->attributes().count("stablehlo_current_version"), 1u);
  EXPECT_EQ(client->platform_name(), "tpu");
  EXPECT_EQ(client->platform_version(), "emulated pod");
  EXPECT_EQ(client->process_index(), 0);
  ASSERT_EQ(client->devices().size(), 8u);
  const auto& last = *client->devices()[7];
  EXPECT_EQ(last.id(), 7);
  EXPECT_EQ(last.local_hardware_id(), 7);
  EXPECT_EQ(last.kind(), "TPU v3");
  EXPECT_EQ(last.attributes().at("coords"), "[1, 1, 0]");
  EXPECT_EQ(last.attributes().at("core_on_chip"), "1");
  EXPECT_EQ(last.memory()->limit, 1000000);
}

TEST(PodPlugin, RunsInOneProcess) {
  const Alone alone(8);
  const auto program =
      value_or_throw(alone.client->compile(mean_program(8, 4), on({0, 1, 2, 3, 4, 5, 6, 7})));
  RawClient::Buffers arguments;
  for (auto* device : alone.client->local_devices())
    arguments.push_back(value_or_throw(alone.client->put({1, 2, 3, 4}, device)));
  const auto outputs = value_or_throw(alone.client->execute(program, arguments));
  EXPECT_THAT(value_or_throw(alone.client->read(outputs[5], 4)), ElementsAre(8, 16, 24, 32));
}

// The options of a program that leaves the choice of devices to the plugin.
TEST(PodPlugin, TakesTheFirstDevices) {
  const Alone alone(4);
  const auto program =
      value_or_throw(alone.client->compile(mean_program(2, 1), sluice::pjrt::serialize_compile_options(2)));
  const auto devices = alone.client->devices();
  const auto outputs =
      value_or_throw(alone.client->execute(program, {value_or_throw(alone.client->put({3}, devices[0])),
                                                     value_or_throw(alone.client->put({4}, devices[1]))}));
  EXPECT_THAT(value_or_throw(alone.client->read(outputs[1], 1)), ElementsAre(7));
}

TEST(PodPlugin, RefusesPlacesThatAreNotThere) {
  const Alone alone(4);
  const std::string text = mean_program(2, 1);
  const auto refused = [&](const std::string& options, const std::string& why) {
    expect_refused(alone.client->compile(text, options), Code::kInvalidArgument, why);
  };
  refused(on({0, 9}), "No matching device found for device_id 9");
  refused(on({2, 2}), "gives device 2 to replicas 0 and 1");
  refused(on({0, 1, 2, 3, 4}), "Invalid (replica_count, computation_count) -> (5, 1)");
  // Two replicas with one id; no counts at all; something else.
  refused(std::string("\x1a\x0e\x20\x02\x28\x01\x4a\x08\x08\x02\x10\x01\x1a\x02\x0a\x00", 16),
          "0 device ids for 2");
  refused("", "Requested total cores: 0");
  refused("\x1a\x7f", "failed to deserialize CompileOptionsProto");
  expect_refused(alone.client->compile(text, on({0, 1}), "MLIR"), Code::kInvalidArgument,
                 "Unknown program format 'MLIR'.");
  expect_refused(alone.client->compile("this is not a program", on({0})), Code::kUnknown, "this");
}

TEST(PodPlugin, RefusesArgumentsThatDoNotFit) {
  const Alone alone(2);
  RawClient& client = *alone.client;
  const auto devices = client.devices();
  const auto program = value_or_throw(client.compile(mean_program(2, 4), on({0, 1})));
  auto* first = value_or_throw(client.put({1, 2, 3, 4}, devices[0]));
  auto* second = value_or_throw(client.put({1, 2, 3, 4}, devices[1]));
  auto* longer = value_or_throw(client.put({1, 2, 3, 4, 5}, devices[1]));
  const auto refused = [&](const RawClient::Buffers& arguments, const std::string& why, size_t each = 1) {
    expect_refused(client.execute(program, arguments, each), Code::kInvalidArgument, why);
  };
  refused({first}, "1 argument lists when local device count is 2");
  refused({first, first, second, second}, "supplied 2 buffers but compiled program expected 1", 2);
  refused({second, first}, "argument 0 to replica 0 is on device 1, but replica is assigned to device 0");
  refused({first, longer}, "expected parameter 0 of size 16 but got buffer with incompatible size 20");
  auto remove = c::make<c::PJRT_Buffer_Delete_Args>();
  remove.buffer = second;
  value_or_throw(pod_api().call(remove));
  refused({first, second}, "buffer has been deleted or donated");
  EXPECT_TRUE(client.deleted(second));
  expect_refused(client.read(second, 4), Code::kInvalidArgument, "buffer has been deleted or donated");
  expect_refused(client.read(first, 3), Code::kInvalidArgument, "invalid dst_size");
}

TEST(PodPlugin, TakesArgumentsOver) {
  const Alone alone(1);
  RawClient& client = *alone.client;
  auto* device = client.devices()[0];
  const std::string text =
      sluice::pjrt::testing::add_program("tensor<2xf32>", "{tf.aliasing_output = 0 : i32}");
  auto program = value_or_throw(client.compile(text, on({0})));
  // As it was, and as it is read again.
  for (int i = 0; i < 2; ++i) {
    auto* x = value_or_throw(client.put({1, 2}, device));
    auto* y = value_or_throw(client.put({10, 20}, device));
    expect_refused(client.execute(program, {x, x}, 2), Code::kInvalidArgument,
                   "previously donated in the same call");
    auto kept = value_or_throw(client.execute(program, {x, y}, 2, {0}));
    EXPECT_FALSE(client.deleted(x));
    auto taken = value_or_throw(client.execute(program, {x, y}, 2));
    EXPECT_TRUE(client.deleted(x));
    EXPECT_FALSE(client.deleted(y));
    EXPECT_THAT(value_or_throw(client.read(kept[0], 2)), ElementsAre(11, 22));
    EXPECT_THAT(value_or_throw(client.read(taken[0], 2)), ElementsAre(11, 22));
    expect_refused(client.execute(program, {x, y}, 2), Code::kInvalidArgument, "deleted or donated");
    program = value_or_throw(client.load(value_or_throw(client.serialize(program))));
  }
  expect_refused(client.load("nonsense"), Code::kInvalidArgument, "expected a program that the emulated pod");
}

// An argument that may go, but that no output can take.
TEST(PodPlugin, ConsumesDonors) {
  const Alone alone(1);
  RawClient& client = *alone.client;
  const auto program = value_or_throw(client.compile(
      "module @first { func.func @main(%x: tensor<4xf32> {jax.buffer_donor = true}) -> tensor<1xf32> {\n"
      "%y = \"stablehlo.slice\"(%x) {start_indices = array<i64: 0>, limit_indices = array<i64: 1>, strides = "
      "array<i64: 1>} : (tensor<4xf32>) -> tensor<1xf32>\n\"func.return\"(%y) : (tensor<1xf32>) -> () } }",
      on({0})));
  auto* x = value_or_throw(client.put({5, 6, 7, 8}, client.devices()[0]));
  const auto outputs = value_or_throw(client.execute(program, {x}));
  EXPECT_TRUE(client.deleted(x));
  EXPECT_THAT(value_or_throw(client.read(outputs[0], 1)), ElementsAre(5));
}

TEST(PodPlugin, CountsMemory) {
  const Alone alone(2, {{"EMULATED_POD_MEMORY", "10000"}});
  RawClient& client = *alone.client;
  const auto devices = client.devices();
  const auto program = value_or_throw(client.compile(mean_program(2, 1000), on({0, 1})));
  const std::vector<float> values(1000);
  const RawClient::Buffers arguments = {value_or_throw(client.put(values, devices[0])),
                                        value_or_throw(client.put(values, devices[1]))};
  EXPECT_EQ(value_or_throw(client.memory(devices[0])).bytes_in_use, 4000);
  auto first = client.execute(program, arguments);
  // The compiler may want temporary memory for the sum.
  const auto stats = value_or_throw(client.memory(devices[1]));
  EXPECT_EQ(stats.bytes_limit, 10000);
  if (first) {
    EXPECT_EQ(stats.bytes_in_use, 8000);
    EXPECT_GE(stats.peak_bytes_in_use, 8000);
  }
  expect_refused(client.execute(program, arguments), Code::kResourceExhausted,
                 "Error allocating device buffer: Attempting to allocate ");
  expect_refused(client.put(std::vector<float>(2000), devices[0]), Code::kResourceExhausted,
                 "Out of memory allocating 8000 bytes.");
}

// More than one piece of shared memory, and pieces that come and go.
TEST(PodPlugin, HoldsManyAndLargeValues) {
  const Alone alone(1);
  RawClient& client = *alone.client;
  auto* device = client.devices()[0];
  const auto remove = [](c::PJRT_Buffer* buffer) {
    auto args = c::make<c::PJRT_Buffer_Delete_Args>();
    args.buffer = buffer;
    value_or_throw(pod_api().call(args));
  };
  constexpr size_t kLarge = 10 << 20;
  const auto program = value_or_throw(client.compile(mean_program(1, kLarge), on({0})));
  RawClient::Buffers small;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 500; ++i)
      small.push_back(
          value_or_throw(client.put(std::vector<float>(static_cast<size_t>(i % 7), 3.0f), device)));
    auto* large =
        value_or_throw(client.put(std::vector<float>(kLarge, 1.0f + static_cast<float>(round)), device));
    auto* result = value_or_throw(client.execute(program, {large}))[0];
    EXPECT_EQ(value_or_throw(client.read(result, kLarge)).back(), 1.0f + static_cast<float>(round));
    remove(large);
    if (round > 0) remove(result);
    for (size_t i = 0; i < small.size(); i += 2) remove(small[i]);
  }
  for (size_t i = 1; i < small.size(); i += 2) {
    const size_t size = i % 500 % 7;
    EXPECT_EQ(value_or_throw(client.read(small[i], size)), std::vector<float>(size, 3.0f));
  }
}

// What fails while it runs is said when its value is asked for, also of what was launched on it.
TEST(PodPlugin, ErrorsOfARunStayWithItsValues) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer leaves no addresses for so large an output";
#endif
  const Alone alone(1);
  RawClient& client = *alone.client;
  const auto huge = value_or_throw(client.compile(
      "module @huge { func.func @main(%x: tensor<1xf32>) -> tensor<1x1000000000000xf32> {\n"
      "%y = \"stablehlo.broadcast_in_dim\"(%x) {broadcast_dimensions = array<i64: 0>} : (tensor<1xf32>) -> "
      "tensor<1x1000000000000xf32>\n\"func.return\"(%y) : (tensor<1x1000000000000xf32>) -> () } }",
      on({0})));
  const auto next = value_or_throw(
      client.compile("module @next { func.func @main(%x: tensor<1x1000000000000xf32>) -> tensor<1xf32> {\n"
                     "%y = \"stablehlo.slice\"(%x) {start_indices = array<i64: 0, 0>, limit_indices = "
                     "array<i64: 1, 1>, strides = "
                     "array<i64: 1, 1>} : (tensor<1x1000000000000xf32>) -> tensor<1x1xf32>\n"
                     "%z = \"stablehlo.reshape\"(%y) : (tensor<1x1xf32>) -> tensor<1xf32>\n"
                     "\"func.return\"(%z) : (tensor<1xf32>) -> () } }",
                     on({0})));
  auto* x = value_or_throw(client.put({1}, client.devices()[0]));
  const auto first = value_or_throw(client.execute(huge, {x}));
  const auto second = value_or_throw(client.execute(next, first));
  expect_refused(client.read(second[0], 1), Code::kResourceExhausted,
                 "Out of memory allocating 4000000000000 bytes");
}

TEST(PodPlugin, RefusesOptionsOfOthers) {
  expect_refused(RawClient::create({{"node_id", int64_t{0}}}), Code::kInvalidArgument,
                 "Unexpected option name passed to PJRT_Client_Create: node_id");
  const ScopedEnvironment environment(Environment{{"EMULATED_POD_PLATFORM", "cuda"}});
  expect_refused(RawClient::create({{"cpu_device_count", int64_t{2}}}), Code::kInvalidArgument,
                 "Unexpected option name passed to PJRT_Client_Create: cpu_device_count");
  expect_refused(RawClient::create({{"node_id", std::string("0")}}), Code::kInvalidArgument,
                 "has type index 0 but expected type index is 1");
  expect_refused(RawClient::create({{"node_id", int64_t{2}}, {"num_nodes", int64_t{2}}}),
                 Code::kInvalidArgument, "node_id is 2 and num_nodes is 2");
  expect_refused(RawClient::create({{"allocator", std::string("mine")}}), Code::kUnimplemented,
                 "Allocator mine not supported");
  expect_refused(RawClient::create({{"visible_devices", std::vector<int64_t>{8}}}), Code::kInvalidArgument,
                 "names device 8, but the host has 8");
  expect_refused(RawClient::create({{"num_nodes", int64_t{2}}}), Code::kInvalidArgument,
                 "num_nodes is set to 2, but kv_get_callback is null");
}

TEST(PodPlugin, RefusesEnvironmentsThatDoNotFit) {
  const auto refused = [](const Environment& variables, const std::string& why) {
    const ScopedEnvironment environment(variables);
    expect_refused(RawClient::create(), Code::kInvalidArgument, why);
  };
  refused({{"EMULATED_POD_PLATFORM", "npu"}}, "expected tpu or cuda, found 'npu'");
  refused({{"EMULATED_POD_DEVICES", "eight"}}, "EMULATED_POD_DEVICES: expected a whole number");
  refused({{"TPU_WORKER_HOSTNAMES", "a,b"}}, "but TPU_WORKER_ID is not set");
  refused({{"TPU_WORKER_HOSTNAMES", "a,b"}, {"TPU_WORKER_ID", "2"}}, "TPU_WORKER_ID is 2, but");
  refused({{"CLOUD_TPU_TASK_ID", "0"}}, "one process per chip needs all of");
  Environment per_chip = {{"CLOUD_TPU_TASK_ID", "1"},
                          {"TPU_PROCESS_BOUNDS", "2,1,1"},
                          {"TPU_CHIPS_PER_PROCESS_BOUNDS", "1,1,1"},
                          {"TPU_VISIBLE_CHIPS", "1"},
                          {"TPU_PROCESS_ADDRESSES", "localhost:8476,localhost:8477"},
                          {"TPU_PROCESS_PORT", "8477"}};
  const auto changed = [&](const std::string& name, const std::string& value, const std::string& why) {
    Environment variables = per_chip;
    variables[name] = value;
    refused(variables, why);
  };
  changed("TPU_PROCESS_BOUNDS", "2,2,1", "is for 4 processes, but TPU_PROCESS_ADDRESSES has 2 addresses");
  changed("TPU_PROCESS_BOUNDS", "2,1", "TPU_PROCESS_BOUNDS must be 3 numbers, found 2");
  changed("CLOUD_TPU_TASK_ID", "2", "CLOUD_TPU_TASK_ID is 2, but TPU_PROCESS_BOUNDS is for 2");
  changed("TPU_PROCESS_PORT", "8476", "TPU_PROCESS_PORT is 8476, but this process's address");
  changed("TPU_VISIBLE_CHIPS", "0,1", "is for 1 chips a process, but TPU_VISIBLE_CHIPS names 2");
  const ScopedEnvironment environment(per_chip);
  expect_refused(RawClient::create(), Code::kFailedPrecondition, "set EMULATED_POD_DIR");
}

// A key-value store as a caller provides it, for several nodes in one process.
class Store {
 public:
  static c::PJRT_Error* get(c::PJRT_KeyValueGetCallback_Args* args) {
    Store& store = *static_cast<Store*>(args->user_arg);
    std::unique_lock lock(store.mutex_);
    const std::string key(args->key, args->key_size);
    if (store.changed_.wait_for(lock, std::chrono::milliseconds(args->timeout_in_ms),
                                [&] { return store.values_.count(key) > 0; }))
      return give(store.values_[key], args);
    const std::string text = "no key " + key;
    return (*args->callback_error)(static_cast<int>(Code::kDeadlineExceeded), text.data(), text.size());
  }
  static c::PJRT_Error* try_get(c::PJRT_KeyValueTryGetCallback_Args* args) {
    Store& store = *static_cast<Store*>(args->user_arg);
    std::lock_guard lock(store.mutex_);
    ++store.tries;
    const auto found = store.values_.find(std::string(args->key, args->key_size));
    if (found != store.values_.end()) return give(found->second, args);
    return (*args->callback_error)(static_cast<int>(Code::kNotFound), "none", 4);
  }
  static c::PJRT_Error* put(c::PJRT_KeyValuePutCallback_Args* args) {
    Store& store = *static_cast<Store*>(args->user_arg);
    std::lock_guard lock(store.mutex_);
    store.values_[std::string(args->key, args->key_size)] = std::string(args->value, args->value_size);
    store.changed_.notify_all();
    return nullptr;
  }
  void offer(c::PJRT_Client_Create_Args& args, bool with_try_get) {
    args.kv_get_callback = &get;
    args.kv_put_callback = &put;
    args.kv_get_user_arg = args.kv_put_user_arg = args.kv_try_get_user_arg = this;
    if (with_try_get) args.kv_try_get_callback = &try_get;
  }

  int tries = 0;

 private:
  static c::PJRT_Error* give(const std::string& value, auto* args) {
    args->value = new char[value.size()];
    value.copy(args->value, value.size());
    args->value_size = value.size();
    args->value_deleter_callback = [](char* value) { delete[] value; };
    return nullptr;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
};

// Two nodes with one GPU each: the second sees only the second one of its host.
void meet_and_sum(bool try_get) {
  const TemporaryFolder folder;
  const ScopedEnvironment environment({{"EMULATED_POD_PLATFORM", "cuda"},
                                       {"EMULATED_POD_DIR", folder.path()},
                                       {"EMULATED_POD_DEVICES", "2"},
                                       {"EMULATED_POD_KV_TRY_GET", try_get ? "1" : "0"}});
  Store store;
  std::vector<std::string> errors(2);
  const auto node = [&](int64_t index) {
    try {
      const sluice::pjrt::Options options = {{"node_id", index},
                                             {"num_nodes", int64_t{2}},
                                             {"visible_devices", std::vector<int64_t>{index}},
                                             {"memory_fraction", 0.9f},
                                             {"preallocate", false}};
      const auto client =
          value_or_throw(RawClient::create(options, [&](auto& args) { store.offer(args, try_get); }));
      ASSERT_EQ(client->devices().size(), 2u);
      ASSERT_EQ(client->local_devices().size(), 1u);
      EXPECT_EQ(client->process_index(), index);
      auto* own = client->local_devices()[0];
      EXPECT_EQ(own, client->devices()[static_cast<size_t>(index)]);
      auto hardware = c::make<c::PJRT_Device_LocalHardwareId_Args>();
      hardware.device = own;
      value_or_throw(pod_api().call(hardware));
      EXPECT_EQ(hardware.local_hardware_id, index);
      auto* other = client->devices()[static_cast<size_t>(1 - index)];
      expect_refused(client->put({1}, other), Code::kInvalidArgument,
                     "Cannot copy array to non-addressable device");
      expect_refused(client->memory(other), Code::kFailedPrecondition, "only addressable devices");
      const auto elsewhere =
          value_or_throw(client->compile(mean_program(1, 1), on({static_cast<int>(1 - index)})));
      auto* value = value_or_throw(client->put({static_cast<float>(index + 1)}, own));
      expect_refused(client->execute(elsewhere, {value}), Code::kInvalidArgument,
                     "none of which is addressable in process");
      const auto sum = value_or_throw(client->compile(mean_program(2, 1), on({1, 0})));
      const auto outputs = value_or_throw(client->execute(sum, {value}));
      EXPECT_THAT(value_or_throw(client->read(outputs[0], 1)), ElementsAre(3));
    } catch (const sluice::Error& error) {
      errors[static_cast<size_t>(index)] = error.what();
    }
  };
  std::thread second(node, 1);
  node(0);
  second.join();
  EXPECT_THAT(errors, ElementsAre("", ""));
  EXPECT_EQ(store.tries > 0, try_get);
  EXPECT_TRUE(folder.names().empty());
}

TEST(PodPlugin, GpusOfTwoNodes) { meet_and_sum(true); }
TEST(PodPlugin, GpusOfTwoNodesWithoutTryGet) { meet_and_sum(false); }

TEST(PodPlugin, NamesTheNodeThatDoesNotCome) {
  const TemporaryFolder folder;
  const ScopedEnvironment environment({{"EMULATED_POD_PLATFORM", "cuda"},
                                       {"EMULATED_POD_DIR", folder.path()},
                                       {"EMULATED_POD_TIMEOUT", "1"}});
  Store store;
  expect_refused(RawClient::create({{"num_nodes", int64_t{2}}}, [&](auto& args) { store.offer(args, true); }),
                 Code::kDeadlineExceeded, "node 0 waited 1 s for node 1 of 2, which did not come");
  expect_refused(
      RawClient::create({{"num_nodes", int64_t{2}}}, [&](auto& args) { store.offer(args, false); }),
      Code::kInvalidArgument, "kv_try_get_callback is null");
}

// What a caller with older headers passes.
TEST(PodPlugin, RefusesStructsThatAreTooSmall) {
  auto args = c::make<c::PJRT_Client_Create_Args>();
  args.struct_size -= 8;
  expect_refused(pod_api().call(args), Code::kInvalidArgument,
                 "Unexpected PJRT_Client_Create_Args size: expected 88, got 80");
}

}  // namespace
}  // namespace emulated_pod::testing
