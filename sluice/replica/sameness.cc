#include "sluice/replica/sameness.h"

#include <algorithm>
#include <map>
#include <set>

#include "sluice/base/error.h"
#include "sluice/base/formats/hash.h"
#include "sluice/base/result.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/device/program/trace.h"
#include "sluice/device/runtime.h"
#include "sluice/device/sharding/processes.h"
#include "sluice/device/storage.h"
#include "sluice/device/transfer.h"
#include "sluice/replica/collectives.h"
#include "sluice/replica/loss.h"

namespace sluice::replica {
namespace {

using device::Sameness;

// Returns the tensors that are equal only within this process, each once: a parameter is listed with the
// model and with its optimizer. A differing one is an error.
NamedTensors of_this_process(const NamedTensors& tensors) {
  device::TraceLock lock = device::lock_trace();
  NamedTensors found;
  std::set<const c10::TensorImpl*> seen;
  for (const auto& [name, tensor] : tensors) {
    if (!device::on_device(tensor) || !seen.insert(tensor.unsafeGetTensorImpl()).second) continue;
    const device::Operand value = device::read(tensor);
    if (value.sameness == Sameness::kDifferent)
      throw_error(
          Code::kFailedPrecondition,
          base::str("'", name, "' must be equal on all replicas when training begins, but it differs (",
                    device::since(device::Trace::get().origin(value.ref)),
                    "); make it of values that are equal, inside a sluice::SharedRandom scope where it is ",
                    "random, or by sluice::broadcast"));
    if (value.sameness == Sameness::kProcess) found.emplace_back(name, tensor);
  }
  return found;
}

std::string checksum(const at::Tensor& tensor) {
  const at::Tensor host = device::download(tensor, "session.prepare", Sameness::kProcess);
  return base::str(base::hash_bytes(host.const_data_ptr(), host.nbytes()), ' ', host.sizes());
}

// Compares the blocks of a mesh that devices of several processes hold.
class Blocks {
 public:
  // Returns this process's blocks of the tensors, one a line.
  static std::string of(const NamedTensors& tensors) {
    std::string text;
    for (const auto& [name, tensor] : tensors) {
      device::DataPtr data;
      {
        device::TraceLock lock = device::lock_trace();
        data = device::materialize(tensor);
      }
      if (data->layout == nullptr) text += base::str(name, " 0 ", checksum(tensor), "\n");
      if (data->layout != nullptr)
        for (const std::string& block : device::hashes_of_blocks(*data))
          text += base::str(name, ' ', block, "\n");
    }
    return text;
  }

  // Adds a process's blocks. If a block differs from an earlier process's, returns its tensor's name; else
  // "".
  std::string add(const std::string& text) {
    for (const std::string& line : base::split(text, '\n')) {
      const size_t name = line.find(' '), place = line.find(' ', name + 1);
      if (place == std::string::npos) continue;
      const auto [known, fresh] = hashes_.try_emplace(line.substr(0, place), line.substr(place));
      if (!fresh && known->second != line.substr(place)) return line.substr(0, name);
    }
    return "";
  }

 private:
  std::map<std::string, std::string> hashes_;
};

[[noreturn]] void refuse(const std::string& name, size_t process, const std::string& advice) {
  throw_error(
      Code::kFailedPrecondition,
      base::str("'", said(name), "' differs between process 0 and process ", process,
                " when training begins. Seed all processes alike (torch::manual_seed), load the same ",
                "file everywhere", advice));
}

void compare_blocks(Processes& processes, const NamedTensors& tensors) {
  Blocks blocks;
  const auto all = base::value_or_throw(processes.gather("prepare", Blocks::of(tensors)));
  for (size_t p = 0; p < all.size(); ++p)
    if (const std::string name = blocks.add(all[p]); !name.empty()) refuse(name, p, "");
}

void mark_global(const NamedTensors& tensors) {
  device::TraceLock lock = device::lock_trace();
  for (const auto& [name, tensor] : tensors) device::materialize(tensor)->sameness = Sameness::kGlobal;
}

}  // namespace

void make_global(Processes* processes, const NamedTensors& tensors, bool from_leader) {
  const NamedTensors own = of_this_process(tensors);
  if (processes == nullptr) return;
  if (device::runtime().world.mesh != nullptr) {
    if (from_leader && !own.empty())
      throw_error(Code::kUnimplemented,
                  base::str("session.prepare with from_leader: process 0 cannot send '", own[0].first,
                            "', which lies over a mesh. Lay out the model with session.place() or ",
                            "sluice::shard(), which compare it, and seed all processes alike"));
    compare_blocks(*processes, own);
    return mark_global(own);
  }
  if (from_leader) {
    for (const auto& [name, tensor] : own) {
      device::TraceLock lock = device::lock_trace();
      device::write(tensor, device::read(broadcast(tensor.detach(), 0)));
    }
    return;
  }
  std::vector<std::string> sums;
  for (const auto& [name, tensor] : own) sums.push_back(base::str(name, ' ', checksum(tensor)));
  const auto all = base::value_or_throw(processes->gather("prepare", base::join(sums, "\n")));
  for (size_t p = 0; p < all.size(); ++p) {
    const std::vector<std::string> theirs = base::split(all[p], '\n');
    const std::vector<std::string> first = base::split(all[0], '\n');
    for (size_t i = 0; i < std::max(first.size(), theirs.size()); ++i) {
      if (i < first.size() && i < theirs.size() && first[i] == theirs[i]) continue;
      const std::string& which = i < first.size() ? first[i] : theirs[i];
      refuse(which.substr(0, which.find(' ')), p,
             ", or let process 0 send its values: session.prepare(model, optimizer, {.from_leader = true})");
    }
  }
  mark_global(own);
}

}  // namespace sluice::replica
