// The compiled programs of the pod, each once for all workers.
#pragma once

#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "tests/pjrt/pod/engine.h"

namespace emulated_pod {

// A program lives while somebody holds it. Threads: any.
class Library {
 public:
  explicit Library(const Engine& engine) : engine_(engine) {}

  // Two workers that ask for the same program at the same time get the same one.
  Result<std::shared_ptr<Program>> compile(std::string_view text, std::string_view options);
  Result<std::shared_ptr<Program>> load(std::string_view serialized);

 private:
  using Made = Result<std::shared_ptr<Program>>;
  Made once(const std::string& key, const std::function<Made()>& make);

  const Engine& engine_;
  std::mutex mutex_;
  std::map<std::string, std::shared_future<Made>> making_;
  std::map<std::string, std::weak_ptr<Program>> made_;
};

}  // namespace emulated_pod
