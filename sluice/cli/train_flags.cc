#include "sluice/cli/train_flags.h"

#include "sluice/base/strings.h"
#include "sluice/cli/verb.h"

namespace sluice::cli {
namespace {

// The largest number of GiB and MiB that is a number of bytes.
constexpr std::int64_t kMaxSize = 1 << 20;

}  // namespace

// clang-format off
std::vector<Flag> train_flags(TrainFlags& flags) {
  train::TrainOptions& o = flags.options;
  return {
      // group, flag, value, unit, help
      {"Recipe", "--model", &o.model, "", "resnet18, resnet50, cifar_resnet20, mlp, lenet, transformer, …"},
      {"Recipe", "--weights", &o.weights, "", "Start from these: safetensors, a state dict of Python's torch.save, or a checkpoint; also gs://…, s3://…, az://…, hf://… and https://…"},
      {"Recipe", "--batch-size", &o.batch_size, "samples", "Per replica"},
      {"Recipe", "--global-batch-size", &o.global_batch_size, "samples", "All replicas and accumulated batches together, 0: not used"},
      {"Recipe", "--test-batch-size", &o.test_batch_size, "samples", "Per replica, 0: as --batch-size"},
      {"Recipe", "--accumulate", &o.accumulate, "batches", "Batches for one update"},
      {"Recipe", "--epochs", &o.epochs, "", "Passes over the training set"},
      {"Recipe", "--steps-per-epoch", &o.steps_per_epoch, "", "Updates in an epoch, 0: the whole training set"},
      {"Recipe", "--max-steps", &o.max_steps, "", "Updates of the run, 0: as many as --epochs have; schedules end there, too"},
      {"Recipe", "--max-time", &flags.max_time, "", "End the run after this time, 8h or 1h30m, tested and saved; what came before --resume counts; empty: never"},
      {"Recipe", "--test-every-epochs", &o.test_every_epochs, "epochs", "How often a test, and at the end of the run"},
      {"Recipe", "--patience", &o.patience, "tests", "End the run after so many tests in a row without a better one, 0: never"},
      {"Recipe", "--min-delta", &o.min_delta, "", "By how much a test must be better for --patience, accuracy as a share of 1"},
      {"Recipe", "--save-top-k", &o.save_top_k, "checkpoints", "Keep those of the so many best tests, as top-STEP in the log folder; 0: best alone"},
      {"Recipe", "--ema", &o.ema, "", "Decay of an exponential moving average of the weights, such as 0.999, which tests and best have; 0: none"},
      {"Recipe", "--ema-warmup", &o.ema_warmup, "", "Average over fewer steps at first: the decay is at most (1 + steps) / (10 + steps)"},
      {"Recipe", "--swa-start", &o.swa_start, "epoch", "From the end of this epoch on the mean of the weights at the ends of epochs (SWA), which tests and best have; 0: none"},
      {"Recipe", "--limit-test-batches", &o.limit_test_batches, "batches", "Of each replica in a test, 0: the whole test set"},
      {"Recipe", "--overfit-batches", &o.overfit_batches, "batches", "Train on these first batches again and again, to see whether the model can learn them; 0: off"},
      {"Recipe", "--fast-dev-run", &o.fast_dev_run, "steps", "Try everything with so many steps and as many batches of a test, and keep nothing; 0: off"},
      {"Recipe", "--optimizer", choice("--optimizer", o.optimizer), "", "What updates the weights"},
      {"Recipe", "--lr", &o.lr, "", "Learning rate; never scaled by the number of replicas"},
      {"Recipe", "--momentum", &o.momentum, "", "Of sgd and rmsprop"},
      {"Recipe", "--nesterov", &o.nesterov, "", "Nesterov's momentum of sgd"},
      {"Recipe", "--betas", &flags.betas, "", "Of adam and adamw, such as 0.9,0.95; empty: 0.9,0.999"},
      {"Recipe", "--eps", &o.eps, "", "Of all optimizers but sgd, 0: PyTorch's own"},
      {"Recipe", "--weight-decay", &o.weight_decay, "", "Of all weights"},
      {"Recipe", "--no-decay", &o.no_decay, "", "No weight decay of biases and norms: parameters with fewer than two dimensions"},
      {"Recipe", "--label-smoothing", &o.label_smoothing, "", "Share of each label spread over all classes"},
      {"Recipe", "--clip-norm", &o.clip_norm, "", "Largest norm of the gradients, 0: no limit"},
      {"Recipe", "--clip-value", &o.clip_value, "", "Largest element of the gradients, 0: no limit"},
      {"Recipe", "--lr-schedule", choice("--lr-schedule", o.lr_schedule), "", "How the learning rate goes down: docs/training.md"},
      {"Recipe", "--warmup-epochs", &o.warmup_epochs, "epochs", "Linear rise from 0; -1: the schedule's own"},
      {"Recipe", "--warmup-steps", &o.warmup_steps, "", "Instead of --warmup-epochs, 0: not used"},
      {"Recipe", "--decay-epochs", &o.decay_epochs, "epochs", "wsd: the fall at the end; -1: a tenth of the run"},
      {"Recipe", "--lr-every-epochs", &o.lr_every_epochs, "epochs", "step, WarmupAndExponentialDecay: divide so often"},
      {"Recipe", "--lr-divisor", &o.lr_divisor, "", "step, WarmupAndExponentialDecay: divide by this"},
      {"Recipe", "--min-lr", &o.min_lr, "", "The schedule goes no lower"},
      {"Recipe", "--seed", &o.seed, "", "Of weights, order, augmentation and dropout"},
      {"Recipe", "--target-accuracy", &o.target_accuracy, "%", "Exit with status 21 below this, 0: no target"},

      {"Data", "--train", &o.train, "", "Training shards: paths, {0000..0639} and {a,b} braces, globs, :: lists, @file"},
      {"Data", "--mix", RepeatedText{&flags.mix}, "", "Instead of --train, once for each set of a mixture: SHARDS=NUMBER, such as 'photos-*.tar=0.7'"},
      {"Data", "--mix-by", choice("--mix-by", o.mix_by), "", "What the numbers of --mix are: shares of the samples, how often each sample comes in an epoch, or samples in an epoch"},
      {"Data", "--mix-from", RepeatedText{&flags.mix_from}, "", "Other shares from a step on: STEP=SHARE,SHARE…, such as 10000=0.5,0.5; once for each change"},
      {"Data", "--epoch-samples", &o.epoch_samples, "samples", "In an epoch of a mixture by shares, 0: as many as the sets have together"},
      {"Data", "--test", &o.test, "", "Test shards; without them nothing is evaluated"},
      {"Data", "--where", RepeatedText{&o.where}, "", "Only training samples for which this holds, such as 'cls in 0,3', 'json:split = train' or '__key__ like n01*'; several must all hold"},
      {"Data", "--test-where", RepeatedText{&o.test_where}, "", "The same for the test set"},
      {"Data", "--classes", &o.classes, "", "Number of classes"},
      {"Data", "--images", &o.images, "", "Extensions of the image in a sample"},
      {"Data", "--labels", &o.labels, "", "Extension of the class number in a sample"},
      {"Data", "--channels", &o.channels, "", "3: colour, 1: grey"},
      {"Data", "--shuffle", &o.shuffle, "samples", "Shuffle buffers of all processes together"},
      {"Data", "--streams", &o.streams, "", "Streams that an epoch is dealt to, a multiple of the replicas; the order depends on it"},
      {"Data", "--remainder", choice("--remainder", o.remainder), "", "Samples that do not fill a batch; carry: into the next epoch"},
      {"Data", "--shard-size", &o.shard_size, "samples", "In each training shard, 0: counted"},
      {"Data", "--original-workers", &o.original_workers, "", "The order of PyTorch's DataLoader over webdataset with so many workers, 0: the default order"},
      {"Data", "--original-samples", &o.original_samples, "samples", "What an epoch is believed to have with --original-workers, 0: counted"},
      {"Data", "--on-error", choice("--on-error", o.on_error), "", "Bad shards and samples; retry: read again, then skip"},
      {"Data", "--max-bad", &o.max_bad, "", "Bad samples left out of an epoch at most: 0.1% or a number"},
      {"Data", "--allow-unknown-loss", &o.allow_unknown_loss, "", "Take a damaged shard that has no index up to the damage: --max-bad cannot count what it loses"},
      {"Data", "--max-sample", &o.max_sample, "MiB", "Memory that one sample's members and decoding may claim", {1, kMaxSize}},
      {"Data", "--max-buffered", &o.max_buffered, "GiB", "Memory that undecoded samples in shuffle buffers and batches, and unpackers may hold", {1, kMaxSize}},
      {"Data", "--max-pixels", &o.max_pixels, "millions", "Pixels of an image at most", {1, kMaxSize}},
      {"Data", "--exif-rotation", &o.exif_rotation, "", "Rotate images as the camera was held (JPEG, PNG, WebP); off: as they are stored"},
      {"Data", "--resize", &o.resize, "pixels", "Shorter side after resizing, 0: as it is"},
      {"Data", "--crop", &o.crop, "pixels", "Random crop in training, centre crop in the test, 0: none"},
      {"Data", "--crop-padding", &o.crop_padding, "pixels", "Border of zeros before the random crop"},
      {"Data", "--mixup", &o.mixup, "", "Alpha of mixup in training, such as 0.2; 0: none"},
      {"Data", "--cutmix", &o.cutmix, "", "Alpha of CutMix in training, such as 1.0; 0: none"},
      {"Data", "--random-resized-crop", &o.random_resized_crop, "pixels", "Random part in training, resized to this side; in the test the middle; 0: none"},
      {"Data", "--flip", &o.flip, "", "Mirror half of the training images"},
      {"Data", "--color-jitter", &flags.color_jitter, "", "Change the colours of training images at random: brightness,contrast,saturation,hue, such as 0.4,0.4,0.4,0.1; empty: no"},
      {"Data", "--rand-augment", &flags.rand_augment, "", "RandAugment of training images: operations,magnitude (0 to 30), such as 2,9; empty: none"},
      {"Data", "--auto-contrast", &o.auto_contrast, "", "Share of the training images whose channels are stretched to 0…255, 0: none"},
      {"Data", "--mean", &flags.mean, "", "Of the channels, in 0…1, such as 0.49,0.48,0.45; empty: 0.5 each"},
      {"Data", "--std", &flags.deviation, "", "Of the channels, in 0…1; empty: 0.25 each"},
      {"Data", "--workers", &o.workers, "", "Decoding threads, 0: one for each core, at most 8"},
      {"Data", "--cache", &o.cache, "", "Folder that keeps shards from buckets and web servers"},
      {"Data", "--cache-size", &o.cache_size, "GiB", "Bytes in it at most", {1, kMaxSize}},
      {"Data", "--prefetch", &o.prefetch, "MiB", "Batches ahead on the host", {1, kMaxSize}},
      {"Data", "--fake-data", &o.fake_data, "", "Random images instead of shards"},
      {"Data", "--image-size", &o.image_size, "pixels", "Of fake data"},
      {"Data", "--train-size", &o.train_size, "samples", "Of fake data"},
      {"Data", "--test-size", &o.test_size, "samples", "Of fake data"},

      {"Machine", "--device", choice("--device", o.device), "", "xla, or cpu for LibTorch's own CPU (eager); --plugin chooses what xla is"},
      {"Machine", "--plugin", &o.plugin, "", base::str("PJRT plugin of xla: ", kPluginHelp)},
      {"Machine", "--devices", &flags.devices, "", "Number of devices, all, or a list of them: [5] or 5,; empty: all of a TPU or GPU, 1 of a CPU"},
      {"Machine", "--device-ids", &flags.device_ids, "", "These devices: 5 or 0,1,4"},
      {"Machine", "--precision", choice("--precision", o.precision), "", "Of products in the forward and backward pass (weights stay f32)"},
      {"Machine", "--sync-batch-norm", &o.sync_batch_norm, "", "BatchNorm's statistics over the batches of all replicas"},
      {"Machine", "--check-replicas", &o.check_replicas, "steps", "Compare the weights on all replicas so often (slow), 0: never"},
      {"Machine", "--cpu-kernels", OnOffValue{&flags.cpu_kernels}, "", "off: XLA's CPU plugin compiles every operation itself, without calling oneDNN"},
      {"Machine", "--strict", &flags.strict, "", "An operation that xla cannot do, or a read within a step, is an error"},
      {"Machine", "--detect-anomaly", &flags.detect_anomaly, "", "The first NaN is an error that names its operation and layer (slow)"},

      {"Output", "--logdir", &o.logdir, "", "Folder for checkpoints, metrics and TensorBoard events; also gs://bucket/folder, s3://…, az://…"},
      {"Output", "--log-steps", &o.log_steps, "steps", "How often a line, counted within the epoch; of a shorter epoch at its end"},
      {"Output", "--log-workers", choice("--log-workers", o.log_workers), "", "Whose lines: leader prints the mean over all replicas, all: each process that of its own"},
      {"Output", "--metrics", &o.metrics, "", "Of each test besides loss and accuracy: top5 (any number), precision, recall, f1, auroc (also f1_micro, f1_weighted, f1_classes …), confusion, perplexity; such as top5,f1,confusion"},
      {"Output", "--save-steps", &o.save_steps, "steps", "How often a checkpoint, counted within the epoch, and after each epoch; 0: only then"},
      {"Output", "--resume", OptionalText{&o.resume}, "", "Go on from a checkpoint folder, gs://…, s3://… or az://…; without a value: from LOGDIR/last, if there"},
      {"Output", "--profile", &o.profile, "steps", "Profile these steps of this start: 10:13 for 10, 11 and 12; into the log folder"},
      {"Output", "--report", &o.report, "", "Print what the device did at the end"},
      {"Output", "--profiler-port", &o.profiler_port, "", "Take profiles for TensorBoard's capture button and sluice profile on this port of each process: 9012 of the loopback interface, 0.0.0.0:9012 of all; the second process of a host has the port behind it; empty: none"},
      {"Output", "--status-port", &o.status_port, "", "Answer /status (JSON) and /metrics (Prometheus) on this port of the leader: 9100 of the loopback interface, 0.0.0.0:9100 of all; empty: none"},
      {"Output", "--json", &o.json, "", "JSON lines on standard output, everything else on standard error"},
      {"Output", "--config", &flags.config, "", "TOML file with any of these flags; the command line wins"},
  };
}
// clang-format on

}  // namespace sluice::cli
