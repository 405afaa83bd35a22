// The callbacks of a run, called together.
#pragma once

#include <map>
#include <string>

#include "sluice/train/callback.h"
#include "sluice/train/run/run_setup.h"

namespace sluice::train {

// Calls the callbacks in their order. An error names the callback and the hook. Threads: the session's.
class CallbackList {
 public:
  // The names in a checkpoint of the tensors of callbacks begin with this.
  static constexpr const char* kPrefix = "callback.";

  // Both live longer. `run`: what the hooks get.
  CallbackList(const Callbacks& callbacks, Run& run) : callbacks_(callbacks), run_(run) {}
  // Calls a hook of each callback; `name`: the hook's.
  void call(const char* name, void (Callback::*hook)(Run&)) const;
  void after_test(const metrics::Values& values) const;
  // Gives callbacks their states, by their names, and their tensors back. Warns of tensors that belong to no
  // callback.
  void load(const std::map<std::string, std::string>& states, const NamedValues& tensors) const;
  // Puts the states into the map, by the callbacks' names.
  void put_states(std::map<std::string, std::string>& states) const;
  // Returns the tensors of all callbacks; their names begin with "callback.NAME.".
  NamedValues tensors() const;

 private:
  const Callbacks& callbacks_;
  Run& run_;
};

}  // namespace sluice::train
