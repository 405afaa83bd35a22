// Convolutions of pictures so small that nearly every window sees nearly all of its picture. Internal to this
// room.
#pragma once

#include <memory>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/kernels/gemm/product.h"
#include "sluice/stablehlo/kernel_library.h"

namespace sluice::kernels {

// One product of matrices. A row of x holds all pixels of a picture, as they lie in memory, and so does one
// of y; the matrix between them, [y's pixels, filters, x's pixels, channels], has a block for each pair of
// pixels: the window's element that connects them, or zeros.
class FewPixelsConvolution {
 public:
  // For any kind but kBackward. Null where too many blocks would be zeros, or the library has no fast
  // product.
  static std::unique_ptr<FewPixelsConvolution> make(const stablehlo::ConvolutionCall& c);
  // Operands and results, or their gradients. Under UseThreads.
  base::Status run(float* x, float* w, float* y) const;

 private:
  using Kind = stablehlo::ConvolutionCall::Kind;
  bool list_blocks(const stablehlo::ConvolutionCall& c);
  stablehlo::ProductCall as_product(int64_t pictures) const;
  // A block's row for the first filter.
  size_t place(size_t block) const;
  // body(filter), for all of them, on the threads of a call.
  template <typename Body>
  void for_filters(const Body& body) const;
  void fill_matrix(const float* w, float* matrix) const;
  void add_blocks(float* matrix, float* w) const;

  Kind kind_{};
  size_t channels_ = 0, filters_ = 0, x_pixels_ = 0, y_pixels_ = 0, elements_ = 0;
  // Block y's pixel * x_pixels_ + x's pixel: for each element of the window those that it connects, and those
  // that none does.
  std::vector<std::vector<size_t>> blocks_of_;
  std::vector<size_t> zeros_;
  const ProductKernel* product_ = nullptr;
};

}  // namespace sluice::kernels
