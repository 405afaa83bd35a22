// What the host's collectives cost, with the shapes of ResNet-50's gradients (161 tensors, 25.6 million f32).
//
//   bench_collectives [rounds]
//
// Prints JSON with medians in milliseconds. "local": one collective of 4 replicas against two threads that
// copy as many bytes. "processes": one collective of 2 processes with 2 replicas each (through
// shared memory, and over sockets) against Gloo alone
// between the 2 processes, each with one set of the tensors. Each pair is measured in turns.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>
#include <thread>

#include "bench/gloo_alone.h"
#include "sluice/base/clock.h"
#include "sluice/collectives/host_collectives.h"
#include "sluice/pjrt/client.h"
#include "sluice/replica/transport/socket_transport.h"
#include "sluice/replica/transport/transport.h"
#include "sluice/stablehlo/builder.h"

namespace sluice {
namespace {

using stablehlo::Dims;
using stablehlo::DType;
using Types = std::vector<stablehlo::Type>;

Types resnet50() {
  Types types;
  const auto convolution = [&](int64_t out, int64_t in, int64_t size) {
    types.push_back({DType::kF32, {out, in, size, size}});
    types.push_back({DType::kF32, {out}});
    types.push_back({DType::kF32, {out}});
  };
  convolution(64, 3, 7);
  int64_t in = 64, width = 64;
  for (const int blocks : {3, 4, 6, 3}) {
    for (int block = 0; block < blocks; ++block) {
      convolution(width, in, 1);
      convolution(width, width, 3);
      convolution(4 * width, width, 1);
      if (block == 0) convolution(4 * width, in, 1);
      in = 4 * width;
    }
    width *= 2;
  }
  types.push_back({DType::kF32, {1000, 2048}});
  types.push_back({DType::kF32, {1000}});
  return types;
}

size_t elements_of(const Types& types) {
  size_t total = 0;
  for (const auto& type : types) total += static_cast<size_t>(type.numel());
  return total;
}

// One all-reduce of all tensors in the memory of the arguments, on so many replicas of this process.
class Collective {
 public:
  Collective(const Types& types, int replicas, collectives::HostCollectivesConfig config) {
    const auto plugin = base::value_or_throw(pjrt::Plugin::load("cpu"));
    auto& host = collectives::HostCollectives::get();
    base::value_or_throw(host.install(*plugin));
    for (int r = 0; r < replicas; ++r) config.device_ids.push_back(r);
    base::value_or_throw(host.configure(config));
    pjrt::ClientOptions one;
    one.cpu_device_count = replicas;
    one.cache_dir = "";
    client_ = base::value_or_throw(pjrt::Client::create(plugin, one));
    stablehlo::Builder builder;
    stablehlo::Values parameters;
    std::vector<stablehlo::Donation> donations;
    for (size_t i = 0; i < types.size(); ++i) {
      parameters.push_back(builder.parameter(types[i]));
      donations.push_back({stablehlo::Donation::Kind::kAliasOutput, static_cast<int32_t>(i)});
    }
    const stablehlo::Values results =
        builder.custom_call("sluice_all_reduce", parameters, types,
                            {{"op", "sum"}, {"program", int64_t{1}}, {"site", int64_t{0}}});
    pjrt::CompileOptions options;
    options.num_replicas = replicas;
    options.argument_types = types;
    program_ = base::value_or_throw(client_->compile(builder.finish(results, donations, replicas), options));
    for (pjrt::Device* device : program_->devices()) {
      buffers_.emplace_back();
      for (const auto& type : types) {
        const std::string zeros(type.bytes(), '\0');
        buffers_.back().push_back(base::value_or_throw(client_->put(zeros.data(), type, *device)));
      }
    }
  }

  void run() {
    std::vector<std::vector<pjrt::Buffer*>> arguments;
    for (auto& row : buffers_) {
      arguments.emplace_back();
      for (pjrt::Buffer& buffer : row) arguments.back().push_back(&buffer);
    }
    pjrt::Launch launch = base::value_or_throw(program_->execute(arguments));
    for (const pjrt::Event& done : launch.done) base::value_or_throw(done.await());
    for (size_t i = 0; i < launch.outputs.size(); ++i) {
      for (size_t r = 0; r < buffers_.size(); ++r) buffers_[r][i] = std::move(launch.outputs[i][r]);
    }
  }

 private:
  std::shared_ptr<pjrt::Client> client_;
  std::shared_ptr<pjrt::Executable> program_;
  std::vector<std::vector<pjrt::Buffer>> buffers_;
};

double milliseconds(const std::function<void()>& work) {
  const base::Stopwatch watch;
  work();
  return watch.seconds() * 1000;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Medians of the two, measured in turns after two rounds for warming up.
nlohmann::json compare(int rounds, const std::string& yardstick, const std::function<void()>& collective,
                       const std::function<void()>& reference) {
  std::vector<double> ours, theirs;
  for (int i = -2; i < rounds; ++i) {
    const double a = milliseconds(collective), b = milliseconds(reference);
    if (i < 0) continue;
    ours.push_back(a);
    theirs.push_back(b);
  }
  const double a = median(ours), b = median(theirs);
  return {{"collective_ms", a}, {yardstick + "_ms", b}, {"ratio", a / b}, {"rounds", rounds}};
}

nlohmann::json local(int rounds) {
  constexpr int kReplicas = 4;
  const Types types = resnet50();
  Collective collective(types, kReplicas, {});
  const size_t half = kReplicas * elements_of(types) / 2;
  std::vector<float> from(2 * half, 1), to(2 * half, 2);
  const auto copy = [&](size_t start) { std::memcpy(&to[start], &from[start], half * sizeof(float)); };
  return compare(
      rounds, "two_threads_copying", [&] { collective.run(); },
      [&] {
        std::thread other(copy, 0);
        copy(half);
        other.join();
      });
}

nlohmann::json across(int rounds, const replica::Placement& placement, uint16_t gloo_port) {
  const Types types = resnet50();
  const auto processes = base::value_or_throw(replica::Processes::join(placement));
  const auto sockets = base::value_or_throw(replica::make_socket_transport(processes));
  bench::GlooAlone gloo(processes->index(), processes->count(), gloo_port);
  std::vector<std::vector<float>> tensors;
  std::vector<collectives::HostSpan> spans;
  for (const auto& type : types) tensors.emplace_back(static_cast<size_t>(type.numel()), 0);
  for (auto& tensor : tensors) spans.push_back({tensor.data(), tensor.size()});
  nlohmann::json report;
  for (const bool shared : {true, false}) {
    collectives::HostCollectivesConfig config;
    config.process_index = processes->index();
    config.processes = processes->count();
    config.transport = shared ? base::value_or_throw(replica::make_transport(processes)) : sockets;
    Collective collective(types, 2, config);
    report[shared ? "shared_memory" : "sockets"] = compare(
        rounds, "gloo_alone", [&] { collective.run(); }, [&] { gloo.sum(spans); });
  }
  return report;
}

int run(int rounds) {
  const int port = 20'000 + ::getpid() % 20'000;
  const auto gloo_port = static_cast<uint16_t>(port + 1);
  const std::string coordinator = base::str("127.0.0.1:", port);
  // Before anything has threads.
  const pid_t other = ::fork();
  if (other == 0) {
    (void)across(rounds, {1, 2, coordinator, "bench_collectives"}, gloo_port);
    ::_exit(0);
  }
  nlohmann::json report = {{"tensors", resnet50().size()}, {"elements", elements_of(resnet50())}};
  report["processes"] = across(rounds, {0, 2, coordinator, "bench_collectives"}, gloo_port);
  int status = 0;
  ::waitpid(other, &status, 0);
  report["local"] = local(rounds);
  std::cout << report.dump(2) << "\n";
  return status == 0 ? 0 : 1;
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  try {
    return sluice::run(argc > 1 ? std::max(1, std::atoi(argv[1])) : 15);
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
