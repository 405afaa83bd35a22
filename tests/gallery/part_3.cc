// Programs of examples/gallery, each in a namespace of its own.
#include "tests/gallery/gallery_programs.h"

// clang-format off
namespace diffusion {
#include "examples/gallery/diffusion.cc"
}
namespace gaussian_process {
#include "examples/gallery/gaussian_process.cc"
}
namespace reinforce {
#include "examples/gallery/reinforce.cc"
}
namespace style_transfer {
#include "examples/gallery/style_transfer.cc"
}
namespace vae {
#include "examples/gallery/vae.cc"
}
// clang-format on

namespace sluice::tests {

std::vector<GalleryProgram> gallery_part_3() {
  return {{"diffusion", diffusion::main},
          {"gaussian_process", gaussian_process::main},
          {"reinforce", reinforce::main},
          {"style_transfer", style_transfer::main},
          {"vae", vae::main}};
}

}  // namespace sluice::tests
