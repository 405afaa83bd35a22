// The sections of TrainOptions: the rows of each, and its checks. All checks throw sluice::Error
// (kInvalidArgument), which names the flag, what was expected and what was found.
#pragma once

#include <string>
#include <vector>

#include "sluice/base/flag.h"
#include "sluice/train/options.h"

namespace sluice::train {

// The order in which trackers list the settings of a run: in the order of --help, but for these, which come
// after it. A setting of a higher rank comes later.
namespace ranks {
enum Rank : int { kFirst, kClipping, kSmoothing, kAverages, kMixing, kImages, kTexts, kPrecision, kSeed };
}

// The rows over `o`, which must outlive them, in an order of their own: in_help_order() sorts them.
std::vector<base::Flag> model_rows(TrainOptions& o);
std::vector<base::Flag> length_rows(TrainOptions& o);
std::vector<base::Flag> evaluation_rows(TrainOptions& o);
std::vector<base::Flag> weights_rows(TrainOptions& o);
std::vector<base::Flag> trials_rows(TrainOptions& o);
std::vector<base::Flag> optimizer_rows(TrainOptions& o);
std::vector<base::Flag> schedule_rows(TrainOptions& o);
std::vector<base::Flag> data_rows(TrainOptions& o);
std::vector<base::Flag> augmentation_rows(TrainOptions& o);
std::vector<base::Flag> language_rows(TrainOptions& o);
std::vector<base::Flag> machine_rows(TrainOptions& o);
std::vector<base::Flag> logging_rows(TrainOptions& o);
std::vector<base::Flag> checkpoint_rows(TrainOptions& o);

// The checks of options that depend on each other, after each row was checked.
void check_weights(const TrainOptions& o);
void check_trials(const TrainOptions& o);
void check_optimizer(const TrainOptions& o);
void check_schedule(const TrainOptions& o);
void check_data(const TrainOptions& o);
void check_augmentation(const TrainOptions& o);

// Checks the name of an image model, and that it can do what the options ask for.
void check_model(const TrainOptions& o);
// Checks that there is something to train on. `own_sets`: the data does not come from the options.
void check_sets(const TrainOptions& o, bool own_sets);
// Checks that the weights of an image model's last layer fit into the memory of this machine.
void check_classes(const TrainOptions& o);
// Checks the devices, the plugin and the processes of the environment. Fails with kFailedPrecondition if the
// environment is wrong.
void check_machine(const TrainOptions& o);
// Checks that at most one run of its own is asked for. Only for runs of `sluice train`.
void check_finders(const TrainOptions& o);

}  // namespace sluice::train
