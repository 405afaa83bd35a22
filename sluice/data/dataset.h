// WebDataset: batches from tar shards, read and decoded ahead by threads.
//
//   auto train = sluice::data::WebDataset("train-{0000..0639}.tar")
//                    .shuffle(10'000).images("jpg;png").labels("cls").crop(32, 4).flip().batch(128);
//   auto stream = train.open(/*epoch=*/0, /*part=*/process, /*parts=*/processes, /*skip_batches=*/0);
//   while (std::optional<sluice::data::Batch> batch = stream->next()) use(batch->image, batch->label);
//
// - A WebDataset is a description: cheap to copy, and nothing is opened before open(), size() or batches().
// - open() may be called as often as wanted, for any epoch; each Stream has its own threads and memory.
// - Every part gets the same number of batches, always: batches(parts). With pad(), one may be of padding
//   alone.
//
// The order of a shuffled dataset depends on seed, epoch and global batch size G alone: not on the number of
// hosts, threads or on timing. Each epoch interleaves S ranges (64; see interleave()): the shards are
// permuted, laid end to end and cut into S equal ranges; each is shuffled in its share of the buffer; sample
// i of the epoch is the next one of range i mod S. Global batch k has the samples k·G … (k + 1)·G − 1, where
// G = batch_size() × replicas (each part feeds one replica, or as many as OpenOptions says), and row j of it
// belongs to replica j mod N. So a part opens the ranges of its replicas only, and all parts together read
// the data once. S must be a multiple of the number of replicas: an error names the next one that is.
// - This needs the number of samples in each shard: from index files (train-0000.idx beside train-0000.tar,
//   made by `sluice data index`), from a sizes.json in the folder, or by reading all headers once. With index
//   files a shard that two ranges share is not read twice.
// - What comes from stdin cannot be counted: it is one range, for one part.
// A dataset without shuffle() is handed out in the order of its shards. With several replicas each of the N
// gets the N-th part of it, one after the other; every sample comes exactly once.
//
// - A position in an epoch says everything: skip_batches, or Stream::state(), begins at batch k exactly as if
//   k batches had been taken and thrown away, with any number of workers and hosts. What was consumed is
//   neither decoded nor, where the shards' index is known, read; only the shuffle buffers are filled again.
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

  // Shards in an order drawn for each epoch, and samples drawn from buffers which hold `samples` in all
  // ranges of all parts together (and about `buffer_bytes`, by the mean size of the shards' samples,
  // whichever is less). A buffer is full before the first sample leaves it.
  WebDataset& shuffle(std::int64_t samples, std::int64_t buffer_bytes = std::int64_t{1} << 30);
  WebDataset& seed(std::uint64_t seed);         // default 0
  WebDataset& interleave(std::int64_t ranges);  // S, default 64; the order depends on it
  // Every shard holds exactly this many samples: nothing needs to be counted. Found otherwise, an error.
  WebDataset& shard_size(std::int64_t samples);
  // The order of PyTorch's DataLoader over Python's webdataset with split_by_node and split_by_worker, where
  // every N-th shard goes to a replica and every W-th of those to a worker of it; each worker has its own
  // shuffle buffer and batches its own samples. The epoch ends after samples ÷ G steps, rounded down, and one
  // more (0: of what the shards hold), or when the first replica has nothing more. It depends on the number
  // of replicas and workers, and loses samples: for reproducing such a job only.
  WebDataset& original(std::int64_t workers, std::int64_t samples = 0);
  WebDataset& epoch(std::int64_t epoch);  // the epoch that open() without arguments reads, default 0

  // Which members make a sample; alternatives are separated by `;` and matched against the whole extension.
  WebDataset& images(std::string extensions, std::string spec = "rgb8");
  WebDataset& labels(std::string extensions);
  WebDataset& classes(std::int64_t count);  // labels outside 0 … count − 1 are errors
  // The same as WebDataset spells it; "__key__" and "__url__" are a sample's key and shard, as texts. Specs:
  // l8 rgb8 rgba8 (uint8), l rgb rgba (float32 in 0…1), and those with `torch` before them, which make plain
  // arrays [channels, height, width]. Without decode(), images stay bytes; all else is decoded.
  WebDataset& decode(std::string spec);
  template <typename... Extensions>
  WebDataset& to_tuple(Extensions&&... extensions) {
    return set_fields({std::string(std::forward<Extensions>(extensions))...});
  }
  // Members with this extension (or this last part of it) are decoded by `function`: bytes → Value, called
  // from several threads. An image that it makes is not augmented.
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

  // Only the samples for which all of these hold. Each filter is asked once for every sample, when the
  // samples are counted, whatever the number of epochs: so the order, the number of steps, dataset[i] and
  // resuming are those of a set that holds nothing else. For this the shards are read once, but for members
  // that no filter looks at; for keys alone their index files are enough. left_out() counts the others; when
  // nothing is left, it is an error. Streams that can be read only once cannot be filtered. A condition on a
  // member, a field of its JSON, or the key: `cls in 0,3`, `cls not in 7`, `json:split = train`,
  // `json:size.width >= 224`, `__key__ like n0144*`; see order/filter.h.
  WebDataset& where(const std::string& condition);
  // `members`: extensions whose bytes `take` looks at, as "json;cls". It is called from several threads.
  WebDataset& filter(std::function<bool(const SampleView&)> take, const std::string& members = "");

  // Images are rotated as the camera was held (orientation_of() in image.h); else they stay as they are
  // stored.
  WebDataset& exif_rotation();
  // Augmentation of all images of a sample, in the order of the calls. Pixels are uint8 for these.
  WebDataset& resize(std::int64_t shorter_side);  // bilinear with antialiasing, as Pillow's; keeps the ratio
  WebDataset& center_crop(std::int64_t side);
  WebDataset& crop(std::int64_t side, std::int64_t padding = 0);  // random place, after a border of zeros
  WebDataset& flip();                                             // left to right for half of the samples
  // A random part, resized to side × side: torchvision's RandomResizedCrop, with its defaults. `scale`: the
  // part's share of the area; `ratio`: its width ÷ height.
  WebDataset& random_resized_crop(std::int64_t side, std::pair<double, double> scale = {0.08, 1.0},
                                  std::pair<double, double> ratio = {3.0 / 4, 4.0 / 3});
  // torchvision's ColorJitter: factors of brightness, contrast and saturation from 1 − x … 1 + x (not below
  // 0), a turn of the hues of at most `hue`, up to 0.5 of their circle, in an order that is drawn. 0: none.
  WebDataset& color_jitter(double brightness, double contrast, double saturation, double hue);
  // torchvision's RandAugment: so many of its 14 operations, at a magnitude of 0 to 30. Nearest neighbours;
  // what comes from outside is zero.
  WebDataset& rand_augment(std::int64_t operations = 2, std::int64_t magnitude = 9);
  // torchvision's RandomAutocontrast: each channel stretched to 0…255 for this share of the samples.
  WebDataset& autocontrast(double probability = 0.5);
  // Images become float32, (pixel / 255 − mean) / deviation, after the steps above: four times the bytes of
  // uint8 pixels that the device normalises.
  WebDataset& normalize_on_host(const std::vector<float>& mean, const std::vector<float>& deviation);
  // Mixes each image of a batch with the one in the row before it: mixup with a share drawn from
  // Beta(alpha, alpha), CutMix with a part of that area. With both, each row gets one of them. Batch says how
  // the labels go. The draws depend on seed, epoch and sample; the neighbour on the batch, and so on `parts`.
  WebDataset& mixup(double alpha);
  WebDataset& cutmix(double alpha);
  // Handed on for whoever normalises (on the device): (pixel / 255 − mean) / deviation, one number a channel.
  WebDataset& normalize(std::vector<float> mean, std::vector<float> deviation);

  // Instead of batch(): batches of samples of similar length, each in one of a few shapes, such as 32 samples
  // of up to 256 tokens or 16 of up to 512. A sample goes into the shortest shape that holds it; when every
  // replica has a full batch of a shape, these are the next global batch, so that all replicas have the same
  // shape at every step. Arrays among the fields with as many rows as the sample is long are padded to the
  // shape's length, after map(). batch.lengths says how long each sample is.
  // - `member`: whose length counts, as "npy" or "tokens.npy;npy"; options.length measures it. Lengths are
  // found
  //   out once, as filters are.
  // - What does not fill a batch at the end of an epoch is left out, or with pad() (and keep()) comes in
  // batches that
  //   are filled up. carry(), original() and Mix are not for this.
  // - The order depends on the number of replicas too, not on that of hosts.
  WebDataset& bucket_by_length(const std::string& member, std::vector<LengthShape> shapes,
                               LengthOptions options = {});
  WebDataset& batch(std::int64_t samples);  // rows of one replica's batch
  WebDataset& batched(std::int64_t samples) { return batch(samples); }
  WebDataset& drop_last();
  WebDataset& pad();
  WebDataset& keep();
  WebDataset& carry();

  WebDataset& on_error(OnError policy);
  // How many bad samples of an epoch a part may leave out: a number of them from 1 on, or below 1 a share of
  // the part's samples, rounded down. Default 0.001.
  WebDataset& max_bad(double limit);
  // Without this, a damaged shard whose samples neither an index nor sizes.json counts is an error also when
  // bad samples are left out: nobody knows how many it has lost.
  WebDataset& allow_unknown_loss();

  // Threads that decode. Default: one for each core, at most 8, and more of them, up to one for each core,
  // when batches are late because of decoding; the next stream begins with as many.
  WebDataset& workers(int threads);
  WebDataset& prefetch(int batches);                // finished or in work ahead of the consumer, default 4
  WebDataset& prefetch_memory(std::int64_t bytes);  // that they may hold, but for one batch; default 256 MiB

  // Keeps remote shards in a folder of this machine, at most so many bytes of them; see cache.h. Any number
  // of processes may share the folder.
  WebDataset& cache(std::string folder, std::int64_t bytes);

  std::unique_ptr<Stream> open() const;  // of the epoch set by epoch()
  std::unique_ptr<Stream> open(std::int64_t epoch, std::int64_t part = 0, std::int64_t parts = 1,
                               std::int64_t skip_batches = 0) const;
  std::unique_ptr<Stream> open(const OpenOptions& options) const override;
  std::unique_ptr<Stream> resume(const std::string& state, const OpenOptions& options) const override;
  std::string state(const OpenOptions& options) const override;

  // Sample `index` of all, in the shards' order: decoded, augmented and mapped as in epoch(). Only its own
  // bytes are read where an index says where they are, else its shard up to there. Threads: any.
  Sample operator[](std::int64_t index) const;
  // The index of the sample with this key, the first of several; nothing when no sample has it. Reads the
  // index files, or the headers, of all shards once.
  std::optional<std::int64_t> find(const std::string& key) const;

  // Samples of one epoch. Reads the index files, or the headers, of all shards once; copies of this dataset
  // share the answer.
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
