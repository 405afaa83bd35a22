// The options of the training and test sets, and of how they are read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/base/export.h"
#include "sluice/data/batch.h"
#include "sluice/train/choices.h"
#include "sluice/train/options/values.h"

SLUICE_API_BEGIN

namespace sluice::train {

struct DataSection {
  // Shards as data::WebDataset takes them; for language models token files (text/token_file.h), for kClassify
  // shards.
  std::string train;
  // Instead of `train`: a mixture of several sets, in amounts that mix_by interprets (data/mixture.h).
  struct MixedShards {
    std::string shards;
    double amount = 1;
  };
  std::vector<MixedShards> mix;
  MixBy mix_by = MixBy::kShare;
  // Other shares of the mixture, from a step on.
  struct MixChange {
    int64_t step = 0;
    std::vector<double> shares;
  };
  std::vector<MixChange> mix_from;
  int64_t epoch_samples = 0;  // of a mixture by shares; 0: all samples of the sets together
  std::string test;
  // More test sets; their values are called NAME/loss and so on.
  struct NamedShards {
    std::string name, shards;
  };
  std::vector<NamedShards> more_tests;
  // Conditions on samples of the training and of the test set; a sample must meet all of them
  // (WebDataset::where()).
  std::vector<std::string> where, test_where;
  int64_t classes = 0;
  std::string images = data::kImageExtensions;
  std::string labels = "cls";
  int64_t channels = 3;                    // 3: colour, 1: grey
  int64_t shuffle = 10000;                 // samples in the shuffle buffers of all processes together
  int64_t streams = 64;                    // streams that share an epoch: a multiple of the replicas
  Remainder remainder = Remainder::kDrop;  // what happens to samples that do not fill a batch
  int64_t shard_size = 0;                  // samples in each training shard; 0: counted
  int64_t original_workers = 0;            // above 0: the order of PyTorch's DataLoader with N workers
  int64_t original_samples = 0;            // samples that such an epoch is assumed to have; 0: counted
  OnError on_error = OnError::kStop;       // for shards and samples
  MaxBad max_bad;                          // the most bad samples of an epoch that may be left out
  bool allow_unknown_loss = false;         // allow damaged shards to lose an unknown number of samples
  int64_t max_sample = 1024;               // the most that a sample's members and decoding may use [MiB]
  int64_t max_buffered = 8;                // the most that shuffle buffers, batches and unpackers hold [GiB]
  int64_t max_pixels = 100;                // the most of an image [millions]
  int workers = 0;                         // decoding threads; 0: one for each core, at most 8
  std::string cache;                       // folder that keeps remote shards; empty: none
  int64_t cache_size = 100;                // the most that the cache holds [GiB]
  int64_t prefetch = 256;                  // batches ahead on the host [MiB]
  bool fake_data = false;                  // random images instead of shards
  int64_t image_size = 32;                 // side of fake data's images, pixels
  int64_t train_size = 12800;              // samples of fake data
  int64_t test_size = 1280;                // samples of fake data's test; 0: no test
};

}  // namespace sluice::train

SLUICE_API_END
