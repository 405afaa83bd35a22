// sluice data update
#include <cstdio>
#include <memory>

#include "sluice/cli/data/common.h"
#include "sluice/data/tools/update.h"

namespace sluice::cli {
namespace {

struct UpdateFlags {
  std::vector<std::string> places;  // SHARDS… FOLDER
  data::UpdateOptions options;
};

base::Status update(UpdateFlags& flags) {
  flags.options.folder = flags.places.back();
  flags.places.pop_back();
  SLUICE_TRY(flags.options.urls, expand_arguments(flags.places));
  Progress progress;
  flags.options.progress = [&](std::int64_t done, std::int64_t total) {
    progress.show("shards", done, total);
  };
  SLUICE_TRY(const auto report, data::update_samples(flags.options));
  progress.clear();
  std::printf("%s changed (%s replaced, %s added) in %s, which %s written again\n",
              counted(report.samples, "sample").c_str(), counted(report.replaced, "member").c_str(),
              grouped(report.added).c_str(),
              counted(static_cast<std::int64_t>(report.shards.size()), "shard").c_str(),
              report.shards.size() == 1 ? "was" : "were");
  return {};
}

}  // namespace

Verb update_verb() {
  auto flags = std::make_shared<UpdateFlags>();
  return {
      .name = "update",
      .help = "Replace members of samples by their keys",
      .footer =
          "FOLDER has files KEY.EXTENSION, as 'sluice data cat --out' writes them: each replaces that member "
          "of the\n"
          "sample with this key, or is added to it. Only the shards that hold one of the keys are written "
          "again.\n"
          "Runs that train on the set meanwhile, or resume, find that its shards are not what they were.\n"
          "Example: sluice data cat 'shards/train-*.tar' --key 0000017 --out fixed\n"
          "         echo 4 >fixed/0000017.cls\n"
          "         sluice data update 'shards/train-*.tar' fixed",
      .add_flags =
          [flags](CLI::App& app) {
            add_flags(app,
                      {Flag{"", "SHARDS FOLDER", Words{&flags->places, 2}, "",
                            "The set's shards, and files named KEY.EXTENSION"}
                           .required(),
                       {"", "!--no-check", &flags->options.check, "", "Do not decode each image first"}});
            add_flags(app, memory_rows());
          },
      .run = guarded("update", [flags] { return update(*flags); })};
}

}  // namespace sluice::cli
