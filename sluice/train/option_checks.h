// Numbers and texts of TrainOptions that are wrong whatever the data and the machine are. All of these throw
// sluice::Error (kInvalidArgument), which names the flag, what was expected and what was found.
#pragma once

#include <cstdint>
#include <string>

#include "sluice/train/options.h"

namespace sluice::train {

// A whole number from `least` to 2⁵³, beyond which a product of two would be none.
void at_least(const char* flag, int64_t value, int64_t least);

// --max-bad: "0.1%" is a share, 0.001; "25" is a number of samples.
double max_bad_of(const std::string& text);

// Of the data: its order, what is left out, images and mixtures.
void check_data_numbers(const TrainOptions& options);
// Of the update of the weights: rates, momentum, decay, label smoothing, and the target.
void check_recipe_numbers(const TrainOptions& options);
// That the schedule of the learning rate can be, as far as the flags say it without the length of an epoch.
void check_schedule(const TrainOptions& options);
// That --devices, --plugin and the processes of the environment can be. kFailedPrecondition where the
// environment is wrong.
void check_machine(const TrainOptions& options);
// That the weights of an image model's last layer fit into the memory of this machine.
void check_classes(const TrainOptions& options);

}  // namespace sluice::train
