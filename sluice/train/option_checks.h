// Checks for numbers and texts of TrainOptions that are wrong with any data and on any machine. All of these
// throw sluice::Error (kInvalidArgument), which names the flag, what was expected and what was found.
#pragma once

#include <cstdint>
#include <string>

#include "sluice/train/options.h"

namespace sluice::train {

// Checks that a whole number is from `least` to 2⁵³; the product of a larger one may overflow.
void at_least(const char* flag, int64_t value, int64_t least);

// Reads --max-bad: "0.1%" is a share, 0.001; "25" is a number of samples.
double max_bad_of(const std::string& text);

// Checks the options of the data: its order, what is left out, images and mixtures.
void check_data_numbers(const TrainOptions& options);
// Checks the options of the weights' update: rates, momentum, decay, label smoothing, and the target.
void check_recipe_numbers(const TrainOptions& options);
// Checks the schedule of the learning rate, as far as possible without the length of an epoch.
void check_schedule(const TrainOptions& options);
// Checks --devices, --plugin and the processes of the environment. Fails with kFailedPrecondition if the
// environment is wrong.
void check_machine(const TrainOptions& options);
// Checks that the weights of an image model's last layer fit into the memory of this machine.
void check_classes(const TrainOptions& options);

}  // namespace sluice::train
