// WebDataset: batches from tar shards, read and decoded ahead by threads.
//
//   auto train = sluice::data::WebDataset("train-{0000..0639}.tar")
//                    .shuffle(10'000).images("jpg;png").labels("cls").crop(32, 4).flip().batch(128);
//   auto stream = train.open(/*epoch=*/0, /*part=*/process, /*parts=*/processes, /*skip_batches=*/0);
//   while (std::optional<sluice::data::Batch> batch = stream->next()) use(batch->image, batch->label);
//
// - A WebDataset is a description: cheap to copy, and nothing is opened before open(), size() or batches().
// - open() may be called as often as wanted, for any epoch; each Stream has its own threads and memory.
// - The order of samples and their augmentation depend on (seed, epoch) alone: not on the number of workers,
//   not on timing, and not on `parts`: global batch k has the samples k·G … (k+1)·G − 1 of the epoch's order,
//   where G = batch_size() × parts, and part p gets the p-th run of batch_size() samples of it.
// - All parts get the same number of batches: batches(parts). With pad(), a part may get a batch of padding
// alone.
// - A process that feeds R replicas opens one stream with R times the rows and gives each replica its run:
//   `WebDataset(d).batch(d.batch_size() * R).open(epoch, process, processes)`.
// - skip_batches begins at batch k of the epoch, exactly as if k batches had been taken and thrown away, but
//   without decoding them: enough to go on from a checkpoint.
// - Every part reads all shards' bytes and decodes its own samples only.
//
// Errors are thrown as sluice::Error, by the functions below and by Stream::next(); they name shard, member
// and offset. Unknown specifications and senseless numbers throw at once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "sluice/base/export.h"
#include "sluice/data/batch.h"

SLUICE_API_BEGIN
namespace sluice::data {

// Where the time of a stream went, in seconds since it was opened. Busy and idle times are summed over
// threads.
struct Statistics {
  std::int64_t samples = 0;     // decoded
  std::int64_t batches = 0;     // handed out
  std::int64_t bytes = 0;       // read from shards
  std::int64_t shards = 0;      // finished
  double seconds = 0;           // since the stream was opened
  double reader_busy = 0;       // reading and shuffling
  double reader_idle = 0;       // waiting because enough is prefetched
  double decoder_busy = 0;      // decoding, augmenting, stacking
  double decoder_idle = 0;      // waiting for the reader
  double consumer_waiting = 0;  // inside next() with nothing ready: the run is input-bound for this long
};

// The batches of one epoch. One thread calls next(); statistics() may be called from any thread.
// Destroying a stream at any time stops its threads.
class Stream {
 public:
  virtual ~Stream() = default;
  // The next batch, or nothing at the end of the epoch. Throws what went wrong, and again on later calls.
  virtual std::optional<Batch> next() = 0;
  virtual Statistics statistics() const = 0;
};

// What becomes of the samples that do not fill the last global batch.
enum class Remainder {
  kDrop,  // left out of this epoch (the default after shuffle())
  kPad,   // a full batch, filled with zeros and marked in mask: every shape is the same
  kKeep,  // a smaller batch (the default without shuffle())
};

class WebDataset {
 public:
  // Shards: paths, `::` lists, {0000..0639} and {a,b} braces, globs, @file (a list, one a line), `-` (stdin).
  explicit WebDataset(std::string urls);
  explicit WebDataset(std::vector<std::string> urls);

  // Shards in an order drawn for each epoch, and samples drawn from a buffer of `samples` (and at most
  // `buffer_bytes`, whichever is reached first). The buffer is full before the first sample leaves it.
  WebDataset& shuffle(std::int64_t samples, std::int64_t buffer_bytes = std::int64_t{1} << 30);
  WebDataset& seed(std::uint64_t seed);   // default 0
  WebDataset& epoch(std::int64_t epoch);  // the epoch that open() without arguments reads, default 0

  // Which members make a sample; alternatives are separated by `;` and matched against the whole extension.
  WebDataset& images(std::string extensions, std::string spec = "rgb8");
  WebDataset& labels(std::string extensions);
  WebDataset& classes(std::int64_t count);  // labels outside 0 … count − 1 are errors
  // The same as WebDataset spells it. Specs: l8 rgb8 rgba8 (uint8), l rgb rgba (float32 in 0…1), and those
  // with `torch` before them, which make plain arrays [channels, height, width].
  WebDataset& decode(std::string spec);
  template <typename... Extensions>
  WebDataset& to_tuple(Extensions&&... extensions) {
    return set_fields({std::string(std::forward<Extensions>(extensions))...});
  }
  // Members with this extension (or this last part of it) are decoded by `function`: bytes → Value, called
  // from several threads. A picture that it makes is not augmented.
  WebDataset& decoder(std::string extension, std::function<Value(std::string_view)> function);
  // `function` changes a Sample in place, or takes one and returns another. It is called from several
  // threads, after decoding and augmentation, in the order of the map() calls.
  template <typename Function>
  WebDataset& map(Function function) {
    if constexpr (std::is_invocable_r_v<Sample, Function&, Sample&&>) {
      return add_map(
          [function = std::move(function)](Sample& sample) mutable { sample = function(std::move(sample)); });
    } else {
      return add_map(std::move(function));
    }
  }

  // Augmentation of all pictures of a sample, in the order of the calls. Pixels are uint8 for these.
  WebDataset& resize(std::int64_t shorter_side);  // bilinear with antialiasing, as Pillow's; keeps the ratio
  WebDataset& center_crop(std::int64_t side);
  WebDataset& crop(std::int64_t side, std::int64_t padding = 0);  // random place, after a border of zeros
  WebDataset& flip();                                             // left to right for half of the samples
  // A random part, resized to side × side: torchvision's RandomResizedCrop, with its defaults. `scale`: the
  // part's share of the area; `ratio`: its width ÷ height.
  WebDataset& random_resized_crop(std::int64_t side, std::pair<double, double> scale = {0.08, 1.0},
                                  std::pair<double, double> ratio = {3.0 / 4, 4.0 / 3});
  // Pictures become float32, (pixel / 255 − mean) / deviation, after the steps above: four times the bytes of
  // uint8 pixels that the device normalises.
  WebDataset& normalize_on_host(const std::vector<float>& mean, const std::vector<float>& deviation);
  // Mixes each picture of a batch with the one in the row before it: mixup with a share drawn from
  // Beta(alpha, alpha), CutMix with a part of that area. With both, each row gets one of them. Batch says how
  // the labels go. The draws depend on seed, epoch and sample; the neighbour on the batch, and so on `parts`.
  WebDataset& mixup(double alpha);
  WebDataset& cutmix(double alpha);
  // Handed on for whoever normalises (on the device): (pixel / 255 − mean) / deviation, one number a channel.
  WebDataset& normalize(std::vector<float> mean, std::vector<float> deviation);

  WebDataset& batch(std::int64_t samples);  // rows of one part's batch
  WebDataset& batched(std::int64_t samples) { return batch(samples); }
  WebDataset& drop_last();
  WebDataset& pad();
  WebDataset& keep();

  WebDataset& workers(int threads);   // that decode; default: one for each core, at most 8
  WebDataset& prefetch(int batches);  // finished or in work ahead of the consumer, default 4

  std::unique_ptr<Stream> open() const;  // of the epoch set by epoch()
  std::unique_ptr<Stream> open(std::int64_t epoch, std::int64_t part = 0, std::int64_t parts = 1,
                               std::int64_t skip_batches = 0) const;

  // Samples of one epoch. Reads the headers of all shards once; copies of this dataset share the answer.
  std::int64_t size() const;
  std::int64_t batches(std::int64_t parts = 1) const;  // that each part's stream hands out in an epoch

  std::vector<std::string> urls() const;  // the shards, all patterns expanded
  std::int64_t batch_size() const;
  std::int64_t classes() const;  // 0 when not set
  bool shuffled() const;
  Remainder remainder() const;
  const std::vector<float>& mean() const;
  const std::vector<float>& deviation() const;

  struct Settings;

 private:
  WebDataset& set_fields(std::vector<std::string> extensions);
  WebDataset& add_map(std::function<void(Sample&)> function);
  Settings& change();

  std::shared_ptr<const Settings> settings_;
};

}  // namespace sluice::data
SLUICE_API_END
