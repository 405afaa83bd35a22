// Recording for devices that are not here: programs are lowered, never compiled or run.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "sluice/device/runtime.h"
#include "sluice/device/trace.h"

namespace sluice::device {

// While one exists, the device stands for `replicas` devices of another kind. Cuts lower what was recorded to
// a program's text and nothing runs: no tensor has a value afterwards, only a type, so that the next step can
// be recorded. Reading a value throws kFailedPrecondition, a fetch never becomes ready. Uploads copy nothing.
//
// The device must be initialised and nothing may be pending; tensors that lived before must not be used
// inside, nor those made inside afterwards. One at a time, in the thread that records. Throws sluice::Error.
class Ahead {
 public:
  // `explicit_nan` as in World: true for XLA's CPU plugin alone.
  explicit Ahead(int replicas, bool explicit_nan = false);
  ~Ahead();
  Ahead(const Ahead&) = delete;
  Ahead& operator=(const Ahead&) = delete;

  // An argument of the programs: a batch, different on each replica.
  at::Tensor input(c10::IntArrayRef sizes, at::ScalarType type);
  // The text of the last program cut under that name (Session::step cuts "step"); "" when there was none.
  const std::string& text(std::string_view what) const;
  // How many programs were cut under that name.
  int count(std::string_view what) const;
  // Called after each cut with its name.
  void on_cut(std::function<void(std::string_view what)> call) { on_cut_ = std::move(call); }

 private:
  struct Cut {
    std::string text;
    int count = 0;
  };
  std::map<std::string, Cut, std::less<>> cuts_;
  std::function<void(std::string_view)> on_cut_;
  World world_;  // as it was before
};

// Throws when the data is of a program that was only lowered: it has a type and no value.
void check_has_value(const Data& data);
// What cut() does while an Ahead exists. The caller holds the lock.
void lower_ahead(Runtime& rt, Trace& trace, std::string_view what);

}  // namespace sluice::device
