// The region of over_sequence() on one device. Internal to this folder.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "sluice/ops/attention/sequence.h"

namespace sluice::ops::attention::sequence_detail {

using Pairs = std::vector<std::pair<int64_t, int64_t>>;

// Numbers of the mesh's devices: the k-th along `sequence` has the place k.
class Devices {
 public:
  explicit Devices(const Mesh& mesh) : mesh_(&mesh), count_(mesh.size("sequence")) {}
  int64_t count() const { return count_; }

  // Returns pairs of a sender and a receiver: the device at place k sends to the one at place to(k).
  template <typename To>
  Pairs pairs(const To& to) const {
    Pairs all;
    for (int64_t d = 0; d < mesh_->devices(); ++d) {
      const int64_t place = mesh_->place(d, "sequence");
      all.emplace_back(d, d + (to(place) - place) * stride());
    }
    return all;
  }
  Pairs to_next() const {
    return pairs([this](int64_t place) { return (place + 1) % count_; });
  }
  std::vector<std::vector<int64_t>> groups() const {
    std::vector<std::vector<int64_t>> all;
    for (int64_t d = 0; d < mesh_->devices(); ++d) {
      if (mesh_->place(d, "sequence") != 0) continue;
      all.emplace_back();
      for (int64_t place = 0; place < count_; ++place) all.back().push_back(d + place * stride());
    }
    return all;
  }
  // Returns the device that computes this one of 2 × count() parts, where parts are mirrored.
  int64_t home(int64_t part) const { return part < count_ ? part : 2 * count_ - 1 - part; }

 private:
  int64_t stride() const { return mesh_->size("tensor"); }
  const Mesh* mesh_;
  int64_t count_;
};

// What all devices know of a call: the composite, its mask and the form.
struct Call {
  Composite composite;
  const BlockMask* mask = nullptr;
  Groups groups;
  Devices devices;
  bool gathered = false;
  bool mirrored = false;

  const Operands& in() const { return composite.in; }
  DType compute() const { return compute_type(in().q.dtype()); }
  size_t pieces() const { return mirrored ? 2 : 1; }
};

// Returns the region's results from its arguments: this device's place along `sequence`, blocks of queries,
// keys and values (of a gradient also of what it is given), seeds and the probability of dropout, and what
// the mask is computed from.
Values body_of(stablehlo::Rewriter& r, const Call& call, std::span<const Value> arguments);

}  // namespace sluice::ops::attention::sequence_detail
