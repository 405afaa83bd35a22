// Programs of examples/gallery, each in a namespace of its own.
#include "tests/gallery/gallery_programs.h"

// clang-format off
namespace digits {
#include "examples/gallery/digits.cc"
}
namespace graph_convolution {
#include "examples/gallery/graph_convolution.cc"
}
namespace resnet {
#include "examples/gallery/resnet.cc"
}
namespace super_resolution {
#include "examples/gallery/super_resolution.cc"
}
namespace word_language_model {
#include "examples/gallery/word_language_model.cc"
}
// clang-format on

namespace sluice::tests {

std::vector<GalleryProgram> gallery_part_4() {
  return {{"digits", digits::main},
          {"graph_convolution", graph_convolution::main},
          {"resnet", resnet::main},
          {"super_resolution", super_resolution::main},
          {"word_language_model", word_language_model::main}};
}

}  // namespace sluice::tests
