#include "sluice/device/offsets.h"

#include "sluice/base/hash.h"
#include "sluice/device/trace.h"

namespace sluice::device {

Offsets& Offsets::get() {
  static auto* offsets = new Offsets();
  return *offsets;
}

size_t Offsets::Hash::operator()(const Key& key) const {
  const auto row = reinterpret_cast<uintptr_t>(key.row), type = reinterpret_cast<uintptr_t>(key.type);
  return static_cast<size_t>(base::hash_words(base::mix_word(row, type), key.geometry));
}

void Offsets::place(uint32_t instance) {
  if (instance >= placed_in_.size()) placed_in_.resize(instance + 1);
  uint64_t& placed = placed_in_[instance];
  const uint64_t trace = Trace::get().number;
  if (placed != trace) placed = placed == 0 ? trace : kSeveral;
}

bool Offsets::stays(uint32_t instance) const {
  if (instance >= placed_in_.size()) return false;
  const uint64_t placed = placed_in_[instance];
  return placed == kSeveral || placed == Trace::get().number;
}

bool Offsets::moves(const char* row, TypeRef type, c10::ArrayRef<int64_t> geometry, bool known) {
  Places& places = places_[{row, type, geometry.vec()}];
  const uint64_t trace = Trace::get().number;
  if (places.last_trace == trace) return false;
  if (places.traces == kConstant) return true;
  if (known) return false;
  ++places.traces;
  places.last_trace = trace;
  return false;
}

}  // namespace sluice::device
