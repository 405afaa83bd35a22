// All options of `sluice train`, and its result. The defaults are the ones that --help shows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sluice/base/export.h"
#include "sluice/data/batch.h"
#include "sluice/train/choices.h"

SLUICE_API_BEGIN

namespace sluice::train {

struct TrainOptions {
  Task task = Task::kImages;

  // The model: a name that models::create() takes. For a language model: one of models::language_presets(), a
  // config.json, or a folder with one.
  std::string model;
  int64_t classes = 0;
  // The weights to start from, as read_weights takes them (session/weights.h). For a language model also a
  // folder of transformers, which then defines the model.
  std::string weights;

  // The data: shards as data::WebDataset takes them.
  std::string train;
  // Instead of `train`: a mixture of several sets, in amounts that mix_by interprets (data/mixture.h).
  struct MixedShards {
    std::string shards;
    double amount = 1;
  };
  std::vector<MixedShards> mix;
  MixBy mix_by = MixBy::kShare;
  int64_t epoch_samples = 0;  // of a mixture by shares; 0: all samples of the sets together
  // Other shares of the mixture, from a step on.
  struct MixChange {
    int64_t step = 0;
    std::vector<double> shares;
  };
  std::vector<MixChange> mix_from;
  std::string test;
  // More test sets; their values are called NAME/loss and so on.
  struct NamedShards {
    std::string name, shards;
  };
  std::vector<NamedShards> more_tests;
  // Conditions on samples of the training and of the test set; a sample must meet all of them
  // (WebDataset::where()).
  std::vector<std::string> where, test_where;
  std::string images = data::kImageExtensions;
  std::string labels = "cls";
  int64_t channels = 3;                    // 3: colour, 1: grey
  int64_t shuffle = 10000;                 // samples in the shuffle buffers of all processes together
  int64_t streams = 64;                    // streams that share an epoch: a multiple of the replicas
  Remainder remainder = Remainder::kDrop;  // what happens to samples that do not fill a batch
  int64_t original_workers = 0;            // above 0: the order of PyTorch's DataLoader with N workers
  int64_t original_samples = 0;            // samples that such an epoch is assumed to have; 0: counted
  int64_t shard_size = 0;                  // samples in each training shard; 0: counted
  OnError on_error = OnError::kStop;       // for shards and samples
  std::string max_bad = "0.1%";            // the most bad samples of an epoch that may be left out
  bool allow_unknown_loss = false;         // allow damaged shards to lose an unknown number of samples
  int64_t max_sample = 1024;               // the most that a sample's members and decoding may use [MiB]
  int64_t max_buffered = 8;                // the most that shuffle buffers, batches and unpackers hold [GiB]
  int64_t max_pixels = 100;                // the most of an image [millions]
  int64_t prefetch = 256;                  // batches ahead on the host [MiB]
  std::string cache;                       // folder that keeps remote shards; empty: none
  int64_t cache_size = 100;                // the most that the cache holds [GiB]
  int64_t resize = 0;                      // pixels of the shorter side; 0: not resized
  int64_t crop = 0;  // side of a random crop in training, of a centre crop in the test; 0: none
  int64_t crop_padding = 4;
  // Side of RandomResizedCrop in training; the test's images are resized to 8/7 of it and cropped to their
  // centre. 0: none.
  int64_t random_resized_crop = 0;
  // Mixes the images and the losses of neighbours in a batch: the alpha of the Beta distribution of their
  // shares; 0: off. With both, each row gets one of the two.
  double mixup = 0, cutmix = 0;
  bool exif_rotation = false;
  bool flip = false;
  // Changes to training images, after the steps above and in this order; see data/dataset.h.
  std::vector<double> color_jitter;   // brightness, contrast, saturation, hue; empty: none
  std::vector<int64_t> rand_augment;  // operations, magnitude; empty: none
  double auto_contrast = 0;           // share of the images
  std::vector<float> mean;            // of the channels, in 0…1; empty: 0.5 each
  std::vector<float> deviation;       // empty: 0.25 each
  int workers = 0;                    // decoding threads; 0: one for each core, at most 8
  bool fake_data = false;             // random images instead of shards
  int64_t image_size = 32;            // side of fake data's images, pixels
  int64_t train_size = 12800;         // samples of fake data
  int64_t test_size = 1280;           // samples of fake data's test; 0: no test

  // For language models, whose `train` and `test` are token files (text/token_file.h); for kClassify they are
  // shards.
  std::string tokenizer;  // a tokenizer.json or its folder; empty: the one next to the token files, if any
  int64_t length = 0;     // tokens of a row; 0: the model's positions, but at most 1024
  std::string shapes;     // "16x512,32x256": the shapes of batches of single documents; empty: running text
  bool pack = false;      // fill rows of `length` with whole documents
  LongDocument long_documents = LongDocument::kError;  // for documents longer than a row
  double mask_share = 0.15;                            // the share of the tokens that mlm hides
  std::string texts = "txt";                           // kClassify: extensions of the text in a sample

  // The recipe.
  int64_t batch_size = 128;       // per replica
  int64_t global_batch_size = 0;  // of all replicas and accumulated batches; above 0 it takes precedence
  int64_t test_batch_size = 0;    // per replica; 0: as in training
  int64_t accumulate = 1;         // batches for one update
  int64_t epochs = 18;
  int64_t steps_per_epoch = 0;  // 0: the whole training set
  int64_t max_steps = 0;        // updates of the run; 0: all of its epochs
  // For token files: the update that reaches this number of trained tokens is the last one; 0: no limit.
  int64_t max_tokens = 0;
  double max_seconds = 0;  // of the run, including the parts before a resume; 0: no limit
  int64_t test_every_epochs = 1;
  int64_t test_every_steps = 0;  // updates of the run, in addition; 0: no tests within epochs
  int64_t patience = 0;          // the run ends after this number of tests without a better value; 0: never
  double min_delta = 0;          // patience only counts a value as better if it is by more than this
  int64_t save_top_k = 0;        // the number of checkpoints of the best tests, in top-STEP
  double ema = 0;  // decay of an average of the weights, which tests measure; 0: none (WeightAverage)
  bool ema_warmup = false;
  int64_t swa_start = 0;  // the epoch, from 1, with which the weights' mean over the epochs begins; 0: none
  // Parameters that are not trained: their names or their modules' names, with * for any letters.
  std::vector<std::string> freeze;
  int64_t unfreeze_epoch = 0;      // the epoch, from 1, from which they are trained; 0: never
  int64_t limit_test_batches = 0;  // of each replica; 0: the whole test set
  int64_t overfit_batches = 0;     // above 0: every epoch is the first N batches of epoch 0
  // Above 0: a trial of one epoch with this number of batches, and a test with the same number, in a log
  // folder that is deleted.
  int64_t fast_dev_run = 0;
  OptimizerKind optimizer = OptimizerKind::kSgd;
  double lr = 0.1;
  bool find_batch_size = false;  // instead of a training: trials that suggest one (batch_size_finder.h)
  bool find_lr = false;          // instead of a training: a sweep that suggests one (learning_rate_finder.h)
  double momentum = 0.9;         // of SGD and RMSprop
  bool nesterov = false;         // of SGD
  std::vector<double> betas;     // of Adam and AdamW; empty: 0.9, 0.999
  double eps = 0;                // for all but SGD; 0: the optimizer's own
  double weight_decay = 1e-4;
  bool no_decay = false;  // for parameters with fewer than two dimensions: biases and the parameters of norms
  double label_smoothing = 0;
  bool recompute = false;       // compute layers again in the backward pass (models::TransformerOptions)
  double clip_norm = 0;         // of all gradients together; 0: no limit
  double clip_value = 0;        // of each element of a gradient; 0: no limit
  OnNan on_nan = OnNan::kStop;  // for an update's loss or gradients
  LrSchedule lr_schedule = LrSchedule::kCosine;
  double warmup_epochs = -1;  // -1: the schedule's own
  int64_t warmup_steps = 0;   // instead of warmup_epochs
  int64_t warmup_tokens = 0;  // likewise, for token files: the update that reaches them ends the warm-up
  double decay_epochs = -1;   // of kWsd; -1: a tenth of the run
  int64_t decay_steps = 0;    // instead of decay_epochs
  int64_t decay_tokens = 0;   // likewise, for token files: the last tokens of the run
  double lr_every_epochs = 20;
  double lr_divisor = 5;
  double min_lr = 0;
  uint64_t seed = 42;
  double target_accuracy = 0;  // percent

  // The machine.
  DeviceKind device = DeviceKind::kXla;
  std::string plugin;  // see DeviceOptions
  int devices = 0;     // 0: all of a TPU or GPU, 1 of a CPU
  std::vector<int> device_ids;
  Precision precision = Precision::kF32;
  std::optional<bool> cpu_kernels, strict, detect_anomaly, exact;  // see DeviceOptions
  bool sync_batch_norm = false;                                    // statistics over all replicas' batches
  int64_t check_replicas = 0;  // compare the parameters on all replicas every N steps; 0: never

  // The output.
  std::string logdir = "sluice-run";
  int64_t log_steps = 20;                        // a line every N steps of an epoch
  LogWorkers log_workers = LogWorkers::kLeader;  // the processes whose lines are printed
  std::string metrics;  // of each test besides loss and accuracy: names separated by commas (metrics/names.h)
  // A tracking server of MLflow, http(s)://host[:port]; empty: none. Then the experiment there.
  std::string mlflow;
  std::string mlflow_experiment = "Default";
  bool histograms = false;  // of the weights, for TensorBoard (Histograms)
  int64_t log_images = 0;   // the number of images of each test, for TensorBoard
  int64_t save_steps = 0;   // a checkpoint every N steps of an epoch, and at its end
  double save_minutes = 0;  // a checkpoint after N minutes without one; 0: never
  std::string
      resume;  // "": from the start; "auto": from logdir's last checkpoint if there is one; else a folder
  std::string profile;  // "10:13": the steps 10 to 12 of this start; empty: none
  int64_t summary = 0;  // levels of modules in a table of the model's parameters; 0: none
  bool report = false;
  std::string profiler_port;  // of each process: 9012, or 0.0.0.0:9012; empty: none (see Options)
  std::string status_port;    // of the leader: 9100, or 0.0.0.0:9100; empty: none (see Options)
  bool json = false;
  bool quiet = false;  // print nothing
  std::string config;  // all options as text, kept in checkpoints
};

// The exit statuses of the program.
enum ExitStatus {
  kDone = 0,
  kFailed = 1,
  kUsage = 2,
  kTargetMissed = 21,
  kInterrupted = 130,
  kTerminated = 143
};

struct TrainResult {
  int exit_status = kDone;
  int64_t steps = 0;                                   // updates of the whole run, earlier parts included
  double accuracy = -1;                                // percent, of the last evaluation; -1: none
  double best_accuracy = -1;                           // percent
  std::vector<std::pair<std::string, double>> values;  // all values of the last evaluation, shares in percent
  std::optional<double> best;                          // of the monitored value
  double loss = 0;                                     // of the last logged step
  double examples_per_second = 0;
};

// The steps [first, end) of --profile; both are 0 for "". Throws sluice::Error for an invalid text.
struct ProfileSteps {
  int64_t first = 0, end = 0;
};
ProfileSteps profile_steps(const std::string& text);
// Throws sluice::Error for options that are wrong with any data and on any machine: an unknown model (with
// the nearest known one), a missing or senseless number.
void check(const TrainOptions& options);
// Sets the defaults for training language models: AdamW (betas 0.9, 0.95; mlm 0.9, 0.98, kClassify 0.9,
// 0.999), learning rate 5e-4 (kClassify 5e-5), weight decay 0.1 of matrices only, clip_norm 1, a warm-up of a
// tenth of the first epoch, 8 rows per batch, 1 epoch (kClassify 32 rows, 3 epochs).
void set_language_recipe(TrainOptions& options);
// Checks the options, then trains. Throws sluice::Error.
TrainResult train(const TrainOptions& options);

}  // namespace sluice::train

SLUICE_API_END
