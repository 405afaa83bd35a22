// Mix: one stream of batches from several data sets.
//
//   auto photos = WebDataset("photos-{000..099}.tar").shuffle(10'000).images("jpg").labels("cls").crop(224);
//   auto sketches = WebDataset("sketches-{0..9}.tar").shuffle(1'000).images("png").labels("cls").crop(224);
//   auto train = Mix({{photos.batch(128), 0.7}, {sketches.batch(128), 0.3}});
//   auto stream = train.open({.epoch = 0});
//
// Each source is decoded and augmented as its own description says, and is read pass after pass: each of its
// samples comes once a pass, and the next epoch continues where the last one ended. Every stretch of an epoch
// is mixed in the proportions of the whole. An epoch consists of whole global batches: samples that do not
// fill one come in the next epoch.
//
// As for one set, the order depends only on the seeds, the shares, the epoch and the global batch, not on
// hosts or threads, and a part reads no more than its replicas' samples. A state is as exact as for one
// set (dataset.h).
//
// All sources are shuffled, with the same batch() and interleave(). Settings of a stream and not of a source
// (workers, prefetch, on_error, max_bad, mixup, cutmix, and the seed of the mixing) are taken from the first
// source. Batch::sources names the source of each sample, and Sample::source does so for map functions.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sluice/base/export.h"
#include "sluice/data/dataset.h"

SLUICE_API_BEGIN
namespace sluice::data {

class MixtureOrder;

// The meaning of the numbers of a mixture's sources.
enum class MixBy {
  kShare,   // shares of an epoch's samples, in proportion to each other
  kRepeat,  // how often each sample of the source comes in an epoch
  kChoose,  // samples of the source in an epoch
};

class Mix : public Dataset {
 public:
  struct Source {
    WebDataset dataset;
    double amount = 1;
    std::string name = "";  // for reports; empty: the first shard's
  };
  // Throws for amounts that are not above 0 (shares may be 0), and if the sources' settings differ.
  explicit Mix(std::vector<Source> sources, MixBy by = MixBy::kShare);
  // Joins the sets: each sample of each set comes once an epoch.
  static Mix join(const std::vector<WebDataset>& datasets);

  // The number of samples of an epoch, with kShare. Default: the number that the sources have together.
  Mix& epoch_samples(std::int64_t samples);
  // Sets other shares from a global batch on, counted over all epochs. Calls come in ascending order.
  Mix& from(std::int64_t batch, std::vector<double> shares);
  // Makes shares refer to the samples' sizes, such as tokens: a source's share of the samples is its share ÷
  // the mean size of its samples. The mean of its first `samples` samples counts, decoded once, not
  // augmented.
  Mix& by_size(std::function<double(const Sample&)> size, std::int64_t samples = 1000);

  std::unique_ptr<Stream> open(const OpenOptions& options) const override;
  std::unique_ptr<Stream> resume(const std::string& state, const OpenOptions& options) const override;
  std::string state(const OpenOptions& options) const override;

  std::int64_t size() const override;  // before the epoch is cut to whole batches
  std::int64_t batches(std::int64_t replicas = 1, std::int64_t epoch = 0) const override;
  std::int64_t batch_size() const override;
  Remainder remainder() const override { return Remainder::kDrop; }
  const std::vector<float>& mean() const override;
  const std::vector<float>& deviation() const override;

  // The samples that an epoch takes from a source, on all replicas together.
  struct Taken {
    std::string name;
    std::int64_t samples = 0;  // in this epoch
    double passes = 0;         // through the source since the first epoch, this one included
  };
  std::vector<Taken> taken(std::int64_t epoch, std::int64_t replicas = 1) const;

 private:
  struct Change {
    std::int64_t batch = 0;
    std::vector<double> shares;
  };
  struct Known;

  void check_shares(const std::vector<double>& shares) const;
  std::vector<double> mean_sizes() const;
  std::vector<Change> all_changes() const;
  // Returns the changes as shares of the samples, which add up to 1.
  std::vector<Change> sample_shares() const;
  std::shared_ptr<const MixtureOrder> order(std::int64_t replicas) const;
  std::string state_words(const OpenOptions& options) const;

  std::vector<Source> sources_;
  MixBy by_;
  std::int64_t epoch_samples_ = 0;  // 0: the number that the sources have together
  std::vector<Change> changes_;
  std::function<double(const Sample&)> size_;
  std::int64_t sized_samples_ = 0;
  std::shared_ptr<Known> known_;  // answers that copies share
};

}  // namespace sluice::data
SLUICE_API_END
