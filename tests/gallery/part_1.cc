// Programs of examples/gallery, each in a namespace of its own.
#include "tests/gallery/gallery_programs.h"

// clang-format off
namespace captioning {
#include "examples/gallery/captioning.cc"
}
namespace dqn {
#include "examples/gallery/dqn.cc"
}
namespace neural_ode {
#include "examples/gallery/neural_ode.cc"
}
namespace seq2seq_transformer {
#include "examples/gallery/seq2seq_transformer.cc"
}
namespace tagging {
#include "examples/gallery/tagging.cc"
}
// clang-format on

namespace sluice::tests {

std::vector<GalleryProgram> gallery_part_1() {
  return {{"captioning", captioning::main},
          {"dqn", dqn::main},
          {"neural_ode", neural_ode::main},
          {"seq2seq_transformer", seq2seq_transformer::main},
          {"tagging", tagging::main}};
}

}  // namespace sluice::tests
