// Programs of examples/gallery, each in a namespace of its own.
#include "tests/gallery/gallery_programs.h"

// clang-format off
namespace dcgan {
#include "examples/gallery/dcgan.cc"
}
namespace forecasting {
#include "examples/gallery/forecasting.cc"
}
namespace polynomial {
#include "examples/gallery/polynomial.cc"
}
namespace siamese {
#include "examples/gallery/siamese.cc"
}
namespace unet {
#include "examples/gallery/unet.cc"
}
// clang-format on

namespace sluice::tests {

std::vector<GalleryProgram> gallery_part_2() {
  return {{"dcgan", dcgan::main},
          {"forecasting", forecasting::main},
          {"polynomial", polynomial::main},
          {"siamese", siamese::main},
          {"unet", unet::main}};
}

}  // namespace sluice::tests
