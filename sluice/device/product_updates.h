// Updates of weights whose gradients are matrix products that nothing else reads: product and update become
// one call of a kernel, and the gradient is never written to memory.
#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include "sluice/device/updates.h"
#include "sluice/ops/emit.h"

namespace sluice::device {

class ProductUpdates {
 public:
  // The updates must outlive this. The caller holds the lock.
  ProductUpdates(const Trace& trace, const Plan& plan, std::vector<UpdateGroup>& groups);

  // To be called when a node has been lowered. Where all is there that an update waits for, and a product by
  // a kernel made its gradient, adds the call, which takes the place of the product's; [node]: `values` gets
  // the results. `numbers`: the program's f32 scalars.
  void lower_at(uint32_t node, stablehlo::Builder& b, ops::Slots& slots,
                const std::function<stablehlo::Value(Ref)>& value_of, stablehlo::Value numbers,
                std::vector<stablehlo::Values>& values) const;

 private:
  struct Candidate {
    const stablehlo::UpdateCode* code;
    Update* update;
    size_t gradient;               // its number among the update's tensors
    std::vector<uint32_t> before;  // nodes that need what the update overwrites
  };
  static void lower(const Candidate& candidate, stablehlo::Builder& b, ops::Slots& slots,
                    const std::function<stablehlo::Value(Ref)>& value_of, stablehlo::Value numbers,
                    std::vector<stablehlo::Values>& values);

  std::unordered_multimap<uint32_t, Candidate> candidates_;  // by the last node that they wait for
};

}  // namespace sluice::device
