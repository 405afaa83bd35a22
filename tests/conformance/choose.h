// Which samples a run takes: by file, operation, element type, in parts and in a shuffled order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/conformance/sample.h"

namespace sluice::conformance {

struct Choice {
  std::string filter;  // parts of operations' names, separated by commas; "": all
  std::vector<std::string> files;
  std::string dtype;
  int part = 0, parts = 1;
  uint64_t seed = 0;  // of the order of the samples; 0: as they stand in the files

  // Takes a flag of the command line (--filter, --file, --dtype, --part, --seed); false if it is another.
  bool read(const std::string& flag, const std::string& value);
  bool takes_file(const std::string& name) const;
  bool takes_op(const std::string& name) const;
};

// Returns whether a name holds one of these parts, which commas separate.
bool holds_part(const std::string& name, const std::string& parts);

// Returns the samples of all files of a folder, by their names; throws SampleError.
std::vector<Sample> read_folder(const std::string& folder);

// Returns whether element types of floats change a sample's inputs.
bool has_floats(const Sample& sample);

// Returns the samples of a run, in its order: those that have the type asked for, in that type alone. Samples
// without floats belong to f32.
std::vector<const Sample*> chosen_samples(std::vector<Sample>& samples, const Choice& choice);

}  // namespace sluice::conformance
