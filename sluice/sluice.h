// Everything that a training program needs: #include <sluice/sluice.h>.
#pragma once

#include <torch/torch.h>

#include "sluice/base/error.h"
#include "sluice/data/dataset.h"
#include "sluice/data/mixture.h"
#include "sluice/device/capture/capture.h"
#include "sluice/device/device.h"
#include "sluice/device/exact.h"
#include "sluice/device/pad.h"
#include "sluice/device/padded_layers.h"
#include "sluice/device/recompute.h"
#include "sluice/device/sharding/shard.h"
#include "sluice/device/start/without_values.h"
#include "sluice/generate/generate.h"
#include "sluice/generate/score.h"
#include "sluice/metrics/metrics.h"
#include "sluice/models/language/language.h"
#include "sluice/models/models.h"
#include "sluice/replica/collectives.h"
#include "sluice/session/feed.h"
#include "sluice/session/files/save.h"
#include "sluice/session/files/tensor_set.h"
#include "sluice/session/pretrained/pretrained.h"
#include "sluice/session/session.h"
#include "sluice/train/options.h"
#include "sluice/train/trainer.h"
