#include "sluice/replica/sameness.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "sluice/base/error.h"
#include "sluice/base/formats/hash.h"
#include "sluice/base/result.h"
#include "sluice/base/text/strings.h"
#include "sluice/device/program/trace.h"
#include "sluice/device/runtime.h"
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

// Hashes bytes as words of eight, the last one filled with zeros. Other processes compare the hash, so it is
// not std::hash, which two builds may compute differently.
uint64_t hash_bytes(const char* bytes, size_t size) {
  uint64_t hash = base::mix_word(0, size);
  for (size_t at = 0; at < size; at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes + at, std::min(sizeof word, size - at));
    hash = base::mix_word(hash, word);
  }
  return hash;
}

std::string checksum(const at::Tensor& tensor) {
  const at::Tensor host = device::download(tensor, "session.prepare", Sameness::kProcess);
  return base::str(hash_bytes(static_cast<const char*>(host.const_data_ptr()), host.nbytes()), ' ',
                   host.sizes());
}

void mark_global(const NamedTensors& tensors) {
  device::TraceLock lock = device::lock_trace();
  for (const auto& [name, tensor] : tensors) device::materialize(tensor)->sameness = Sameness::kGlobal;
}

}  // namespace

void make_global(Processes* processes, const NamedTensors& tensors, bool from_leader) {
  const NamedTensors own = of_this_process(tensors);
  if (processes == nullptr) return;
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
      throw_error(
          Code::kFailedPrecondition,
          base::str("'", said(which.substr(0, which.find(' '))), "' differs between process 0 and process ",
                    p, " when training begins. Seed all processes alike (torch::manual_seed), load the same ",
                    "file everywhere, or let process 0 send its values: session.prepare(model, optimizer, ",
                    "{.from_leader = true})"));
    }
  }
  mark_global(own);
}

}  // namespace sluice::replica
