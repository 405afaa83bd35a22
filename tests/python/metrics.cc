// Metrics over batches that do not fill up, on several replicas, for metrics_oracle.py:
//   sluice_metric_values FOLDER REPLICAS…   writes FOLDER/CASE.safetensors (output, target, mask, …) for each
//   case, and prints
//                                     a line of JSON for each case and number of replicas.
#include <torch/torch.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "sluice/device/device.h"
#include "sluice/metrics/metrics.h"
#include "sluice/session/files/tensor_file.h"

namespace {

namespace metrics = sluice::metrics;
using metrics::Average;
using Metrics = std::vector<metrics::Metric>;
using Columns = std::map<std::string, torch::Tensor>;

constexpr int64_t kRows = 8;       // of a replica's batch
constexpr int64_t kSamples = 203;  // no multiple of any batch
constexpr int64_t kThresholds = 25;
constexpr std::array<uint64_t, 3> kSeeds = {1, 2, 3};

// Columns have a row for each sample. "mask", where there is one, leaves out more than the padding.
struct Case {
  std::string name;
  int64_t classes = 0;
  bool probabilities = false;
  Columns columns;
  Metrics measured;
};

Metrics of_classes(int64_t classes, bool probabilities, int64_t thresholds) {
  Metrics all = {metrics::ConfusionMatrix(classes, probabilities),
                 metrics::ConfusionMatrix(classes, probabilities, /*dense_classes=*/0).named("sparse")};
  std::vector<Average> averages = {Average::kMacro};
  if (classes > 1) averages = {Average::kMicro, Average::kMacro, Average::kWeighted, Average::kClasses};
  for (const Average average : averages) {
    const metrics::ClassOptions options{classes, average, probabilities};
    all.insert(all.end(), {metrics::Precision(options), metrics::Recall(options), metrics::F1(options),
                           metrics::FBeta(0.5, options)});
    if (average != Average::kMicro)
      all.push_back(metrics::Auroc({classes, average, probabilities, thresholds}));
  }
  if (classes > 1) all.insert(all.end(), {metrics::TopK(1), metrics::TopK(3), metrics::TopK(5)});
  return all;
}

// Logits whose probabilities are not so near to a threshold that rounding decides on which side they are.
torch::Tensor clear_logits(std::vector<int64_t> sizes, bool sigmoid) {
  torch::Tensor logits = torch::randn(sizes) * 2;
  for (int i = 0; i < 100; ++i) {
    const torch::Tensor wide = logits.to(torch::kDouble),
                        scores = sigmoid ? wide.sigmoid() : wide.softmax(-1);
    const torch::Tensor places = scores * (kThresholds - 1);
    torch::Tensor is_near = (places - places.round()).abs().lt(1e-4);
    if (!sigmoid) is_near = is_near.any(-1, true);
    if (!is_near.any().item<bool>()) return logits;
    logits = torch::where(is_near, torch::randn(sizes) * 2, logits);
  }
  throw std::runtime_error("no logits were found");
}

std::vector<Case> cases(uint64_t seed) {
  torch::manual_seed(seed);
  const auto name = [&](const char* kind) { return std::string(kind) + "_" + std::to_string(seed); };
  const auto labels = [](int64_t classes, std::vector<int64_t> sizes) {
    return torch::randint(classes, sizes, torch::kLong);
  };
  std::vector<Case> all;
  all.push_back({name("logits"),
                 10,
                 false,
                 {{"output", clear_logits({kSamples, 10}, false)}, {"target", labels(10, {kSamples})}},
                 of_classes(10, false, kThresholds)});
  // Three classes are answered, and no sample has them.
  all.push_back({name("absent"),
                 10,
                 false,
                 {{"output", clear_logits({kSamples, 10}, false)}, {"target", labels(7, {kSamples})}},
                 of_classes(10, false, kThresholds)});
  // Scores that are equal to each other and to thresholds; the last class has neither labels nor answers.
  torch::Tensor coarse = torch::randint(5, {kSamples, 7}, torch::kFloat) / 4;
  coarse.select(1, 6).zero_();
  all.push_back({name("ties"),
                 7,
                 true,
                 {{"output", coarse}, {"target", labels(6, {kSamples})}},
                 of_classes(7, true, kThresholds)});
  all.push_back({name("yes"),
                 1,
                 false,
                 {{"output", clear_logits({kSamples}, true)}, {"target", labels(2, {kSamples})}},
                 of_classes(1, false, kThresholds)});
  all.push_back(
      {name("even"),
       1,
       true,
       {{"output", torch::randint(9, {kSamples, 1}, torch::kFloat) / 8}, {"target", labels(2, {kSamples})}},
       of_classes(1, true, kThresholds)});
  torch::Tensor tokens = labels(13, {kSamples, 6});
  tokens.masked_fill_(torch::rand({kSamples, 6}).lt(0.2), -100);
  all.push_back({name("tokens"),
                 13,
                 false,
                 {{"output", torch::randn({kSamples, 6, 13}) * 3},
                  {"target", tokens},
                  {"mask", torch::rand({kSamples, 6}).lt(0.7)}},
                 {metrics::Perplexity(-100)}});
  all.push_back({name("numbers"),
                 0,
                 false,
                 {{"output", torch::randn({kSamples, 3}) * 50}, {"target", torch::randn({kSamples, 3}) + 20}},
                 {metrics::MeanSquaredError(), metrics::MeanAbsoluteError()}});
  all.push_back({name("means"),
                 0,
                 false,
                 {{"value", torch::rand({kSamples})},
                  {"weight", torch::rand({kSamples}) * 3},
                  {"count", labels(9, {kSamples})}},
                 {metrics::Mean("by_weight"), metrics::Mean("by_count")}});
  return all;
}

// Rows from `first` on, one part a replica. Behind the last sample: what no metric may look at.
torch::Tensor upload(sluice::Session& session, const torch::Tensor& all, int64_t first) {
  std::vector<torch::Tensor> parts;
  for (int r = 0; r < session.local_replicas(); ++r, first += kRows) {
    const auto begin = std::min(first, all.size(0)), end = std::min(first + kRows, all.size(0));
    std::vector<int64_t> rest = all.sizes().vec();
    rest[0] = kRows - (end - begin);
    const double filler = all.is_floating_point() ? std::nan("") : all.scalar_type() == torch::kBool ? 1 : -7;
    parts.push_back(
        torch::cat({all.slice(0, begin, end), torch::full(rest, filler, all.options())}).contiguous());
  }
  return session.upload(parts);
}

// Which of the rows are samples.
torch::Tensor upload_mask(sluice::Session& session, int64_t first) {
  std::vector<torch::Tensor> parts;
  for (int r = 0; r < session.local_replicas(); ++r, first += kRows)
    parts.push_back(torch::arange(first, first + kRows).lt(kSamples));
  return session.upload(parts);
}

metrics::Values measure(sluice::Session& session, const Case& one) {
  metrics::Collection sums(session, one.measured);
  const int64_t together = kRows * session.replicas();
  for (int64_t first = 0; first < kSamples; first += together) {
    Columns batch;
    for (const auto& [name, column] : one.columns) batch[name] = upload(session, column, first);
    torch::Tensor mask = upload_mask(session, first);
    if (batch.count("value") > 0) {
      sums.add("by_weight", batch["value"],
               torch::where(mask, batch["weight"], torch::zeros_like(batch["weight"])));
      sums.add("by_count", batch["value"],
               torch::where(mask, batch["count"], torch::zeros_like(batch["count"])));
    } else {
      if (batch.count("mask") > 0) mask = mask.unsqueeze(1).logical_and(batch["mask"]);
      sums.update(batch["output"], batch["target"], mask);
    }
    session.sync();
  }
  return sums.compute();
}

void print(const Case& one, int replicas, const metrics::Values& values) {
  nlohmann::json line = {{"case", one.name},          {"replicas", replicas},
                         {"classes", one.classes},    {"probabilities", one.probabilities},
                         {"thresholds", kThresholds}, {"numbers", nlohmann::json::object()}};
  for (const auto& [name, number, count] : values.numbers) line["numbers"][name] = number;
  for (const auto& [name, found] : values.tensors) {
    const torch::Tensor tensor = found.is_sparse() ? found.to_dense() : found;
    for (int64_t row = 0; row < tensor.size(0); ++row)
      line[name].push_back(std::vector<int64_t>(tensor[row].data_ptr<int64_t>(),
                                                tensor[row].data_ptr<int64_t>() + tensor.size(1)));
  }
  std::printf("%s\n", line.dump().c_str());
}

void run(const std::string& folder, const std::vector<int>& replicas) {
  std::vector<Case> all;
  for (const uint64_t seed : kSeeds)
    for (Case& one : cases(seed)) all.push_back(std::move(one));
  for (const Case& one : all)
    sluice::base::value_or_throw(sluice::sessions::write_safetensors(
        folder + "/" + one.name + ".safetensors", {one.columns.begin(), one.columns.end()}));
  for (const int count : replicas) {
    if (sluice::is_initialized()) sluice::shutdown();
    sluice::Options options;
    options.xla.devices = count;
    options.xla.strict = true;
    sluice::Session session = sluice::start(options);
    // The sets of other seeds run the programs of the first one's.
    int64_t programs = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      print(all[i], count, measure(session, all[i]));
      if (i + 1 == all.size() / kSeeds.size()) programs = sluice::counters().programs;
    }
    if (const int64_t more = sluice::counters().programs - programs; more != 0)
      throw std::runtime_error("expected no further program, found " + std::to_string(more));
  }
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 3) throw std::runtime_error("usage: sluice_metric_values FOLDER REPLICAS…");
  run(argv[1], [&] {
    std::vector<int> replicas;
    for (int i = 2; i < argc; ++i) replicas.push_back(std::stoi(argv[i]));
    return replicas;
  }());
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "sluice_metric_values: %s\n", error.what());
  return 1;
}
