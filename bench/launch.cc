// What a plugin alone needs for the launches of a program: its execute on the same handles again and again,
// and the release of those that it took over, one program ahead as the device launches; nothing of Sluice's.
// It is the floor under what a captured step costs the host. Prints JSON: microseconds of this thread a
// launch.
//   SLUICE_DUMP=FOLDER … writes the programs of a training (docs/environment.md)
//   bench_launch PROGRAM.mlir [ROUNDS [LAUNCHES]]
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "bench/against_eager.h"
#include "bench/thread_time.h"
#include "sluice/base/result.h"
#include "sluice/bench/foreign_program.h"
#include "sluice/device/runtime.h"
#include "sluice/pjrt/c_api.h"

namespace {

namespace c = sluice::pjrt::c;
using sluice::base::value_or_throw;
using sluice::bench::median;
using sluice::bench::thread_microseconds;

class Launches {
 public:
  explicit Launches(const std::string& path)
      : api_(sluice::device::runtime().client->api()),
        program_(value_or_throw(sluice::bench::ForeignProgram::load(path, sluice::device::runtime().client))),
        outputs_(program_.executable().num_outputs()) {
    for (const sluice::pjrt::Buffer& buffer : program_.arguments()) arguments_.push_back(buffer.raw());
  }
  Launches(const Launches&) = delete;
  ~Launches() {
    finish();
    // Those of the first launch are the program's own.
    for (size_t i = 0; i < arguments_.size(); ++i)
      if (arguments_[i] != program_.arguments()[i].raw()) destroy(arguments_[i]);
  }

  void launch() {
    const double begin = thread_microseconds();
    c::PJRT_Event* done = execute();
    execute_us += thread_microseconds() - begin;
    finish();
    done_ = done;
    std::vector<bool> kept(outputs_.size(), false);
    for (size_t i = 0; i < arguments_.size(); ++i) {
      const int output = program_.aliases()[i];
      if (output < 0) continue;
      if (arguments_[i] != program_.arguments()[i].raw()) released_.push_back(arguments_[i]);
      arguments_[i] = outputs_[static_cast<size_t>(output)];
      kept[static_cast<size_t>(output)] = true;
    }
    for (size_t i = 0; i < outputs_.size(); ++i)
      if (!kept[i]) released_.push_back(outputs_[i]);
  }
  // Waits for the latest launch; the handles that it replaced go.
  void finish() {
    if (done_ == nullptr) return;
    auto wait = c::make<c::PJRT_Event_Await_Args>();
    wait.event = done_;
    value_or_throw(api_.call(wait));
    auto gone = c::make<c::PJRT_Event_Destroy_Args>();
    gone.event = std::exchange(done_, nullptr);
    value_or_throw(api_.call(gone));
    const double begin = thread_microseconds();
    for (c::PJRT_Buffer* buffer : released_) destroy(buffer);
    release_us += thread_microseconds() - begin;
    released_.clear();
  }
  size_t num_arguments() const { return arguments_.size(); }
  size_t num_outputs() const { return outputs_.size(); }

  double execute_us = 0, release_us = 0;  // so far

 private:
  c::PJRT_Event* execute() {
    c::PJRT_Event* done = nullptr;
    c::PJRT_Buffer* const* argument_list = arguments_.data();
    c::PJRT_Buffer** output_list = outputs_.data();
    auto options = c::make<c::PJRT_ExecuteOptions>();
    auto args = c::make<c::PJRT_LoadedExecutable_Execute_Args>();
    args.executable = program_.executable().raw();
    args.options = &options;
    args.argument_lists = &argument_list;
    args.num_devices = 1;
    args.num_args = arguments_.size();
    args.output_lists = &output_list;
    args.device_complete_events = &done;
    value_or_throw(api_.call(args));
    return done;
  }
  void destroy(c::PJRT_Buffer* buffer) {
    auto args = c::make<c::PJRT_Buffer_Destroy_Args>();
    args.buffer = buffer;
    value_or_throw(api_.call(args));
  }

  const sluice::pjrt::Api& api_;
  sluice::bench::ForeignProgram program_;
  std::vector<c::PJRT_Buffer*> arguments_, outputs_, released_;
  c::PJRT_Event* done_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: bench_launch PROGRAM.mlir [ROUNDS [LAUNCHES]]\n");
    return 2;
  }
  sluice::init();
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 9, launches = argc > 3 ? std::atoi(argv[3]) : 20;
  Launches all(argv[1]);
  for (int i = 0; i < 5; ++i) all.launch();
  std::vector<double> execute, release;
  for (int round = 0; round < rounds; ++round) {
    all.finish();
    all.execute_us = all.release_us = 0;
    for (int i = 0; i < launches; ++i) all.launch();
    all.finish();
    execute.push_back(all.execute_us / launches);
    release.push_back(all.release_us / launches);
  }
  const nlohmann::json result = {{"arguments", all.num_arguments()},
                                 {"outputs", all.num_outputs()},
                                 {"execute_us", median(execute)},
                                 {"release_us", median(release)}};
  std::printf("%s\n", result.dump(2).c_str());
  return 0;
}
