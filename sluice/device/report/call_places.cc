#include "sluice/device/report/call_places.h"

#include <dlfcn.h>
#include <torch/csrc/autograd/function.h>

#include <algorithm>
#include <map>
#include <vector>

#include "sluice/device/program/trace.h"
#include "sluice/device/report/frames.h"

namespace sluice::device {
namespace {

// The places by instance. Storing a place takes some microseconds, so programs that make instances without
// end store no more than kMaxPlaces.
std::vector<Frames>& all_places() {
  static auto* places = new std::vector<Frames>();
  return *places;
}
constexpr uint32_t kMaxPlaces = 8192;

const void* library_of(const void* address) {
  Dl_info found;
  return dladdr(address, &found) != 0 ? found.dli_fbase : nullptr;
}

// Returns the frames above LibTorch, which called the device: looking up a frame is slow.
Frames behind_libtorch(const Frames& frames) {
  const void* const libtorch = library_of(reinterpret_cast<const void*>(&torch::autograd::get_current_node));
  const auto is_libtorch = [libtorch](const void* frame) { return library_of(frame) == libtorch; };
  const auto first = std::find_if(frames.begin(), frames.end(), is_libtorch);
  const auto behind = std::find_if_not(first, frames.end(), is_libtorch);
  return behind == frames.end() ? frames : Frames(behind, frames.end());
}

}  // namespace

void note_call_place(uint32_t instance) {
  std::vector<Frames>& places = all_places();
  if (instance < places.size() && !places[instance].empty()) return;
  if (instance >= kMaxPlaces) return;
  if (instance >= places.size()) places.resize(instance + 1);
  places[instance] = frames_here();
}

std::string call_place(uint32_t instance) {
  static auto& known = *new std::map<uint32_t, std::string>();
  const TraceLock lock = lock_trace();
  const auto found = known.find(instance);
  if (found != known.end()) return found->second;
  if (instance >= all_places().size()) return "";
  return known[instance] = describe_place(behind_libtorch(all_places()[instance]));
}

}  // namespace sluice::device
