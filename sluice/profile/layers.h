// Where the time of a step goes, layer by layer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sluice/base/span.h"
#include "sluice/profile/kernel_calls.h"

namespace sluice::profile {

// What a machine can do at most; 0: not known.
struct Peaks {
  double flops_per_second = 0, bytes_per_second = 0;
  std::string source = {};  // "measured on 2 threads"
};

// One layer in one pass, or a piece of the compiler's code between two of them. All numbers are a step's.
struct LayerRow {
  enum class Kind {
    kLayer,     // library kernels, or operations of a device, of one layer
    kCompiled,  // XLA's code that no kernel's call tells of
  };
  Kind kind = Kind::kLayer;
  std::string name;  // "layer1.0.conv1"; "XLA, between layer1.0.conv1 forward and layer1.0.bn1 forward"
  std::string pass;  // "forward", "backward", "update"; "": not known
  double nanoseconds = 0, calls = 0;
  double flops = 0;  // of those calls whose are known
  double bytes = 0;  // 0: not known
};

struct LayerTable {
  std::vector<LayerRow> rows;  // the longest first
  double step_nanoseconds = 0;
  // Of a step, while no program was on the device; nothing where that is not known.
  std::optional<double> idle_nanoseconds;
  std::string unit = "step";  // what the numbers are of
  int64_t dropped = 0;        // calls for which there was no room
  Peaks peaks;

  double nanoseconds(LayerRow::Kind kind) const;
};

// From calls of kernels. Time within [begin, end), which are so many steps, goes to the calls that run: in
// equal parts where several do. Where none runs, but a program is on the device, it goes to XLA's code
// between the call that ended last and the one that begins next in this program. What reaches out of the
// window counts by the part that lies in it. `programs` do not overlap; calls and programs by their begin.
LayerTable layers_of(const std::vector<NamedCall>& calls, const std::vector<base::SpanRecord>& programs,
                     int64_t begin, int64_t end, double steps);

// What a row is bound by: its time against the shorter of the times in which the machine could do its
// operations and move its bytes. Nothing where the peaks or the row's work are not known.
struct Bound {
  bool by_compute = false;  // else by memory
  double share = 0;         // of the peak, 0 … 1; above 1 where a kernel needs less than its formula says
};
std::optional<Bound> bound_of(const LayerRow& row, const Peaks& peaks);

// A table for people, with at most so many rows; the same in whole as JSON.
std::string layers_in_words(const LayerTable& table, size_t max_rows = 60);
std::string layers_as_json(const LayerTable& table);

}  // namespace sluice::profile
