#include "sluice/train/recipe/sections.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/train/recipe/choice.h"
#include "sluice/train/recipe/parsed.h"
#include "sluice/train/recipe/reasons.h"
#include "sluice/train/recipe/recipe.h"

namespace sluice::train {
namespace recipe_data_detail {

// Limits sizes in GiB and MiB so that their bytes fit an int64.
constexpr int64_t kMaxSize = 1 << 20;
constexpr double kMaxSamples = 1e12;  // of a mixture

[[noreturn]] void refuse(const std::string& message) { throw_error(Code::kInvalidArgument, message); }

// Returns the texts before and after an equals sign.
std::pair<std::string, std::string> divided(const std::string& text, size_t equals, const char* flag,
                                            const char* expected) {
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    refuse(base::str(flag, " ", text, ": expected ", expected));
  return {text.substr(0, equals), text.substr(equals + 1)};
}

// Reads SHARDS=NUMBER, each.
std::vector<TrainOptions::MixedShards> read_mixture(const std::vector<std::string>& texts) {
  std::vector<TrainOptions::MixedShards> mix;
  for (const std::string& text : texts) {
    const char* expected = "SHARDS=NUMBER, such as 'photos-*.tar=0.7'";
    const auto [shards, number] = divided(text, text.rfind('='), "--mix", expected);
    const auto amount = base::parse_numbers<double>("--mix", number);
    if (amount.size() != 1) refuse(base::str("--mix ", text, ": expected ", expected));
    mix.push_back({shards, amount.front()});
  }
  return mix;
}

// Reads STEP=SHARE,SHARE, each.
std::vector<TrainOptions::MixChange> read_changes(const std::vector<std::string>& texts) {
  std::vector<TrainOptions::MixChange> changes;
  for (const std::string& text : texts) {
    const char* expected = "STEP=SHARE,SHARE…, such as 10000=0.5,0.5";
    const auto [step, shares] = divided(text, text.find('='), "--mix-from", expected);
    const auto number = base::parse_numbers<int64_t>("--mix-from", step);
    if (number.size() != 1) refuse(base::str("--mix-from ", text, ": expected ", expected));
    changes.push_back({number.front(), base::parse_numbers<double>("--mix-from", shares)});
  }
  return changes;
}

// Reads SHARDS and NAME=SHARDS.
void read_tests(const std::vector<std::string>& texts, TrainOptions& o) {
  o.more_tests.clear();
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    const bool named = equals != std::string::npos && text.find_first_of("/.:{*@") > equals;
    if (named)
      o.more_tests.push_back({text.substr(0, equals), text.substr(equals + 1)});
    else
      o.test = text;  // the last one wins, as with other flags
  }
}

void check_channels(int64_t channels) {
  if (channels != 1 && channels != 3)
    refuse(base::str("--channels is 3 (colour) or 1 (grey), not ", channels));
}

void check_amounts(const TrainOptions& o) {
  const bool shares = o.mix_by == MixBy::kShare;
  double sum = 0;
  for (const auto& [shards, amount] : o.mix) {
    const bool fits = shares ? amount >= 0 : amount > 0;
    if (!fits || !(amount < kMaxSamples))
      refuse(base::str("--mix ", shards, "=", amount, " takes ",
                       shares ? "a share of 0 or more" : "a number above 0", ", not ", amount));
    sum += amount;
  }
  if (!o.mix.empty() && !(sum > 0)) refuse("--mix: all shares are 0, expected at least one above");
}

void check_changes(const TrainOptions& o) {
  int64_t before = 0;
  for (const auto& [step, given] : o.mix_from) {
    const std::string flag = base::str("--mix-from ", step, "=", base::join(given, ","));
    if (step <= before) refuse(base::str(flag, ": expected a step above ", before, ", found ", step));
    before = step;
    const bool fit = std::all_of(given.begin(), given.end(),
                                 [](double share) { return share >= 0 && share < kMaxSamples; });
    if (given.size() != o.mix.size() || !fit || *std::max_element(given.begin(), given.end()) == 0)
      refuse(base::str(flag, ": expected ", o.mix.size(), " shares of 0 or more, one for each ",
                       "--mix and not all 0, found ", base::join(given, ",")));
  }
}

}  // namespace recipe_data_detail

// clang-format off
std::vector<base::Flag> data_rows(TrainOptions& o) {
  using base::Flag;
  using namespace recipe_data_detail;
  const base::Idle in_original_order = {o.original_workers > 0, {"--original-workers"}, "the order of --original-workers has neither streams nor a remainder"};
  const base::Idle without_mixture = {o.mix.empty(), {"--train", "--fake-data"}, "it requires --mix"};
  const base::Idle counts_samples = {o.mix_by != MixBy::kShare, {"--mix-by"}, base::str("the numbers of --mix-by ", name_of(o.mix_by), " say what an epoch has")};
  const base::Idle with_shards = {o.task == Task::kImages && !o.fake_data, {"--train", "--test"}, "it describes the images of --fake-data; with shards, Sluice reads it from the shards"};
  return {
      Flag{"Data", "--train", &o.train, "", "Read training shards: paths, {0000..0639} and {a,b} braces, globs, :: lists, @file"}
          .idle(without_shards(o)),
      Flag{"Data", "--mix", base::ParsedTexts{[&o](const auto& texts) { o.mix = read_mixture(texts); }}, "", "Train on a mixture of sets instead of --train: SHARDS=NUMBER, such as 'photos-*.tar=0.7'; once for each set"}
          .idle(without_shards(o)),
      Flag{"Data", "--mix-by", choice("--mix-by", o.mix_by), "", "Read the numbers of --mix as shares of the samples, as how often each sample comes in an epoch, or as samples in an epoch"}
          .idle(without_mixture),
      Flag{"Data", "--mix-from", base::ParsedTexts{[&o](const auto& texts) { o.mix_from = read_changes(texts); }}, "", "Change the shares from a step on: STEP=SHARE,SHARE…, such as 10000=0.5,0.5; once for each change"}
          .idle(without_mixture).idle(counts_samples),
      Flag{"Data", "--epoch-samples", &o.epoch_samples, "samples", "Put N samples into an epoch of a mixture by shares; 0: as many as the sets have together"}
          .at_least(0).idle(without_mixture).idle(counts_samples),
      Flag{"Data", "--test", base::ParsedTexts{[&o](const auto& texts) { read_tests(texts, o); }}, "", "Read test shards; without them nothing is evaluated. Name each further set as NAME=SHARDS; its values are called NAME/loss and so on"}
          .idle(without_shards(o)),
      Flag{"Data", "--where", base::RepeatedText{&o.where}, "", "Use only training samples for which this holds, such as 'cls in 0,3', 'json:split = train' or '__key__ like n01*'; repeatable, then all must hold"}
          .idle(without_samples(o)).idle(without_shards(o)),
      Flag{"Data", "--test-where", base::RepeatedText{&o.test_where}, "", "Use only test samples for which this holds, as --where does for training"}
          .idle(without_samples(o)).idle(without_shards(o)),
      Flag{"Data", "--classes", &o.classes, "", "Set the number of classes"}
          .idle(without_samples(o)),
      Flag{"Data", "--images", &o.images, "", "Find the image of a sample by these extensions"}
          .idle(without_images(o)).idle(without_shards(o)),
      Flag{"Data", "--labels", &o.labels, "", "Find the class number of a sample by this extension"}
          .idle(without_samples(o)).idle(without_shards(o)),
      Flag{"Data", "--channels", &o.channels, "", "Decode images to 3 channels (colour) or to 1 (grey)"}
          .checked([&o] { check_channels(o.channels); }).idle(without_images(o)),
      Flag{"Data", "--shuffle", &o.shuffle, "samples", "Hold N samples in the shuffle buffers of all processes together"}
          .at_least(0).idle(without_samples(o)).idle(without_shards(o)),
      Flag{"Data", "--streams", &o.streams, "", "Split an epoch into N streams, a multiple of the replicas (64: or the next one); the order depends on it"}
          .within(base::from_to(1, 65536), "takes a number of 1 to 65536").idle(without_samples(o)).idle(without_shards(o)).idle(in_original_order),
      Flag{"Data", "--remainder", choice("--remainder", o.remainder), "", "Choose what happens to samples that do not fill a batch; carry: they come in the next epoch"}
          .idle(without_images(o)).idle(without_shards(o)).idle(in_original_order)
          .idle(!o.mix.empty(), {"--mix"}, "samples that do not fill a batch of a mixture always come in the next epoch"),
      Flag{"Data", "--shard-size", &o.shard_size, "samples", "Expect N samples in each training shard; 0: count them"}
          .at_least(0).idle(without_samples(o)).idle(without_shards(o)),
      Flag{"Data", "--original-workers", &o.original_workers, "", "Reproduce the order of PyTorch's DataLoader over webdataset with N workers; 0: the default order"}
          .at_least(0).idle(without_images(o)).idle(without_shards(o)),
      Flag{"Data", "--original-samples", &o.original_samples, "samples", "Assume N samples in an epoch with --original-workers; 0: count them"}
          .at_least(0).idle(without_images(o)).idle(without_shards(o))
          .idle(o.original_workers == 0, {"--original-workers"}, "it requires --original-workers; without it the shards are counted"),
      Flag{"Data", "--on-error", choice("--on-error", o.on_error), "", "Choose what happens to bad shards and samples; retry: read them again, then skip them"}
          .idle(without_samples(o)).idle(without_shards(o)),
      Flag{"Data", "--max-bad", parsed("--max-bad", o.max_bad), "", "Leave out at most this many bad samples of an epoch: 0.1% or a number"}
          .idle(without_samples(o)).idle(without_shards(o)),
      Flag{"Data", "--allow-unknown-loss", &o.allow_unknown_loss, "", "Take a damaged shard that has no index up to the damage: --max-bad cannot count what it loses"}
          .idle(without_samples(o)).idle(without_shards(o)),
      Flag{"Data", "--max-sample", &o.max_sample, "MiB", "Limit the memory that one sample's members and decoding may claim", {1, kMaxSize}}
          .idle(without_images(o)).idle(without_shards(o)),
      Flag{"Data", "--max-buffered", &o.max_buffered, "GiB", "Limit the memory that undecoded samples in shuffle buffers and batches, and unpackers may hold", {1, kMaxSize}}
          .idle(without_images(o)).idle(without_shards(o)),
      Flag{"Data", "--max-pixels", &o.max_pixels, "millions", "Limit the pixels of an image", {1, kMaxSize}}
          .idle(without_images(o)).idle(without_shards(o)),
      Flag{"Data", "--workers", &o.workers, "", "Decode with N threads; 0: one for each core, at most 8"}
          .after("--std").at_least(0).idle(without_samples(o)).idle(without_shards(o)),
      Flag{"Data", "--cache", &o.cache, "", "Keep shards from buckets and web servers in this folder"}
          .idle(without_samples(o)).idle(without_shards(o)),
      Flag{"Data", "--cache-size", &o.cache_size, "GiB", "Limit the size of the --cache folder", {1, kMaxSize}}
          .idle(without_samples(o)).idle(without_shards(o))
          .idle(o.cache.empty(), {"--cache"}, "the folder is missing: give it with --cache"),
      Flag{"Data", "--prefetch", &o.prefetch, "MiB", "Prepare this much of the next batches on the host", {1, kMaxSize}}
          .idle(without_samples(o)).idle(without_shards(o)),
      Flag{"Data", "--fake-data", &o.fake_data, "", "Train on random images instead of shards"},
      Flag{"Data", "--image-size", &o.image_size, "pixels", "Set the side of the images of --fake-data"}
          .at_least(1).idle(without_images(o)).idle(with_shards),
      Flag{"Data", "--train-size", &o.train_size, "samples", "Set the size of the training set of --fake-data"}
          .at_least(1).idle(without_images(o)).idle(with_shards),
      Flag{"Data", "--test-size", &o.test_size, "samples", "Set the size of the test set of --fake-data; 0: no test"}
          .at_least(0).idle(without_images(o)).idle(with_shards),
  };
}
// clang-format on

void check_data(const TrainOptions& o) {
  recipe_data_detail::check_amounts(o);
  recipe_data_detail::check_changes(o);
}

void check_sets(const TrainOptions& o, bool own_sets) {
  using recipe_data_detail::refuse;
  if (!own_sets && !o.fake_data && o.train.empty() && o.mix.empty())
    refuse("no training data: give shards with --train, a mixture with --mix, or --fake-data");
  if (!o.train.empty() && !o.mix.empty())
    refuse("--train and --mix both say what to train on: give one of them");
  if (!o.mix.empty() && o.original_workers > 0)
    refuse("--original-workers knows no mixture: leave it or --mix out");
  std::vector<std::string> names;
  for (const auto& [name, shards] : o.more_tests) names.push_back(name);
  check_test_names(names, !o.test.empty());
  if (!own_sets && o.classes < 1) refuse("the number of classes is missing: give it with --classes");
}

void check_test_names(const std::vector<std::string>& names, bool has_first) {
  using recipe_data_detail::refuse;
  std::set<std::string> seen;
  for (const std::string& name : names) {
    const auto is_plain = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-'; };
    if (name.empty() || !std::all_of(name.begin(), name.end(), is_plain) || !seen.insert(name).second)
      refuse(base::str("the test set '", name,
                       "': expected a name of letters, digits, _ and -, another one for each set"));
    if (!has_first)
      refuse(base::str("the test set '", name, "' is given, but the first test set, ",
                       "which has no name, is missing"));
  }
}

}  // namespace sluice::train
