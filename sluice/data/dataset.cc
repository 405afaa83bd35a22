#include "sluice/data/dataset.h"

#include <algorithm>

#include "sluice/base/files/file.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/lower_case.h"
#include "sluice/base/text/strings.h"
#include "sluice/data/dataset_settings.h"
#include "sluice/data/shards/urls.h"

namespace sluice::data {
namespace {

// "JPG;png" → {"jpg", "png"}
std::vector<std::string> split_extensions(const std::string& text) {
  std::vector<std::string> extensions;
  for (const std::string& part : base::split(text, ';')) {
    std::string extension = base::lower_case(base::trim(part));
    if (base::starts_with(extension, ".")) extension.erase(0, 1);
    if (extension.empty())
      misuse(
          base::str("WebDataset: '", text, "' names no extension: expected such as \"jpg;png\" or \"cls\""));
    extensions.push_back(std::move(extension));
  }
  return extensions;
}

// Replaces the field of this kind, or adds it so that the image comes before the label.
void set_field(std::vector<FieldPlan>& fields, FieldKind kind, const std::string& extensions) {
  FieldPlan plan{split_extensions(extensions), kind};
  std::erase_if(fields, [](const FieldPlan& field) { return field.kind == FieldKind::kAny; });
  std::erase_if(fields, [&](const FieldPlan& field) { return field.kind == kind; });
  fields.insert(kind == FieldKind::kImage ? fields.begin() : fields.end(), std::move(plan));
}

base::Result<std::vector<std::string>> expand_all(const std::vector<std::string>& patterns) {
  std::vector<std::string> urls;
  for (const std::string& pattern : patterns) {
    SLUICE_TRY(const auto some, expand_urls(pattern));
    urls.insert(urls.end(), some.begin(), some.end());
  }
  if (urls.empty()) return base::fail(Code::kInvalidArgument, "WebDataset: no shards were named");
  return urls;
}

void check_normalization(const char* call, const std::vector<float>& mean,
                         const std::vector<float>& deviation) {
  const bool positive = std::all_of(deviation.begin(), deviation.end(), [](float d) { return d > 0; });
  if (mean.size() != deviation.size() || !positive)
    misuse(base::str("WebDataset: ", call, " with ", mean.size(), " means and ", deviation.size(),
                     " deviations: expected one of each for each channel, and deviations above zero"));
}

}  // namespace

WebDataset::WebDataset(std::string urls) : WebDataset(std::vector<std::string>{std::move(urls)}) {}

WebDataset::WebDataset(std::vector<std::string> urls) {
  auto settings = std::make_shared<Settings>();
  settings->patterns = std::move(urls);
  settings_ = std::move(settings);
}

// Copies share their settings until one of them changes.
WebDataset::Settings& WebDataset::change() {
  auto copy = std::make_shared<Settings>(*settings_);
  Settings& settings = *copy;
  settings_ = std::move(copy);
  return settings;
}

WebDataset& WebDataset::shuffle(std::int64_t samples, std::int64_t buffer_bytes) {
  demand(samples >= 0, "a shuffle buffer", samples, "0 samples or more");
  demand(buffer_bytes > 0, "a shuffle buffer in bytes", buffer_bytes, "a positive number");
  Settings& settings = change();
  settings.shuffle = true;
  settings.buffer_samples = samples;
  settings.buffer_bytes = buffer_bytes;
  return *this;
}

WebDataset& WebDataset::seed(std::uint64_t seed) {
  change().seed = seed;
  return *this;
}

WebDataset& WebDataset::interleave(std::int64_t ranges) {
  demand(ranges > 0 && ranges <= 1 << 16, "a number of ranges", ranges, "1 to 65536");
  change().ranges = ranges;
  change().ranges_are_chosen = true;
  return *this;
}

WebDataset& WebDataset::shard_size(std::int64_t samples) {
  demand(samples > 0, "a shard size", samples, "1 sample or more");
  Settings& settings = change();
  settings.shard_size = samples;
  settings.known = std::make_shared<Settings::Known>();
  return *this;
}

WebDataset& WebDataset::original(std::int64_t workers, std::int64_t samples) {
  demand(workers > 0 && workers <= 1024, "a number of workers of the original order", workers, "1 to 1024");
  demand(samples >= 0, "a number of samples", samples, "0 (count them) or more");
  Settings& settings = change();
  settings.original_workers = workers;
  settings.original_samples = samples;
  return *this;
}

WebDataset& WebDataset::on_error(OnError policy) {
  Settings& settings = change();
  settings.on_error = policy;
  settings.known = std::make_shared<Settings::Known>();  // damaged shards count differently
  return *this;
}

WebDataset& WebDataset::max_bad(double limit) {
  if (!(limit >= 0)) misuse(base::str("WebDataset: a limit of ", limit, " bad samples: expected 0 or more"));
  change().max_bad = limit;
  return *this;
}

WebDataset& WebDataset::allow_unknown_loss() {
  Settings& settings = change();
  settings.allow_unknown_loss = true;
  settings.known = std::make_shared<Settings::Known>();
  return *this;
}

WebDataset& WebDataset::carry() {
  change().remainder = Remainder::kCarry;
  return *this;
}

WebDataset& WebDataset::prefetch_memory(std::int64_t bytes) {
  demand(bytes > 0, "a prefetch in bytes", bytes, "a positive number");
  change().prefetch_bytes = bytes;
  return *this;
}

WebDataset& WebDataset::epoch(std::int64_t epoch) {
  demand(epoch >= 0, "an epoch", epoch, "0 or more");
  change().epoch = epoch;
  return *this;
}

WebDataset& WebDataset::images(std::string extensions, std::string spec) {
  decode(std::move(spec));
  set_field(change().decode.fields, FieldKind::kImage, extensions);
  return *this;
}

WebDataset& WebDataset::labels(std::string extensions) {
  Settings& settings = change();
  if (!settings.decode.spec) settings.decode.spec = ImageSpec{};
  set_field(settings.decode.fields, FieldKind::kLabel, extensions);
  return *this;
}

WebDataset& WebDataset::classes(std::int64_t count) {
  demand(count >= 0, "a number of classes", count, "0 (unknown) or more");
  change().decode.classes = count;
  return *this;
}

WebDataset& WebDataset::decode(std::string spec) {
  change().decode.spec = base::value_or_throw(parse_image_spec(spec));
  return *this;
}

WebDataset& WebDataset::set_fields(std::vector<std::string> extensions) {
  std::vector<FieldPlan> fields;
  for (const std::string& text : extensions) fields.push_back({split_extensions(text), FieldKind::kAny});
  if (fields.empty())
    misuse("WebDataset: to_tuple() without extensions: expected such as (\"jpg;png\", \"cls\")");
  change().decode.fields = std::move(fields);
  return *this;
}

WebDataset& WebDataset::add_map(std::function<void(Sample&)> function) {
  if (!function) misuse("WebDataset: map() of nothing: expected a function that takes a Sample");
  change().maps.push_back(std::move(function));
  return *this;
}

WebDataset& WebDataset::add_filter(Filter filter) {
  Settings& settings = change();
  settings.survey.filters.push_back(std::move(filter));
  settings.known = std::make_shared<Settings::Known>();
  return *this;
}

WebDataset& WebDataset::where(const std::string& condition) {
  return add_filter(base::value_or_throw(parse_condition(condition)));
}

WebDataset& WebDataset::filter(std::function<bool(const SampleView&)> take, const std::string& members) {
  if (!take) misuse("WebDataset: filter() of nothing: expected a function that takes a SampleView");
  Filter filter;
  if (!members.empty())
    for (std::string& extension : split_extensions(members)) filter.members.insert(std::move(extension));
  filter.take = std::move(take);
  filter.text = "filter()";
  return add_filter(std::move(filter));
}

WebDataset& WebDataset::exif_rotation() {
  change().decode.exif_rotation = true;
  return *this;
}

WebDataset& WebDataset::resize(std::int64_t shorter_side) {
  demand(shorter_side > 0 && shorter_side <= 1 << 15, "a side", shorter_side, "1 to 32768 pixels");
  change().decode.transforms.push_back({Transform::Kind::kResize, shorter_side, 0});
  return *this;
}

WebDataset& WebDataset::center_crop(std::int64_t side) {
  demand(side > 0 && side <= 1 << 15, "a side", side, "1 to 32768 pixels");
  change().decode.transforms.push_back({Transform::Kind::kCenterCrop, side, 0});
  return *this;
}

WebDataset& WebDataset::crop(std::int64_t side, std::int64_t padding) {
  demand(side > 0 && side <= 1 << 15, "a side", side, "1 to 32768 pixels");
  demand(padding >= 0 && padding <= 1 << 15, "a border", padding, "0 to 32768 pixels");
  change().decode.transforms.push_back({Transform::Kind::kRandomCrop, side, padding});
  return *this;
}

WebDataset& WebDataset::flip() {
  change().decode.transforms.push_back({Transform::Kind::kFlip, 0, 0});
  return *this;
}

WebDataset& WebDataset::random_resized_crop(std::int64_t side, std::pair<double, double> scale,
                                            std::pair<double, double> ratio) {
  demand(side > 0 && side <= 1 << 15, "a side", side, "1 to 32768 pixels");
  if (!(scale.first > 0 && scale.first <= scale.second && scale.second <= 1))
    misuse(base::str("WebDataset: random_resized_crop() with a scale of ", scale.first, " to ", scale.second,
                     ": expected shares of the area above 0 and up to 1, the smaller one first"));
  if (!(ratio.first > 0 && ratio.first <= ratio.second && ratio.second < 1e6))
    misuse(base::str("WebDataset: random_resized_crop() with a ratio of ", ratio.first, " to ", ratio.second,
                     ": expected positive numbers, the smaller one first"));
  change().decode.transforms.push_back(
      {Transform::Kind::kRandomResizedCrop, side, 0, scale.first, scale.second, ratio.first, ratio.second});
  return *this;
}

WebDataset& WebDataset::color_jitter(double brightness, double contrast, double saturation, double hue) {
  for (const double strength : {brightness, contrast, saturation})
    if (!(strength >= 0 && strength < 1e6))
      misuse(base::str("WebDataset: color_jitter() with a brightness, contrast or saturation of ", strength,
                       ": expected 0 or more, such as 0.4"));
  if (!(hue >= 0 && hue <= 0.5))
    misuse(base::str("WebDataset: color_jitter() with a hue of ", hue, ": expected 0 to 0.5, such as 0.1"));
  Transform transform{Transform::Kind::kColorJitter};
  transform.jitter = {brightness, contrast, saturation, hue};
  change().decode.transforms.push_back(transform);
  return *this;
}

WebDataset& WebDataset::rand_augment(std::int64_t operations, std::int64_t magnitude) {
  demand(operations > 0 && operations <= 100, "a number of operations of rand_augment()", operations,
         "1 to 100");
  demand(magnitude >= 0 && magnitude < kMagnitudes, "a magnitude of rand_augment()", magnitude, "0 to 30");
  Transform transform{Transform::Kind::kRandAugment};
  transform.operations = operations;
  transform.magnitude = magnitude;
  change().decode.transforms.push_back(transform);
  return *this;
}

WebDataset& WebDataset::autocontrast(double probability) {
  if (!(probability >= 0 && probability <= 1))
    misuse(base::str("WebDataset: autocontrast() with a probability of ", probability, ": expected 0 to 1"));
  Transform transform{Transform::Kind::kAutoContrast};
  transform.probability = probability;
  change().decode.transforms.push_back(transform);
  return *this;
}

WebDataset& WebDataset::mixup(double alpha) {
  if (!(alpha > 0 && alpha < 1e6)) misuse(base::str("WebDataset: mixup() of ", alpha, ": expected above 0"));
  change().decode.mix.mixup = alpha;
  return *this;
}

WebDataset& WebDataset::cutmix(double alpha) {
  if (!(alpha > 0 && alpha < 1e6)) misuse(base::str("WebDataset: cutmix() of ", alpha, ": expected above 0"));
  change().decode.mix.cutmix = alpha;
  return *this;
}

WebDataset& WebDataset::decoder(std::string extension, std::function<Value(std::string_view)> function) {
  if (!function) misuse("WebDataset: decoder() of nothing: expected a function that takes bytes");
  Settings& settings = change();
  if (!settings.decode.spec) settings.decode.spec = ImageSpec{};
  for (std::string& name : split_extensions(extension)) settings.decode.decoders[std::move(name)] = function;
  return *this;
}

WebDataset& WebDataset::normalize_on_host(const std::vector<float>& mean,
                                          const std::vector<float>& deviation) {
  check_normalization("normalize_on_host()", mean, deviation);
  change().decode.levels = normalized_levels(mean, deviation);
  return *this;
}

WebDataset& WebDataset::normalize(std::vector<float> mean, std::vector<float> deviation) {
  check_normalization("normalize()", mean, deviation);
  Settings& settings = change();
  settings.mean = std::move(mean);
  settings.deviation = std::move(deviation);
  return *this;
}

WebDataset& WebDataset::bucket_by_length(const std::string& member, std::vector<LengthShape> shapes,
                                         LengthOptions options) {
  if (shapes.empty()) misuse("WebDataset: bucket_by_length() with no shapes: expected at least one");
  std::sort(shapes.begin(), shapes.end(), [](const auto& a, const auto& b) { return a.length < b.length; });
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    demand(shapes[i].rows > 0, "a shape's rows", shapes[i].rows, "1 sample or more");
    demand(shapes[i].length > 0, "a shape's length", shapes[i].length, "1 or more");
    if (i > 0 && shapes[i].length == shapes[i - 1].length)
      misuse(base::str("WebDataset: bucket_by_length() with two shapes of length ", shapes[i].length,
                       ": expected one of each length"));
  }
  Settings& settings = change();
  settings.survey.measured = split_extensions(member);
  settings.survey.longest = shapes.back().length;
  settings.survey.length = std::move(options);
  settings.batch = 1;
  for (const LengthShape& shape : shapes) settings.batch = std::max(settings.batch, shape.rows);
  settings.shapes = std::move(shapes);
  settings.known = std::make_shared<Settings::Known>();
  return *this;
}

WebDataset& WebDataset::batch(std::int64_t samples) {
  demand(samples > 0, "a batch", samples, "1 sample or more");
  change().batch = samples;
  return *this;
}

WebDataset& WebDataset::drop_last() {
  change().remainder = Remainder::kDrop;
  return *this;
}

WebDataset& WebDataset::pad() {
  change().remainder = Remainder::kPad;
  return *this;
}

WebDataset& WebDataset::keep() {
  change().remainder = Remainder::kKeep;
  return *this;
}

WebDataset& WebDataset::workers(int threads) {
  demand(threads > 0 && threads <= 1024, "a number of workers", threads, "1 to 1024 threads");
  change().workers = threads;
  return *this;
}

WebDataset& WebDataset::prefetch(int batches) {
  demand(batches > 0, "a prefetch", batches, "1 batch or more");
  change().prefetch = batches;
  return *this;
}

WebDataset& WebDataset::cache(std::string folder, std::int64_t bytes) {
  demand(bytes > 0, "a cache in bytes", bytes, "a positive number");
  change().cache_folder = base::expand_home(folder);
  change().cache_bytes = bytes;
  return *this;
}

std::shared_ptr<const std::vector<std::string>> WebDataset::Settings::shards() const {
  std::lock_guard lock(known->mutex);
  if (!known->urls)
    known->urls =
        std::make_shared<const std::vector<std::string>>(base::value_or_throw(expand_all(patterns)));
  return known->urls;
}

std::vector<std::string> WebDataset::urls() const { return *settings_->shards(); }
std::int64_t WebDataset::size() const { return base::value_or_throw(settings_->learn())->total; }
std::int64_t WebDataset::left_out() const { return base::value_or_throw(settings_->learn())->left_out; }

std::int64_t WebDataset::batch_size() const { return settings_->batch; }
std::int64_t WebDataset::classes() const { return settings_->decode.classes; }
bool WebDataset::original_order() const { return settings_->original_workers > 0; }
bool WebDataset::shuffled() const { return settings_->shuffle; }
Remainder WebDataset::remainder() const { return settings_->chosen_remainder(); }
const std::vector<float>& WebDataset::mean() const { return settings_->mean; }
const std::vector<float>& WebDataset::deviation() const { return settings_->deviation; }

}  // namespace sluice::data
