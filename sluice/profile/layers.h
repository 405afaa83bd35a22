// Divides the time of a step among its layers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sluice/base/span.h"
#include "sluice/profile/kernel_calls.h"

namespace sluice::profile {

// The peaks of a machine; 0: unknown.
struct Peaks {
  double flops_per_second = 0, bytes_per_second = 0;
  std::string source = {};  // "measured on 2 threads"
};

// One layer in one pass, or a piece of the compiler's code between two of them. All numbers are for one step.
struct LayerRow {
  enum class Kind {
    kLayer,     // library kernels, or operations of a device, of one layer
    kCompiled,  // XLA's code outside of the kernels' calls
  };
  Kind kind = Kind::kLayer;
  std::string name;  // "layer1.0.conv1"; "XLA, between layer1.0.conv1 forward and layer1.0.bn1 forward"
  std::string pass;  // "forward", "backward", "update"; "": not known
  double nanoseconds = 0, calls = 0;
  double flops = 0;  // of the calls with known operations
  double bytes = 0;  // 0: unknown
};

struct LayerTable {
  std::vector<LayerRow> rows;  // the longest first
  double step_nanoseconds = 0;
  // The time of a step with no program on the device; nullopt if it is not known.
  std::optional<double> idle_nanoseconds;
  std::string unit = "step";  // what the numbers refer to
  int64_t dropped = 0;        // calls without room
  Peaks peaks;

  double nanoseconds(LayerRow::Kind kind) const;
};

// Makes a table from calls of kernels. The time in [begin, end), which contains `steps` steps, goes to the
// running calls, in equal parts if there are several. While no call runs but a program is on the device, it
// goes to XLA's code between the last call that ended and the next one that begins in this program. Calls and
// programs that extend past the window count with their part inside. `programs` do not overlap; calls and
// programs are sorted by their begin.
LayerTable layers_of(const std::vector<NamedCall>& calls, const std::vector<base::SpanRecord>& programs,
                     int64_t begin, int64_t end, double steps);

// The limit of a row: its time compared with the longer of the times that the machine needs at its peaks to
// do the row's operations and to move its bytes. nullopt if the peaks or the row's work are unknown.
struct Bound {
  bool by_compute = false;  // else by memory
  double share = 0;         // of the peak, 0 … 1; above 1 if a kernel does less work than its formula says
};
std::optional<Bound> bound_of(const LayerRow& row, const Peaks& peaks);

// Return a readable table with at most `max_rows` rows, and the whole table as JSON.
std::string layers_in_words(const LayerTable& table, size_t max_rows = 60);
std::string layers_as_json(const LayerTable& table);

}  // namespace sluice::profile
