// Reasons for which options of several sections have no effect.
#pragma once

#include "sluice/base/flag.h"
#include "sluice/train/options.h"

namespace sluice::train {

base::Idle without_images(const TrainOptions& o);       // the task has no images
base::Idle without_samples(const TrainOptions& o);      // token files have neither samples nor classes
base::Idle without_texts(const TrainOptions& o);        // the task has images
base::Idle without_token_files(const TrainOptions& o);  // the task has images or single texts
base::Idle without_shards(const TrainOptions& o);       // fake data
base::Idle without_test(const TrainOptions& o);         // there is no test set
base::Idle without_xla(const TrainOptions& o);          // LibTorch's own CPU
base::Idle with_shapes(const TrainOptions& o);          // shapes say how many rows a batch has
base::Idle in_dev_run(const TrainOptions& o);           // a trial of some steps, which keeps nothing
base::Idle in_sweep(const TrainOptions& o);             // a sweep, which logs nothing of a run

}  // namespace sluice::train
