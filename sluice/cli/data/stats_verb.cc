// sluice data stats
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "sluice/base/text/join.h"
#include "sluice/base/text/printable.h"
#include "sluice/cli/data/common.h"
#include "sluice/data/tools/dataset_statistics.h"
#include "sluice/pod/ssh/quote.h"

namespace sluice::cli {
namespace {

struct StatsFlags {
  std::vector<std::string> shards, where;
  data::DatasetStatisticsOptions options;
  bool gray = false, json = false;
};

std::string flag_value(const std::vector<double>& numbers) {
  std::vector<std::string> texts;
  for (const double number : numbers) {
    char text[32];
    std::snprintf(text, sizeof text, "%.4f", number);
    texts.emplace_back(text);
  }
  return base::join(texts, ",");
}

nlohmann::json stats_json(const data::DatasetStatistics& stats) {
  nlohmann::json classes = nlohmann::json::object(), sizes = nlohmann::json::array();
  for (const auto& [label, count] : stats.classes) classes[std::to_string(label)] = count;
  for (const auto& [size, count] : stats.sizes)
    sizes.push_back({{"height", size.first}, {"width", size.second}, {"images", count}});
  nlohmann::json document = {{"samples", stats.samples}, {"left_out", stats.left_out},
                             {"images", stats.images},   {"image_bytes", stats.image_bytes},
                             {"pixels", stats.pixels},   {"classes", classes},
                             {"sizes", sizes},           {"extensions", stats.extensions}};
  if (stats.pixels > 0) {
    document["mean"] = stats.mean();
    document["std"] = stats.deviation();
  }
  return document;
}

void print_classes(const data::DatasetStatistics& stats) {
  const auto [min, max] = std::minmax_element(stats.classes.begin(), stats.classes.end(),
                                              [](auto& a, auto& b) { return a.second < b.second; });
  std::printf("%s, %lld to %lld: %s (class %lld) to %s (class %lld) samples each\n",
              counted(static_cast<std::int64_t>(stats.classes.size()), "class").c_str(),
              static_cast<long long>(stats.classes.begin()->first),
              static_cast<long long>(stats.classes.rbegin()->first), grouped(min->second).c_str(),
              static_cast<long long>(min->first), grouped(max->second).c_str(),
              static_cast<long long>(max->first));
}

void print_stats(const data::DatasetStatistics& stats) {
  std::printf("%s, %s", counted(stats.samples, "sample").c_str(), counted(stats.images, "image").c_str());
  if (stats.images > 0)
    std::printf(" of %s bytes on average",
                grouped(static_cast<std::int64_t>(stats.image_bytes) / stats.images).c_str());
  if (stats.left_out > 0) std::printf("; %s left out by --where", grouped(stats.left_out).c_str());
  std::printf("\n");
  if (!stats.classes.empty()) print_classes(stats);
  std::vector<std::pair<std::int64_t, std::pair<std::int64_t, std::int64_t>>> sizes;
  for (const auto& [size, count] : stats.sizes) sizes.push_back({count, size});
  std::sort(sizes.rbegin(), sizes.rend());
  constexpr std::size_t kShown = 5;
  for (std::size_t i = 0; i < std::min(kShown, sizes.size()); ++i)
    std::printf("%9s images of %lld × %lld (width × height)\n", grouped(sizes[i].first).c_str(),
                static_cast<long long>(sizes[i].second.second),
                static_cast<long long>(sizes[i].second.first));
  if (sizes.size() > kShown) std::printf("          and %zu other sizes\n", sizes.size() - kShown);
  if (stats.pixels == 0) return;
  std::printf("For sluice train:");
  std::vector<std::string> extensions;
  for (const auto& [extension, count] : stats.extensions) extensions.push_back(extension);
  // Names of members may contain anything, and this line is meant to be pasted into a shell.
  std::printf(" --images %s", base::printable(pod::quote(base::join(extensions, ";"))).c_str());
  if (!stats.classes.empty() && stats.classes.begin()->first >= 0)
    std::printf(" --classes %lld", static_cast<long long>(stats.classes.rbegin()->first + 1));
  if (stats.sums.size() == 1) std::printf(" --channels 1");
  std::printf(" --mean %s --std %s\n", flag_value(stats.mean()).c_str(),
              flag_value(stats.deviation()).c_str());
}

}  // namespace

Verb stats_verb() {
  auto flags = std::make_shared<StatsFlags>();
  return {.name = "stats",
          .help = "Classes, sizes, and the flags for normalising",
          .footer =
              "Decodes every image. Means and standard deviations are over all pixels, in 0 … 1.\n"
              "Example: sluice data stats 'shards/train-*.tar'",
          .add_flags =
              [flags](CLI::App& app) {
                add_flags(app, shard_rows(flags->shards));
                add_flags(
                    app, {{"", "--images", &flags->options.images, "", "Extensions of the image in a sample"},
                          {"", "--labels", &flags->options.labels, "", "Extension of the class number"},
                          where_row(flags->where),
                          {"", "--gray", &flags->gray, "", "One channel, as --channels 1 trains"},
                          read_workers_row(flags->options.workers)});
                add_flags(app, memory_rows());
                add_flags(app, {lines_or_json_row(flags->json)});
              },
          .run = guarded("stats", [flags]() -> base::Status {
            Progress progress;
            if (flags->gray) flags->options.model = data::ColorModel::kGray;
            SLUICE_TRY(flags->options.urls, expand_arguments(flags->shards));
            SLUICE_TRY(flags->options.filters, filters_of(flags->where));
            flags->options.progress = [&](std::int64_t done, std::int64_t total) {
              progress.show("shards", done, total);
            };
            SLUICE_TRY(const auto stats, data::dataset_statistics(flags->options));
            progress.clear();
            if (flags->json) {
              print_json(stats_json(stats));
            } else {
              print_stats(stats);
            }
            return {};
          })};
}

}  // namespace sluice::cli
