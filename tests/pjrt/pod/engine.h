// XLA's CPU plugin underneath: it compiles for as many virtual devices as the pod has and runs them all.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/pjrt/api.h"
#include "tests/pjrt/pod/facts.h"

namespace emulated_pod {

using sluice::pjrt::Api;

// The plugin at EMULATED_POD_CPU_PLUGIN, else the one that Sluice finds, initialised. Opened once.
Result<Api> cpu_plugin();

// The memory of one argument of a run, and whether the program may write to it.
struct Argument {
  void* data = nullptr;
  bool donated = false;
};

class Engine;

// A compiled program. Threads: any; one run at a time.
class Program {
 public:
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  const Facts& facts() const { return facts_; }
  // Bytes for Engine::load(); they hold what the plugin itself does not keep.
  Result<std::string> serialize() const;
  Result<std::string> optimized() const;
  // Runs it on all its devices and waits. The lists are in the order of facts().placement.devices; an output
  // whose place is that of a donated argument takes its memory over.
  Status run(const std::vector<std::vector<Argument>>& arguments,
             const std::vector<std::vector<void*>>& outputs) const;

 private:
  friend class Engine;
  friend class Run;
  Program(const Engine& engine, c::PJRT_LoadedExecutable* loaded) : engine_(engine), loaded_(loaded) {}
  Status read_facts(std::string key, Placement placement);

  const Engine& engine_;
  c::PJRT_LoadedExecutable* loaded_ = nullptr;
  c::PJRT_Executable* executable_ = nullptr;
  Facts facts_;
};

// Threads: any. Outlives its programs.
class Engine {
 public:
  static Result<std::unique_ptr<Engine>> open(int devices);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // The key that all processes give the same program.
  static std::string key(std::string_view text, std::string_view options);
  // The same of a program that was serialised; kInvalidArgument for other bytes.
  static Result<std::string> key_of(std::string_view serialized);
  Result<std::shared_ptr<Program>> compile(std::string_view text, std::string_view options) const;
  Result<std::shared_ptr<Program>> load(std::string_view serialized) const;

 private:
  friend class Program;
  friend class Run;
  Engine() = default;
  Status open_client(int devices);
  Result<std::shared_ptr<Program>> adopt(c::PJRT_LoadedExecutable* loaded, std::string key,
                                         Placement placement) const;

  Api api_;
  c::PJRT_Client* client_ = nullptr;
  std::vector<c::PJRT_Device*> devices_;  // by number
};

}  // namespace emulated_pod
