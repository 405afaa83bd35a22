// WebDataset: batches from tar shards, read and decoded ahead by threads.
//
//   auto train = sluice::data::WebDataset("train-{0000..0639}.tar")
//                    .shuffle(10'000).images("jpg;png").labels("cls").crop(32, 4).flip().batch(128);
//   auto stream = train.open(/*epoch=*/0, /*part=*/process, /*parts=*/processes, /*skip_batches=*/0);
//   while (std::optional<sluice::data::Batch> batch = stream->next()) use(batch->image, batch->label);
//
// - A WebDataset is a description: cheap to copy, and nothing is opened before open(), size() or batches().
// - open() may be called any number of times, for any epoch; each Stream has its own threads and memory.
// - Every part always gets the same number of batches: batches(parts). With pad(), a batch of a part may
//   consist of padding only.
//
// The order of a shuffled dataset depends only on seed, epoch and global batch size G, not on the number of
// hosts, threads or on timing. Each epoch interleaves S ranges (64; see interleave()): the shards are
// permuted, laid end to end and cut into S equal ranges; each range is shuffled in its share of the buffer;
// sample i of the epoch is the next one of range i mod S. Global batch k has the samples k·G … (k + 1)·G − 1,
// where G = batch_size() × N. N is the number of replicas: each part feeds one, or OpenOptions::replicas of
// them. Row j of the batch belongs to replica j mod N. So a part opens only the ranges of its replicas, and
// all parts together read the data once. S must be a multiple of the number of replicas: an error names the
// next one that is.
// - This needs the number of samples in each shard: from index files (train-0000.idx next to train-0000.tar,
//   made by `sluice data index`), from a sizes.json in the folder, or by reading all headers once. With index
//   files a shard that two ranges share is not read twice.
// - The samples of stdin cannot be counted: stdin is one range, for one part.
// A dataset without shuffle() is handed out in the order of its shards. With N replicas, each gets one N-th
// of the dataset, in the order of the replicas; every sample comes exactly once.
//
// - A position in an epoch determines the rest of it: skip_batches, or Stream::state(), begins at batch k
//   exactly as if k batches had been taken and thrown away, with any number of workers and hosts. Samples
//   consumed before are not decoded, and not read either where the shards' index is known; only the shuffle
//   buffers are filled again.
//
// Errors are thrown as sluice::Error, by the functions below and by Stream::next(); they name shard, member
// and offset. Unknown specifications and invalid numbers throw at once.
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
#include "sluice/data/length_shape.h"
#include "sluice/data/sample_view.h"
#include "sluice/data/stream.h"

SLUICE_API_BEGIN
namespace sluice::data {

struct Filter;
struct PartOptions;
struct ShardFacts;
struct StreamOptions;
struct StreamSource;

class WebDataset : public Dataset {
 public:
  // Shards: paths, `::` lists, {0000..0639} and {a,b} braces, globs, @file (a list, one a line), `-` (stdin).
  explicit WebDataset(std::string urls);
  explicit WebDataset(std::vector<std::string> urls);

  // Draws an order of the shards for each epoch, and samples from buffers that hold `samples` in all ranges
  // of all parts together (or about `buffer_bytes`, by the mean size of the shards' samples, if that is
  // less). A buffer is full before the first sample leaves it.
  WebDataset& shuffle(std::int64_t samples, std::int64_t buffer_bytes = std::int64_t{1} << 30);
  WebDataset& seed(std::uint64_t seed);         // default 0
  WebDataset& interleave(std::int64_t ranges);  // S, default 64; the order depends on it
  // States that every shard holds exactly this many samples, so that nothing needs to be counted. A shard
  // with another number is an error.
  WebDataset& shard_size(std::int64_t samples);
  // Reads in the order of PyTorch's DataLoader over Python's webdataset with split_by_node and
  // split_by_worker: every N-th shard goes to a replica, and every W-th of these to one of its workers; each
  // worker has its own shuffle buffer and batches its own samples. The epoch ends after samples ÷ G steps,
  // rounded down, plus one (0: the samples that the shards hold), or when the first replica has no more. The
  // order depends on the number of replicas and workers, and loses samples: only for reproducing such a job.
  WebDataset& original(std::int64_t workers, std::int64_t samples = 0);
  WebDataset& epoch(std::int64_t epoch);  // the epoch that open() without arguments reads, default 0

  // The members of a sample; alternatives are separated by `;` and matched against the whole extension.
  WebDataset& images(std::string extensions, std::string spec = "rgb8");
  WebDataset& labels(std::string extensions);
  WebDataset& classes(std::int64_t count);  // labels outside 0 … count − 1 are errors
  // to_tuple() and decode() are these in webdataset's spelling; "__key__" and "__url__" are a sample's key
  // and shard, as texts. Specs: l8 rgb8 rgba8 (uint8), l rgb rgba (float32 in 0…1), and these with `torch`
  // before them, which make plain arrays [channels, height, width]. Without decode(), images stay bytes;
  // everything else is decoded.
  WebDataset& decode(std::string spec);
  template <typename... Extensions>
  WebDataset& to_tuple(Extensions&&... extensions) {
    return set_fields({std::string(std::forward<Extensions>(extensions))...});
  }
  // Decodes members with this extension (or this last part of it) by `function`: bytes → Value, called from
  // several threads. An image that it makes is not augmented.
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

  // Takes only the samples for which all conditions and filters hold. Each filter is called once for every
  // sample, when the samples are counted, for any number of epochs. So the order, the number of steps,
  // dataset[i] and resuming are the same as for a set that holds only the samples taken. For this the shards
  // are read once, except members that no filter looks at; for conditions on keys only, their index files are
  // enough. left_out() counts the other samples; when nothing is left, it is an error. Streams that can be
  // read only once cannot be filtered. A condition is on a member, a field of its JSON, or the key: `cls in
  // 0,3`, `cls not in 7`, `json:split = train`, `json:size.width >= 224`, `__key__ like n0144*`; see
  // order/filter.h.
  WebDataset& where(const std::string& condition);
  // `members`: the extensions whose bytes `take` reads, as "json;cls". `take` is called from several threads.
  WebDataset& filter(std::function<bool(const SampleView&)> take, const std::string& members = "");

  // Rotates images as the camera was held (orientation_of() in image.h); without it they stay as stored.
  WebDataset& exif_rotation();
  // Augmentations of all images of a sample, in the order of the calls. Pixels are uint8 for them.
  WebDataset& resize(std::int64_t shorter_side);  // bilinear with antialiasing, as in Pillow; keeps the ratio
  WebDataset& center_crop(std::int64_t side);
  WebDataset& crop(std::int64_t side, std::int64_t padding = 0);  // random place, after a border of zeros
  WebDataset& flip();                                             // left to right for half of the samples
  // Cuts out a random part and resizes it to side × side: torchvision's RandomResizedCrop, with its defaults.
  // `scale`: the part's share of the area; `ratio`: its width ÷ height.
  WebDataset& random_resized_crop(std::int64_t side, std::pair<double, double> scale = {0.08, 1.0},
                                  std::pair<double, double> ratio = {3.0 / 4, 4.0 / 3});
  // torchvision's ColorJitter: factors of brightness, contrast and saturation from 1 − x … 1 + x (not below
  // 0), and a shift of the hues by at most `hue`, up to 0.5 of their circle, in a random order. 0: this
  // change is left out.
  WebDataset& color_jitter(double brightness, double contrast, double saturation, double hue);
  // torchvision's RandAugment: `operations` of its 14 operations, at a magnitude of 0 to 30. Nearest
  // neighbours; pixels from outside the image are zero.
  WebDataset& rand_augment(std::int64_t operations = 2, std::int64_t magnitude = 9);
  // torchvision's RandomAutocontrast: each channel stretched to 0…255 for this share of the samples.
  WebDataset& autocontrast(double probability = 0.5);
  // Converts images to float32, (pixel / 255 − mean) / deviation, after the steps above: four times the bytes
  // of uint8 pixels that the device normalises.
  WebDataset& normalize_on_host(const std::vector<float>& mean, const std::vector<float>& deviation);
  // Mixes each image of a batch with the one in the row before it: mixup with a share drawn from Beta(alpha,
  // alpha), CutMix with a part of that area. With both, each row gets one of them. Batch says how to combine
  // the labels. The draws depend on seed, epoch and sample; the neighbour depends on the batch, so on
  // `parts`.
  WebDataset& mixup(double alpha);
  WebDataset& cutmix(double alpha);
  // Stores the numbers for the consumer that normalises (on the device): (pixel / 255 − mean) / deviation,
  // one number a channel.
  WebDataset& normalize(std::vector<float> mean, std::vector<float> deviation);

  // Replaces batch(): batches of samples of similar length, each in one of a few shapes, such as 32 samples
  // of up to 256 tokens or 16 of up to 512. A sample goes into the shortest shape that holds it. When every
  // replica has a full batch of a shape, these are the next global batch, so that all replicas have the same
  // shape at every step. Array fields whose number of rows is the sample's length are padded to the shape's
  // length, after map(). batch.lengths has the length of each sample.
  // - `member`: the member whose length counts, as "npy" or "tokens.npy;npy"; options.length measures it.
  //   Lengths are found out once, as filters are.
  // - Samples that do not fill a batch at the end of an epoch are left out, or with pad() (and keep()) come
  //   in batches that are filled up. carry(), original() and Mix do not support this.
  // - The order also depends on the number of replicas, but not on the number of hosts.
  WebDataset& bucket_by_length(const std::string& member, std::vector<LengthShape> shapes,
                               LengthOptions options = {});
  WebDataset& batch(std::int64_t samples);  // rows of one replica's batch
  WebDataset& batched(std::int64_t samples) { return batch(samples); }
  WebDataset& drop_last();
  WebDataset& pad();
  WebDataset& keep();
  WebDataset& carry();

  WebDataset& on_error(OnError policy);
  // The number of bad samples that a part may leave out of an epoch: from 1 on a count, below 1 a share of
  // the part's samples, rounded down. Default 0.001.
  WebDataset& max_bad(double limit);
  // Allows a damaged shard whose samples neither an index nor sizes.json counts. Without this it is an error
  // also when bad samples are left out, because the number of its lost samples is unknown.
  WebDataset& allow_unknown_loss();

  // The number of threads that decode. Default: one for each core, at most 8. When batches are late because
  // of decoding, the default grows up to one for each core, and the next stream begins with that number.
  WebDataset& workers(int threads);
  WebDataset& prefetch(int batches);  // batches that are finished or in work ahead of the consumer, default 4
  WebDataset& prefetch_memory(std::int64_t bytes);  // the bytes that these may hold, except for one batch;
                                                    // default 256 MiB

  // Keeps remote shards in a folder of this machine, up to `bytes` in all; see cache.h. Any number of
  // processes may share the folder.
  WebDataset& cache(std::string folder, std::int64_t bytes);

  std::unique_ptr<Stream> open() const;  // the epoch set by epoch()
  std::unique_ptr<Stream> open(std::int64_t epoch, std::int64_t part = 0, std::int64_t parts = 1,
                               std::int64_t skip_batches = 0) const;
  std::unique_ptr<Stream> open(const OpenOptions& options) const override;
  std::unique_ptr<Stream> resume(const std::string& state, const OpenOptions& options) const override;
  std::string state(const OpenOptions& options) const override;

  // Returns sample `index` of all, in the shards' order: decoded, augmented and mapped as in epoch(). Reads
  // only its own bytes where an index says where they are, else its shard up to there. Threads: any.
  Sample operator[](std::int64_t index) const;
  // Returns the index of the sample with this key, the first of several; nothing when no sample has it. Reads
  // the index files, or the headers, of all shards once.
  std::optional<std::int64_t> find(const std::string& key) const;

  // Returns the number of samples of one epoch. Reads the index files, or the headers, of all shards once;
  // copies of this dataset share the answer.
  std::int64_t size() const override;
  std::int64_t left_out() const;  // samples of the shards that filters do not take
  std::int64_t batches(std::int64_t replicas = 1, std::int64_t epoch = 0) const override;

  std::vector<std::string> urls() const;  // the shards, all patterns expanded
  std::int64_t batch_size() const override;
  std::int64_t classes() const;  // 0 when not set
  bool shuffled() const;
  bool original_order() const;
  Remainder remainder() const override;
  const std::vector<float>& mean() const override;
  const std::vector<float>& deviation() const override;

  struct Settings;

 private:
  friend class Mix;
  WebDataset& set_fields(std::vector<std::string> extensions);
  WebDataset& add_filter(Filter filter);
  WebDataset& add_map(std::function<void(Sample&)> function);
  Settings& change();
  void check() const;
  PartOptions part_options(const OpenOptions& options) const;
  StreamSource stream_source(const OpenOptions& options) const;
  StreamOptions stream_options(const OpenOptions& options) const;
  std::shared_ptr<const ShardFacts> facts_for(const OpenOptions& options, bool counted) const;
  std::string state_words(const OpenOptions& options) const;

  std::shared_ptr<const Settings> settings_;
};

}  // namespace sluice::data
SLUICE_API_END
