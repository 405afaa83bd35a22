// Recording for devices that this machine does not have: programs are lowered, never compiled or run.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/device/program/trace.h"
#include "sluice/device/runtime.h"
#include "sluice/mesh/mesh.h"

namespace sluice::device {

// While an Ahead exists, the device stands for `replicas` devices of another kind. A cut lowers what was
// recorded to a program's text, and nothing runs: afterwards tensors have a type but no value, so that the
// next step can be recorded. Reading a value throws kFailedPrecondition, a fetch never becomes ready. Uploads
// copy nothing.
//
// The device must be initialised and nothing may be pending. Tensors from before must not be used inside, nor
// tensors from inside afterwards. Only one may exist at a time, in the thread that records. Throws
// sluice::Error.
class Ahead {
 public:
  // `explicit_nan` as in World: true only for XLA's CPU plugin. device_kind: PJRT's name for the devices,
  // "TPU v3"; "": no TPU.
  // `mesh`: the devices share one model (docs/sharding.md); its sizes must give that number of devices.
  explicit Ahead(int replicas, bool explicit_nan = false, std::string_view device_kind = "",
                 const Mesh& mesh = {});
  ~Ahead();
  Ahead(const Ahead&) = delete;
  Ahead& operator=(const Ahead&) = delete;

  // Makes an argument of the programs: a batch, different on each replica; with a mesh the whole batch, laid
  // out over the devices.
  at::Tensor input(c10::IntArrayRef sizes, at::ScalarType type);
  // Returns the text of the last program cut under that name (Session::step cuts "step"); "" if there is
  // none.
  const std::string& text(std::string_view what) const;
  // Returns the names of that program's arguments: "fc.weight", "optimizer.fc.weight.exp_avg"; "" for those
  // without one. Vectors of run-time numbers, which follow them, are left out.
  const std::vector<std::string>& arguments(std::string_view what) const;
  // Returns the FLOPs of that program's products and convolutions on one device, each round of a loop counted
  // (stablehlo::count_flops); 0 if there is no such program.
  double flops(std::string_view what) const;
  // Returns the number of programs that were cut under that name.
  int count(std::string_view what) const;
  // Sets a function that is called with the cut's name after each cut.
  void on_cut(std::function<void(std::string_view what)> call) { on_cut_ = std::move(call); }

 private:
  struct Cut {
    std::string text;
    std::vector<std::string> arguments;
    double flops = 0;
    int count = 0;
  };
  std::map<std::string, Cut, std::less<>> cuts_;
  std::function<void(std::string_view)> on_cut_;
  World world_;  // the runtime's world before this Ahead
};

// Throws if the data belongs to a program that was only lowered: it has a type and no value.
void check_has_value(const Data& data);
// Replaces the launch in cut() while an Ahead exists: lowers the program. The caller holds the lock.
void lower_ahead(Runtime& rt, Trace& trace, std::string_view what);

}  // namespace sluice::device
