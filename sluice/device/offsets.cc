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

bool Offsets::moves(const char* row, TypeRef type, c10::ArrayRef<int64_t> geometry) {
  Places& places = places_[{row, type, geometry.vec()}];
  const uint64_t trace = Trace::get().number;
  if (places.last_trace == trace) return false;
  if (places.traces == kConstant) return true;
  ++places.traces;
  places.last_trace = trace;
  return false;
}

}  // namespace sluice::device
