#include "sluice/cli/data_verbs.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sluice/base/clock.h"
#include "sluice/base/strings.h"
#include "sluice/cli/data_cp_verb.h"
#include "sluice/data/cifar10.h"
#include "sluice/data/digits.h"
#include "sluice/data/inspect.h"
#include "sluice/data/pack.h"
#include "sluice/data/urls.h"

namespace sluice::cli {
namespace {

constexpr char kShardsHelp[] =
    "Shards: paths, {0000..0639} and {a,b} braces, globs, @file (a list), several joined by '::'";

// "12,345"
std::string grouped(std::int64_t number) {
  std::string digits = std::to_string(number);
  for (std::ptrdiff_t at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

std::string size_text(std::uint64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f MB", static_cast<double>(bytes) / 1e6);
  return text;
}

// One line on stderr that counts: rewritten in place on a terminal, now and then a new one otherwise.
class Progress {
 public:
  ~Progress() { clear(); }

  void show(const std::string& what, std::int64_t done, std::int64_t total) {
    const double pause = terminal_ ? 0.1 : 10;
    if (clock_.seconds() - last_ < pause) return;
    last_ = clock_.seconds();
    std::fprintf(stderr, terminal_ ? "\r\033[K%s: %s of %s" : "%s: %s of %s\n", what.c_str(),
                 grouped(done).c_str(), grouped(total).c_str());
    std::fflush(stderr);
    shown_ = true;
  }
  void clear() {
    if (shown_ && terminal_) std::fputs("\r\033[K", stderr);
    shown_ = false;
  }

 private:
  const bool terminal_ = ::isatty(STDERR_FILENO) != 0;
  base::Stopwatch clock_;
  double last_ = 0;
  bool shown_ = false;
};

// A verb's body as CLI11's callback: errors become a message and the exit status.
std::function<void()> guarded(std::string verb, int& exit_status, std::function<base::Status()> body) {
  return [verb = std::move(verb), &exit_status, body = std::move(body)] {
    try {
      const auto status = body();
      exit_status = status ? 0 : 1;
      if (!status) std::fprintf(stderr, "sluice data %s: %s\n", verb.c_str(), status.error().what());
    } catch (const std::exception& error) {
      exit_status = 1;
      std::fprintf(stderr, "sluice data %s: %s\n", verb.c_str(), error.what());
    }
  };
}

base::Result<std::vector<std::string>> expand_arguments(const std::vector<std::string>& arguments) {
  std::vector<std::string> urls;
  for (const std::string& argument : arguments) {
    SLUICE_TRY(const auto some, data::expand_urls(argument));
    urls.insert(urls.end(), some.begin(), some.end());
  }
  return urls;
}

void print_set(const data::ShardReport& report) {
  std::printf("%s samples in %zu shard%s, %s: %s%s%s\n", grouped(report.samples).c_str(),
              report.shards.size(), report.shards.size() == 1 ? "" : "s", size_text(report.bytes).c_str(),
              report.shards.front().c_str(), report.shards.size() == 1 ? "" : " … ",
              report.shards.size() == 1 ? "" : report.shards.back().c_str());
}

void add_pack(CLI::App& noun, int& exit_status) {
  auto options = std::make_shared<data::PackOptions>();
  auto* verb = noun.add_subcommand("pack", "Pack pictures into shards");
  verb->footer(
      "INPUT is a folder with one folder of pictures for each class (classes are numbered in alphabetical "
      "order, and\n"
      "their names are written to OUT/classes.txt), or a list file: a picture and its class on each line, "
      "separated by\n"
      "a tab, a comma or a space. Shards appear when the whole set is written.\n"
      "Example: sluice data pack photos/train shards --prefix train --shard-size 1000");
  verb->add_option("INPUT", options->input, "Folder of classes, or list file")->required();
  verb->add_option("OUT", options->shards.folder, "Folder for the shards (made when missing)")->required();
  verb->add_option("--prefix", options->shards.prefix, "Shards are named PREFIX-0000.tar …")
      ->capture_default_str();
  verb->add_option("--shard-size", options->shards.shard_size, "Samples in a shard")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  verb->add_option("--seed", options->seed, "Seed of the shuffled order")->capture_default_str();
  verb->add_flag("!--no-shuffle", options->shuffle, "Keep the order of the list, or class by class");
  verb->add_flag("!--no-check", options->check, "Do not decode each picture while packing");
  verb->add_flag("--overwrite", options->shards.overwrite, "Replace shards of the same prefix");
  verb->callback(guarded("pack", exit_status, [options]() -> base::Status {
    Progress progress;
    options->shards.progress = [&](std::int64_t done, std::int64_t total) {
      progress.show("packed", done, total);
    };
    SLUICE_TRY(const auto report, data::pack(*options));
    progress.clear();
    print_set(report.shards);
    if (!report.classes.empty())
      std::printf("%zu classes: %s/classes.txt\n", report.classes.size(), options->shards.folder.c_str());
    if (report.left_out > 0)
      std::printf("%s file(s) left out because they are no pictures, the first being %s\n",
                  grouped(report.left_out).c_str(), report.first_left_out.c_str());
    return {};
  }));
}

nlohmann::json listing_json(const data::ShardListing& listing, bool with_keys) {
  nlohmann::json entry = {{"shard", listing.url},
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
  std::printf("%9s samples  %10s  %s  (%s)\n", grouped(listing.samples).c_str(),
              size_text(listing.bytes).c_str(), listing.url.c_str(), base::join(extensions, ", ").c_str());
  for (const std::string& key : listing.keys) std::printf("  %s\n", key.c_str());
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
    std::printf("%s\n", document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  } else {
    std::printf("%9s samples  %10s  in %zu shard%s\n", grouped(samples).c_str(), size_text(bytes).c_str(),
                urls.size(), urls.size() == 1 ? "" : "s");
  }
  return {};
}

void add_ls(CLI::App& noun, int& exit_status) {
  auto options = std::make_shared<LsOptions>();
  auto* verb = noun.add_subcommand("ls", "List shards: samples, sizes and members of each");
  verb->add_option("SHARDS", options->shards, kShardsHelp)->required();
  verb->add_flag("--keys", options->keys, "The key of every sample too");
  verb->add_flag("--json", options->json, "One JSON document instead of lines");
  verb->callback(guarded("ls", exit_status, [options] { return list_shards(*options); }));
}

struct VerifyFlags {
  std::vector<std::string> shards;
  data::VerifyOptions options;
  bool json = false;
};

void print_problems(const data::VerifyReport& report, bool json) {
  if (json) {
    nlohmann::json problems = nlohmann::json::array();
    for (const auto& problem : report.problems)
      problems.push_back({{"shard", problem.shard}, {"what", problem.what}, {"fatal", problem.fatal}});
    const nlohmann::json document = {{"shards", report.shards},       {"samples", report.samples},
                                     {"members", report.members},     {"bytes", report.bytes},
                                     {"failures", report.failures()}, {"problems", problems}};
    std::printf("%s\n", document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
    return;
  }
  for (const auto& problem : report.problems)
    std::printf("%s %s\n", problem.fatal ? "BAD " : "note", problem.what.c_str());
  std::printf("%s samples (%s members, %s) in %s shards: %s\n", grouped(report.samples).c_str(),
              grouped(report.members).c_str(), size_text(report.bytes).c_str(),
              grouped(report.shards).c_str(),
              report.failures() == 0 ? "all sound" : (grouped(report.failures()) + " problem(s)").c_str());
}

void add_verify(CLI::App& noun, int& exit_status) {
  auto flags = std::make_shared<VerifyFlags>();
  auto* verb =
      noun.add_subcommand("verify", "Read shards completely, decode everything, and report all problems");
  verb->footer(
      "Checks headers, ends and checksums of the archives, the grouping into samples, pictures, numbers, "
      "text, JSON and\n"
      "npy arrays. Exit status 1 when anything is wrong, with every problem in the report.\n"
      "Example: sluice data verify 'shards/train-{0000..0009}.tar' --require 'jpg;png' --require cls "
      "--classes 10");
  verb->add_option("SHARDS", flags->shards, kShardsHelp)->required();
  verb->add_option(
          "--require", flags->options.fields,
          "A member that every sample must have, such as cls or 'jpg;png' (default: what the first sample of "
          "each shard has)")
      ->allow_extra_args(false);
  verb->add_option("--classes", flags->options.classes, "Labels must be below this number (0: any)")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  verb->add_option("--workers", flags->options.workers, "Shards read at a time (0: one for each core)")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  verb->add_flag("--json", flags->json, "One JSON document instead of lines");
  verb->callback(guarded("verify", exit_status, [flags]() -> base::Status {
    Progress progress;
    SLUICE_TRY(flags->options.urls, expand_arguments(flags->shards));
    flags->options.progress = [&](std::int64_t done, std::int64_t total) {
      progress.show("shards", done, total);
    };
    SLUICE_TRY(const auto report, data::verify(flags->options));
    progress.clear();
    print_problems(report, flags->json);
    if (report.failures() == 0) return {};
    return base::fail(Code::kDataLoss, report.failures(), " problem(s) in ", report.shards, " shard(s)");
  }));
}

void add_digits(CLI::App& noun, int& exit_status) {
  auto options = std::make_shared<data::DigitsOptions>();
  auto* verb = noun.add_subcommand("digits", "Make shards of scikit-learn's handwritten digits");
  verb->footer(
      "CSV is digits.csv.gz as scikit-learn's package holds it (sklearn/datasets/data/digits.csv.gz): 1,797 "
      "pictures of\n"
      "8×8. Writes OUT/train-*.tar and OUT/test-*.tar, split by class with the seed.");
  verb->add_option("CSV", options->csv, "digits.csv.gz, or the same unpacked")->required();
  verb->add_option("OUT", options->folder, "Folder for the shards (made when missing)")->required();
  verb->add_option("--side", options->side, "Height and width of the pictures, in pixels")
      ->check(CLI::Range(8, 1024))
      ->capture_default_str();
  verb->add_option("--test-share", options->test_share, "Part of each class that is held out for the test")
      ->check(CLI::Range(0.01, 0.99))
      ->capture_default_str();
  verb->add_option("--seed", options->seed, "Seed of the split and the order")->capture_default_str();
  verb->add_option("--shard-size", options->shard_size, "Samples in a shard")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  verb->add_flag("--overwrite", options->overwrite, "Replace train and test shards that are there");
  verb->callback(guarded("digits", exit_status, [options]() -> base::Status {
    SLUICE_TRY(const auto report, data::pack_digits(*options));
    print_set(report.train);
    print_set(report.test);
    return {};
  }));
}

struct Cifar10Flags {
  std::vector<std::string> places;  // [SOURCE] DIR
  data::Cifar10Options options;
};

void add_cifar10(CLI::App& noun, int& exit_status) {
  auto flags = std::make_shared<Cifar10Flags>();
  auto& options = flags->options;
  auto* verb = noun.add_subcommand("cifar10", "Make shards of the published CIFAR-10 archive");
  verb->footer(base::str(
      "SOURCE is cifar-10-binary.tar.gz or cifar-10-python.tar.gz on this disk, the address of one, or the "
      "data set's\n"
      "home page; without it the archive is downloaded from ",
      data::kCifar10Page, ".\n",
      "The archive's MD5 sum must be one of the published ones. Writes OUT/train-*.tar, OUT/test-*.tar and\n"
      "OUT/classes.txt.\n"
      "Examples: sluice data cifar10 shards\n"
      "          sluice data cifar10 ~/cifar-10-python.tar.gz shards"));
  verb->add_option("[SOURCE] OUT", flags->places, "The archive, and the folder for the shards")
      ->required()
      ->expected(1, 2);
  verb->add_option("--md5", options.md5, "Expected MD5 sum of an archive other than the published ones");
  verb->add_option("--seed", options.seed, "Seed of the training samples' order")->capture_default_str();
  verb->add_option("--shard-size", options.shard_size, "Samples in a shard")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  verb->add_flag("--overwrite", options.overwrite, "Replace train and test shards that are there");
  verb->callback(guarded("cifar10", exit_status, [flags]() -> base::Status {
    Progress progress;
    if (flags->places.size() == 2) flags->options.source = flags->places.front();
    flags->options.folder = flags->places.back();
    flags->options.progress = [&](const std::string& what, std::int64_t done, std::int64_t total) {
      progress.show(what, done, total);
    };
    SLUICE_TRY(const auto report, data::pack_cifar10(flags->options));
    progress.clear();
    print_set(report.train);
    print_set(report.test);
    return {};
  }));
}

}  // namespace

void add_data_verbs(CLI::App& app, int& exit_status) {
  auto* noun = app.add_subcommand("data", "Make, list and check WebDataset shards");
  noun->require_subcommand(1);
  add_pack(*noun, exit_status);
  add_ls(*noun, exit_status);
  add_verify(*noun, exit_status);
  add_digits(*noun, exit_status);
  add_cifar10(*noun, exit_status);
  add_data_cp(*noun, exit_status);
}

}  // namespace sluice::cli
