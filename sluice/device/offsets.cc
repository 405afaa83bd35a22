#include "sluice/device/offsets.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sluice/base/formats/hash.h"
#include "sluice/device/exact.h"
#include "sluice/device/program/trace.h"

namespace sluice::device {
namespace {

constexpr double kUnlikely = 1e-3;
// The limit for a family in which nothing has moved yet, when another family moves.
constexpr double kUnlikelyForAll = 5e-3;

}  // namespace

Offsets& Offsets::get() {
  static auto* offsets = new Offsets();
  return *offsets;
}

size_t Offsets::Hash::operator()(const Key& key) const {
  const auto row = reinterpret_cast<uintptr_t>(key.row), type = reinterpret_cast<uintptr_t>(key.type);
  return static_cast<size_t>(base::hash_words(base::mix_word(row, type), key.geometry));
}

Offsets::Family& Offsets::family_of(const View& view) {
  if (view.constant != nullptr) {
    const uint32_t id = view.constant->id;
    if (id < family_by_instance_.size() && family_by_instance_[id] != nullptr)
      return *family_by_instance_[id];
  }
  std::unique_ptr<Family>& family = families_[{view.row, view.type, view.geometry.vec()}];
  if (family == nullptr) {
    family = std::make_unique<Family>();
    family->choices = static_cast<double>(std::max<int64_t>(view.choices, 2));
  }
  return *family;
}

double Offsets::chance_of(const Family& family, const Place& place) {
  return static_cast<double>(family.places.size()) * std::pow(family.choices, 1.0 - place.same);
}

double Offsets::chance_of_all(const Family& family) {
  double exponent = 0;
  for (const Place& place : family.places) exponent += place.same - 1.0;
  return std::pow(family.choices, -exponent);
}

bool Offsets::may_be_chance(const Family& family, const Place& place) {
  return chance_of(family, place) > kUnlikely || (family.wandered && place.same < kProven);
}

void Offsets::move(Family& family, Place& place) {
  if (family.moved) family.wandered = true;
  place.moving = family.moved = trace_moves_ = true;
  Trace& trace = Trace::get();
  if (std::exchange(family.scanned, trace.number) == trace.number) return;
  std::erase_if(constants_, [&](const Constant& constant) {
    Family& other = *constant.family;
    Place& stayed = other.places[constant.place];
    const bool chance = &other == &family ? may_be_chance(other, stayed)
                                          : constant.picked && chance_of_all(other) > kUnlikelyForAll;
    if (!chance || trace.nodes[constant.node].instance->exact != records_exactly()) return false;
    stayed.moving = other.moved = true;
    Node& node = trace.nodes[constant.node];
    node.instance = &with_run_time_offset(constant.row, *node.instance);
    node.first_number = static_cast<uint32_t>(trace.numbers.size());
    trace.numbers.push_back({static_cast<double>(stayed.offset), stayed.offset});
    return true;
  });
}

bool Offsets::moves(const View& view) {
  const uint64_t trace = Trace::get().number;
  if (trace_ != trace) {
    trace_ = trace;
    trace_moves_ = false;
    constants_.clear();
  }
  Family& family = family_of(view);
  latest_ = &family;
  if (family.trace != trace) {
    family.trace = trace;
    family.next = 0;
  }
  const size_t n = family.next++;
  if (n == family.places.size()) {
    family.places.push_back({view.offset, 1, 0, family.moved});
    return family.moved;
  }
  Place& place = family.places[n];
  if (place.moving) return true;
  if (place.offset == view.offset) {
    ++place.same;
    place.moving = (family.moved && may_be_chance(family, place)) ||
                   (trace_moves_ && !family.moved && view.picked && chance_of_all(family) > kUnlikelyForAll);
    family.moved = family.moved || place.moving;
    return place.moving;
  }
  // A test's place differs from its training's: the training keeps its constant.
  const bool proven = place.same >= kProven && !may_be_chance(family, place);
  if (!proven || ++place.others > place.same) move(family, place);
  return true;
}

void Offsets::constant_at(const View& view) {
  const Trace& trace = Trace::get();
  const auto node = static_cast<uint32_t>(trace.nodes.size() - 1);
  constants_.push_back({node, latest_, latest_->next - 1, view.row, view.picked});
  const uint32_t id = trace.nodes.back().instance->id;
  if (id >= family_by_instance_.size()) family_by_instance_.resize(id + 1);
  family_by_instance_[id] = latest_;
}

void Offsets::forget() {
  families_.clear();
  family_by_instance_.clear();
  constants_.clear();
  latest_ = nullptr;
}

}  // namespace sluice::device
