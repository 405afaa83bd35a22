// sluice data ls, verify
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "sluice/base/text/join.h"
#include "sluice/base/text/printable.h"
#include "sluice/base/text/shown_text.h"
#include "sluice/base/text/shown_url.h"
#include "sluice/cli/data/common.h"
#include "sluice/data/tools/inspect.h"

namespace sluice::cli {
namespace {

nlohmann::json listing_json(const data::ShardListing& listing, bool with_keys) {
  nlohmann::json entry = {{"shard", base::shown_urls(listing.url)},
                          {"samples", listing.samples},
                          {"members", listing.members},
                          {"left_out", listing.left_out},
                          {"bytes", listing.bytes},
                          {"payload_bytes", listing.payload},
                          {"extensions", listing.extensions}};
  if (with_keys) entry["keys"] = listing.keys;
  return entry;
}

void print_listing(const data::ShardListing& listing) {
  std::vector<std::string> extensions;
  for (const auto& [extension, count] : listing.extensions)
    extensions.push_back(count == listing.samples ? extension : base::str(extension, " ×", count));
  std::printf("%17s  %10s  %s  (%s)\n", counted(listing.samples, "sample").c_str(),
              size_text(listing.bytes).c_str(), base::shown_text(listing.url).c_str(),
              base::printable(base::join(extensions, ", ")).c_str());
  for (const std::string& key : listing.keys) std::printf("  %s\n", base::printable(key).c_str());
}

struct LsOptions {
  std::vector<std::string> shards;
  bool keys = false, json = false;
};

base::Status list_shards(const LsOptions& options) {
  SLUICE_TRY(const auto urls, expand_arguments(options.shards));
  nlohmann::json all = nlohmann::json::array();
  std::int64_t samples = 0;
  std::uint64_t bytes = 0;
  for (const std::string& url : urls) {
    SLUICE_TRY(const auto listing, data::list_shard(url, options.keys));
    samples += listing.samples;
    bytes += listing.bytes;
    if (options.json) {
      all.push_back(listing_json(listing, options.keys));
    } else {
      print_listing(listing);
    }
  }
  if (options.json) {
    const nlohmann::json document = {{"shards", all}, {"samples", samples}, {"bytes", bytes}};
    print_json(document);
  } else {
    std::printf("%17s  %10s  in %s\n", counted(samples, "sample").c_str(), size_text(bytes).c_str(),
                counted(static_cast<std::int64_t>(urls.size()), "shard").c_str());
  }
  return {};
}

}  // namespace

Verb ls_verb() {
  auto options = std::make_shared<LsOptions>();
  return {.name = "ls",
          .help = "List shards: samples, sizes and members of each",
          .add_flags =
              [options](CLI::App& app) {
                add_flags(app, shard_rows(options->shards));
                add_flags(app, {{"", "--keys", &options->keys, "", "The key of every sample too"},
                                lines_or_json_row(options->json)});
              },
          .run = guarded("ls", [options] { return list_shards(*options); })};
}

namespace {

struct VerifyFlags {
  std::vector<std::string> shards;
  data::VerifyOptions options;
  std::string duplicates;
  bool json = false;
};

void print_problems(const data::VerifyReport& report, bool with_duplicates, bool json) {
  if (json) {
    nlohmann::json problems = nlohmann::json::array();
    for (const auto& problem : report.problems)
      problems.push_back({{"shard", problem.shard}, {"what", problem.what}, {"fatal", problem.fatal}});
    nlohmann::json document = {
        {"shards", report.shards}, {"samples", report.samples},           {"members", report.members},
        {"bytes", report.bytes},   {"without_checksum", report.unsummed}, {"failures", report.failures()},
        {"problems", problems}};
    if (with_duplicates) document.update({{"duplicates", report.duplicates}, {"leaks", report.leaks}});
    print_json(document);
    return;
  }
  constexpr std::size_t kNotes = 20;
  std::size_t notes = 0;
  for (const auto& problem : report.problems)
    if (problem.fatal || ++notes <= kNotes)
      std::printf("%s %s\n", problem.fatal ? "BAD " : "note", base::shown_text(problem.what).c_str());
  if (notes > kNotes) std::printf("and %zu more notes, which --json lists\n", notes - kNotes);
  if (report.unsummed > 0)
    std::printf(
        "note %s of the shards have no checksum: damage within images may go unseen. 'sluice data index' "
        "writes the checksums of valid shards into sizes.json\n",
        grouped(report.unsummed).c_str());
  if (with_duplicates)
    std::printf("%s samples repeat one of their set, %s one of another set\n",
                grouped(report.duplicates).c_str(), grouped(report.leaks).c_str());
  std::printf("%s (%s, %s) in %s: %s\n", counted(report.samples, "sample").c_str(),
              counted(report.members, "member").c_str(), size_text(report.bytes).c_str(),
              counted(report.shards, "shard").c_str(),
              report.failures() == 0 ? "no problems" : counted(report.failures(), "problem").c_str());
}

// Scaled or re-encoded copies of an image differ in few of its hash's 128 bits.
constexpr int kSimilar = 6;

base::Status choose_shards(VerifyFlags& flags) {
  data::VerifyOptions& options = flags.options;
  options.duplicates = !flags.duplicates.empty();
  if (flags.duplicates == "similar") options.likeness = kSimilar;
  for (std::size_t set = 0; set < flags.shards.size(); ++set) {
    SLUICE_TRY(const auto urls, expand_arguments({flags.shards[set]}));
    options.urls.insert(options.urls.end(), urls.begin(), urls.end());
    options.sets.resize(options.urls.size(), set);
  }
  return {};
}

// clang-format off
std::vector<Flag> check_rows(VerifyFlags& f) {
  return {
      Flag{"", "--require", RepeatedText{&f.options.fields}, "", "A member that every sample must have, such as cls or 'jpg;png' (default: what the first sample of each shard has)"},
      Flag{"", "--classes", &f.options.classes, "", "Labels must be below this number (0: any)"}.zero_or_more(),
      read_workers_row(f.options.workers),
  };
}

Flag duplicates_row(std::string& duplicates) {
  return Flag{"", "--duplicates", &duplicates, "", "Samples that repeat others: exact (the same bytes, but for class numbers) or similar (images that look the same, too). Each of SHARDS is a set of its own; what two sets share is a problem"}
      .one_of({"exact", "similar"});
}
// clang-format on

}  // namespace

Verb verify_verb() {
  auto flags = std::make_shared<VerifyFlags>();
  return {
      .name = "verify",
      .help = "Read shards completely, decode everything, and report all problems",
      .footer =
          "Checks headers, ends and checksums of the archives, the grouping into samples, images, numbers, "
          "text, JSON and\n"
          "npy arrays, and all bytes against the checksums that 'sluice data index' and 'pack' write into "
          "sizes.json. Exit status 1 when anything is wrong, with every problem in the report.\n"
          "Examples:\n"
          "  sluice data verify 'shards/train-{0000..0009}.tar' --require 'jpg;png' --require cls "
          "--classes 10\n"
          "  sluice data verify 'train-*.tar' 'test-*.tar' --duplicates similar",
      .add_flags =
          [flags](CLI::App& app) {
            add_flags(app, shard_rows(flags->shards));
            add_flags(app, check_rows(*flags));
            add_flags(app, memory_rows());
            add_flags(app, {duplicates_row(flags->duplicates), lines_or_json_row(flags->json)});
          },
      .run = guarded("verify", [flags]() -> base::Status {
        Progress progress;
        SLUICE_OK(choose_shards(*flags));
        flags->options.progress = [&](std::int64_t done, std::int64_t total) {
          progress.show("shards", done, total);
        };
        SLUICE_TRY(const auto report, data::verify(flags->options));
        progress.clear();
        print_problems(report, flags->options.duplicates, flags->json);
        if (report.failures() == 0) return {};
        return base::fail(Code::kDataLoss, counted(report.failures(), "problem"), " in ",
                          counted(report.shards, "shard"));
      })};
}

}  // namespace sluice::cli
