#include "sluice/pod/tpu_grid.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/number.h"

#include <bit>
#include <vector>

#include "sluice/base/text/strings.h"

namespace sluice::pod {
namespace {

// Returns the sides of "4x4" or "2x2x4"; empty for any other text.
std::vector<int> sides_of(const std::string& text) {
  std::vector<int> sides;
  for (const std::string& side : base::split(text, 'x')) {
    const int number = base::number_of<int>(side).value_or(0);
    if (number < 1 || number > 100'000) return {};
    sides.push_back(number);
  }
  return sides.size() <= 3 ? sides : std::vector<int>();
}

}  // namespace

base::Result<std::string> chip_grid(const std::string& topology, int chips) {
  std::vector<int> sides;
  if (!topology.empty()) {
    sides = sides_of(topology);
    if (sides.empty())
      return base::fail(Code::kInvalidArgument, "--tpu-topology ", topology,
                        ": expected the chips along each side, as in 4x4 or 2x2x4, or a slice's name");
  } else if (chips > 0 && std::has_single_bit(static_cast<unsigned>(chips))) {
    const int power = std::bit_width(static_cast<unsigned>(chips)) - 1;
    sides = {1 << (power / 2), 1 << ((power + 1) / 2)};
  } else {
    return base::fail(Code::kInvalidArgument, "how do ", chips, " chips lie? Give --tpu-topology 4x4");
  }
  sides.resize(3, 1);
  int64_t product = 1;
  for (const int side : sides) product = product * side;
  if (product != chips)
    return base::fail(Code::kInvalidArgument, "--tpu-topology ", topology, " has ", product,
                      " chips, but hosts × processes per host are ", chips,
                      ": expected one process per chip");
  return base::join(sides, ",");
}

bool is_usual_slice(int hosts, int chips_per_host) {
  return chips_per_host == 4 ? std::has_single_bit(static_cast<unsigned>(hosts))
                             : chips_per_host == 8 && hosts == 1;
}

}  // namespace sluice::pod
