// One process of an emulated pod, as the tests start several: sluice_pod_worker SCENARIO. What it is comes
// from the environment. Ends with 0 when all values are right; says on stdout what it was told instead of
// values.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <thread>

#include "sluice/base/clock.h"
#include "sluice/base/files/file.h"
#include "sluice/mesh/layout.h"
#include "sluice/pjrt/testing/programs.h"
#include "sluice/stablehlo/builder.h"
#include "sluice/stablehlo/partitions.h"
#include "tests/pjrt/programs.h"

namespace emulated_pod::testing {
namespace {

using namespace sluice;
using namespace sluice::pjrt;
using sluice::pjrt::testing::f32;

// The error that ends a scenario; main prints it.
[[noreturn]] void wrong(const std::string& what) { throw_error(Code::kInternal, "WRONG: " + what); }

struct Worker {
  std::shared_ptr<Client> client;
  int devices = 0;  // of the pod

  static Worker join() {
    ClientOptions options;
    options.cache_dir = "";
    Worker worker;
    worker.client = base::value_or_throw(
        Client::create(base::value_or_throw(Plugin::load(std::getenv("SLUICE_POD_PLUGIN"))), options));
    worker.devices = static_cast<int>(worker.client->global_devices().size());
    return worker;
  }
  int index() const { return client->process_index(); }
  // The place of a device in all().
  int place(int id) const {
    const auto ids = all();
    return static_cast<int>(std::find(ids.begin(), ids.end(), id) - ids.begin());
  }
  std::vector<int> all() const {
    std::vector<int> ids;
    for (const GlobalDevice& device : client->global_devices()) ids.push_back(device.id);
    return ids;
  }
};

// A program on some devices of the pod, and this process's part of it.
class Part {
 public:
  Part(const Worker& worker, const std::string& text, std::vector<int> ids,
       const std::vector<stablehlo::Type>& arguments)
      : client_(*worker.client), ids_(std::move(ids)), types_(arguments) {
    CompileOptions options;
    options.num_replicas = static_cast<int>(ids_.size());
    options.device_ids = ids_;
    options.argument_types = arguments;
    program_ = base::value_or_throw(client_.compile(text, options));
  }

  // The numbers of this process's replicas.
  std::vector<int> replicas() const {
    std::vector<int> numbers;
    for (const Device* device : program_->devices()) {
      numbers.push_back(static_cast<int>(std::find(ids_.begin(), ids_.end(), device->id()) - ids_.begin()));
    }
    return numbers;
  }
  // One argument: replica r's value i is value(r, i).
  std::vector<Buffer> put(const std::function<float(int, int)>& value) const {
    std::vector<Buffer> buffers;
    const std::vector<int> numbers = replicas();
    for (size_t r = 0; r < numbers.size(); ++r) {
      std::vector<float> host(static_cast<size_t>(types_[0].numel()));
      for (size_t i = 0; i < host.size(); ++i) host[i] = value(numbers[r], static_cast<int>(i));
      buffers.push_back(base::value_or_throw(client_.put(host.data(), types_[0], *program_->devices()[r])));
    }
    return buffers;
  }
  Launch run(std::vector<Buffer>& arguments) const {
    std::vector<std::vector<Buffer*>> lists;
    for (Buffer& buffer : arguments) lists.push_back({&buffer});
    return base::value_or_throw(program_->execute(lists));
  }

 private:
  Client& client_;
  std::vector<int> ids_;
  std::vector<stablehlo::Type> types_;
  std::shared_ptr<Executable> program_;
};

template <typename T>
void expect(const Buffer& buffer, const std::vector<T>& expected, const std::string& what) {
  const auto found = sluice::pjrt::testing::values<T>(buffer);
  if (found == expected) return;
  wrong(str(what, ": expected ", base::join(expected, " "), ", found ", base::join(found, " ")));
}

float input(int replica, int i) { return static_cast<float>(100 * replica + i); }

void check_collectives(const Worker& worker, const std::vector<int>& ids, bool channels) {
  const int n = static_cast<int>(ids.size());
  const Part part(worker, collectives_program(n, channels), ids, {f32({n})});
  auto arguments = part.put(input);
  const Launch launch = part.run(arguments);
  std::vector<float> sum(ids.size()), all;
  for (int r = 0; r < n; ++r) {
    for (int i = 0; i < n; ++i) {
      sum[static_cast<size_t>(i)] += input(r, i);
      all.push_back(input(r, i));
    }
  }
  const std::vector<int> replicas = part.replicas();
  for (size_t local = 0; local < replicas.size(); ++local) {
    const int r = replicas[local];
    std::vector<float> before(ids.size());
    for (int i = 0; i < n; ++i) before[static_cast<size_t>(i)] = input((r + n - 1) % n, i);
    const std::string where = str(" of replica ", r, " of ", n);
    expect<float>(launch.outputs[0][local], sum, "all_reduce" + where);
    expect<float>(launch.outputs[1][local], all, "all_gather" + where);
    expect<float>(launch.outputs[2][local], {sum[static_cast<size_t>(r)]}, "reduce_scatter" + where);
    expect<float>(launch.outputs[3][local], before, "collective_permute" + where);
    expect<uint32_t>(launch.outputs[4][local], {static_cast<uint32_t>(r)}, "replica_id" + where);
  }
}

void collectives(const Worker& worker) {
  for (const bool channels : {false, true}) check_collectives(worker, worker.all(), channels);
}

// Programs on some devices, in another order; processes that have none of them do not take part.
void subsets(const Worker& worker) {
  std::vector<int> backwards = worker.all(), every_second, own;
  std::reverse(backwards.begin(), backwards.end());
  for (size_t i = 1; i < backwards.size(); i += 2) every_second.push_back(worker.all()[i]);
  std::swap(every_second.front(), every_second.back());
  for (const Device* device : worker.client->devices()) own.push_back(device->id());
  for (const auto& ids : {own, backwards, every_second, own}) check_collectives(worker, ids, false);
}

// A host value of small whole numbers, whose sums and products are exact.
std::vector<float> whole_numbers(int64_t count, int64_t times) {
  std::vector<float> host(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) host[static_cast<size_t>(i)] = static_cast<float>(i * times % 7 - 3);
  return host;
}

// The block of a device of the mesh, of a row-major matrix.
std::vector<float> block_of(const std::vector<float>& whole, const std::vector<int64_t>& dims,
                            const Layout& layout, const Mesh& mesh, int device) {
  const std::vector<int64_t> start = layout.shard_start(mesh, dims, device);
  const std::vector<int64_t> size = layout.shard_dims(mesh, dims);
  std::vector<float> block;
  for (int64_t row = start[0]; row < start[0] + size[0]; ++row)
    for (int64_t column = start[1]; column < start[1] + size[1]; ++column)
      block.push_back(whole[static_cast<size_t>(row * dims[1] + column)]);
  return block;
}

// x [2n, 2n] with its rows over all n devices times w [2n, 3] with its rows over the devices of a process:
// once by rows, once whole. Every device must get its block of the whole product.
void partitions(const Worker& worker) {
  const int n = worker.devices, local = static_cast<int>(worker.client->devices().size());
  const Mesh mesh({{"data", n / local}, {"fsdp", local}});
  const std::vector<int64_t> x_dims = {2 * n, 2 * n}, w_dims = {2 * n, 3}, y_dims = {2 * n, 3};
  const std::vector<Layout> arguments = {batch_layout(2), Layout::along(2, 0, {"fsdp"}, 1)};
  const std::vector<Layout> results = {batch_layout(2), Layout::replicated(2)};
  const std::vector<float> x = whole_numbers(2 * n * 2 * n, 5), w = whole_numbers(2 * n * 3, 4);
  std::vector<float> y(static_cast<size_t>(2 * n * 3));
  for (size_t i = 0; i < y.size(); ++i)
    for (size_t k = 0; k < static_cast<size_t>(2 * n); ++k)
      y[i] += x[i / 3 * static_cast<size_t>(2 * n) + k] * w[k * 3 + i % 3];

  stablehlo::Builder b;
  const stablehlo::Value left = b.parameter(f32(x_dims)), right = b.parameter(f32(w_dims));
  const stablehlo::Value product = b.dot_general(left, right, {{}, {}, {1}, {0}});
  const stablehlo::Value both[] = {product, product};
  CompileOptions options;
  options.num_partitions = n;
  options.device_ids = worker.all();
  options.argument_types = {f32(arguments[0].shard_dims(mesh, x_dims)),
                            f32(arguments[1].shard_dims(mesh, w_dims))};
  options.output_types = {f32(results[0].shard_dims(mesh, y_dims)), f32(y_dims)};
  const auto program = base::value_or_throw(worker.client->compile(
      stablehlo::with_layouts(b.finish(both, {}), {mesh, arguments, results}), options));

  std::vector<Buffer> buffers;
  buffers.reserve(static_cast<size_t>(2 * local));
  std::vector<std::vector<Buffer*>> lists;
  for (const Device* device : program->devices()) {
    lists.emplace_back();
    for (size_t a = 0; a < 2; ++a) {
      const std::vector<float> block =
          block_of(a == 0 ? x : w, a == 0 ? x_dims : w_dims, arguments[a], mesh, worker.place(device->id()));
      buffers.push_back(base::value_or_throw(
          worker.client->put(block.data(), options.argument_types[a], *worker.client->device(device->id()))));
      lists.back().push_back(&buffers.back());
    }
  }
  const Launch launch = base::value_or_throw(program->execute(lists));
  for (size_t d = 0; d < program->devices().size(); ++d) {
    const int id = program->devices()[d]->id();
    const std::string where = str(" on device ", id, " of ", n);
    expect<float>(launch.outputs[0][d], block_of(y, y_dims, results[0], mesh, worker.place(id)),
                  "the rows" + where);
    expect<float>(launch.outputs[1][d], y, "the whole product" + where);
  }
}

// Each launch on the results of the one before, none waited for.
void chain(const Worker& worker) {
  constexpr int kLaunches = 200;
  const Part part(worker, mean_program(worker.devices, 4, "", worker.devices), worker.all(), {f32({4})});
  auto values = part.put(input);
  const base::Stopwatch watch;
  for (int i = 0; i < kLaunches; ++i) {
    auto launch = part.run(values);
    values = std::move(launch.outputs[0]);
  }
  const double sent = watch.seconds();
  const float mean = 50.0f * static_cast<float>(worker.devices - 1);
  for (const Buffer& value : values) expect<float>(value, {mean, mean + 1, mean + 2, mean + 3}, "the mean");
  std::printf("%d launches of %d replicas: sent in %.1f us each, done in %.1f us each\n", kLaunches,
              worker.devices, 1e6 * sent / kLaunches, 1e6 * watch.seconds() / kLaunches);
}

// The same in the memory of the argument.
void donation(const Worker& worker) {
  const Part part(worker, mean_program(worker.devices, 4, "{tf.aliasing_output = 0 : i32}", worker.devices),
                  worker.all(), {f32({4})});
  auto values = part.put(input);
  for (int i = 0; i < 20; ++i) {
    // Read while the next launch takes the memory over.
    std::vector<float> first(4);
    const Event read = base::value_or_throw(values[0].to_host(first.data(), 16));
    auto launch = part.run(values);
    if (!values[0].deleted()) wrong("the argument was not taken over");
    base::value_or_throw(read.await());
    const int r = part.replicas()[0];
    const float expected = i == 0 ? input(r, 1) : 50.0f * static_cast<float>(worker.devices - 1) + 1;
    if (first[1] != expected) wrong(str("read ", first[1], " beside a launch, expected ", expected));
    values = std::move(launch.outputs[0]);
  }
  const float mean = 50.0f * static_cast<float>(worker.devices - 1);
  for (const Buffer& value : values) expect<float>(value, {mean, mean + 1, mean + 2, mean + 3}, "the mean");
}

// A launch in which this process does something else than the others; then one on its own devices.
void run_one(const Worker& worker, const char* name) {
  const Part part(worker, mean_program(worker.devices, 4, "", 1, name), worker.all(), {f32({4})});
  auto values = part.put(input);
  auto launch = part.run(values);
  auto after = part.run(launch.outputs[0]);  // fails as well, without waiting for anybody
  const auto status = launch.done[0].await();
  if (!status) {
    if (after.done[0].await()) wrong("a launch on what has failed went well");
    throw_error(status.error());
  }
  base::value_or_throw(after.done[0].await());
}

void other_program(const Worker& worker) { run_one(worker, worker.index() == 1 ? "evaluate" : "train"); }

void die(const Worker& worker) {
  check_collectives(worker, worker.all(), false);
  if (worker.index() == 1) ::_exit(9);
  run_one(worker, "train");
}

void first_dies(const Worker& worker) {
  check_collectives(worker, worker.all(), false);
  if (worker.index() == 0) ::_exit(9);
  run_one(worker, "train");
}

void leave(const Worker& worker) {
  check_collectives(worker, worker.all(), false);
  if (worker.index() != 1) run_one(worker, "train");
}

// What one worker tells another: a file in the pod's folder.
std::string mark_of(const std::string& what) { return str(std::getenv("EMULATED_POD_DIR"), "/", what); }
void tell(const std::string& what) { base::value_or_throw(base::write_file_atomically(mark_of(what), "")); }
void await_told(const std::string& what) {
  while (!base::path_exists(mark_of(what))) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// Worker 1 comes when worker 0 has told SLUICE_POD_LATE: that it "launched", or that it "gave up" waiting.
void late(const Worker& worker) {
  const Part part(worker, mean_program(worker.devices, 4), worker.all(), {f32({4})});
  if (worker.index() == 1) await_told(std::getenv("SLUICE_POD_LATE"));
  auto values = part.put(input);
  const auto launch = part.run(values);
  if (worker.index() == 0) tell("launched");
  const auto status = launch.done[0].await();
  if (worker.index() == 0 && !status) tell("gave up");
  base::value_or_throw(status);
}

// Worker 0 leaves at once. The others still compute by themselves when they know it.
void alone(const Worker& worker) {
  if (worker.index() == 0) return;
  try {
    run_one(worker, "train");
    wrong("a launch with a worker that has left went well");
  } catch (const Error& error) {
    if (error.code() != Code::kUnavailable) throw;
  }
  std::vector<int> own;
  for (const Device* device : worker.client->devices()) own.push_back(device->id());
  check_collectives(worker, own, false);
}

// All end with their clients open, worker 0 before the others have done with the pod.
void end_open(const Worker& worker) {
  static const auto& kept = *new Worker(worker);
  if (worker.index() == 0) return;
  alone(kept);
  run_one(kept, "train");
}

void join_only(const Worker& worker) {
  std::printf("process %d: %zu of %d devices, the first is %d\n", worker.index(),
              worker.client->devices().size(), worker.devices, worker.client->devices()[0]->id());
}

int run(const std::string& scenario) {
  const std::map<std::string, void (*)(const Worker&)> known = {
      {"alone", alone},
      {"end-open", end_open},
      {"chain", chain},
      {"collectives", collectives},
      {"die", die},
      {"donation", donation},
      {"late", late},
      {"first-dies", first_dies},
      {"join", join_only},
      {"leave", leave},
      {"subsets", subsets},
      {"other-program", other_program},
      {"partitions", partitions},
  };
  const auto found = known.find(scenario);
  if (found == known.end()) return 2;
  try {
    found->second(Worker::join());
    // A second pod in the same place.
    if (scenario == "join") found->second(Worker::join());
  } catch (const Error& error) {
    std::printf("%s: %s\n", code_name(error.code()), error.what());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace emulated_pod::testing

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  return emulated_pod::testing::run(argv[1]);
}
