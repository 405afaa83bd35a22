// The options of a training as rows: from them are made the flags of `sluice train`, the keys of its TOML
// files, docs/flags.md, the checks, the settings that trackers show, and the messages for flags that have no
// effect. Each section of TrainOptions has a file of rows here, which also checks how its options go
// together.
#pragma once

#include <string>
#include <vector>

#include "sluice/base/flag.h"
#include "sluice/train/options.h"

namespace sluice::train {

// Returns the rows of each section over these options, which must outlive them.
std::vector<std::vector<base::Flag>> option_sections(TrainOptions& options);
// Returns all rows in the order of --help.
std::vector<base::Flag> option_rows(TrainOptions& options);

// Checks what can be checked without data or device. `named`: the options name the model. `own_sets`: the
// data does not come from the options. Throws sluice::Error (kInvalidArgument), which names the flag.
void check_options(const TrainOptions& options, bool named, bool own_sets = false);

// Whether the options have a test set.
bool has_test(const TrainOptions& options);
inline constexpr const char* kPatienceNeedsTest =
    "--patience counts tests, and there is no test set: give one with --test";

// Checks the names of the test sets after the first one. `has_first`: there is a first one. Throws as
// check_options does.
void check_test_names(const std::vector<std::string>& names, bool has_first);

}  // namespace sluice::train
