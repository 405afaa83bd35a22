// sluice sweep
#include <cstdio>
#include <memory>

#include "sluice/base/text/printable.h"
#include "sluice/base/text/table.h"
#include "sluice/cli/cloud/common.h"
#include "sluice/cli/verbs.h"

namespace sluice::cli {
namespace {

google::Json leftover_json(const provision::Leftover& leftover) {
  google::Json json = json_of(leftover.thing);
  json["reason"] = leftover.reason;
  return json;
}

// Deletes what can be deleted; returns how many could not.
int delete_all(provision::Cloud& cloud, const std::vector<provision::Leftover>& leftovers) {
  int failed = 0;
  for (const provision::Leftover& leftover : leftovers) {
    const auto done = provision::delete_thing(cloud, leftover.thing);
    if (!done &&
        (done.error().kind == google::Kind::kCancelled || done.error().kind == google::Kind::kCredentials))
      throw_failure(done.error());
    if (!done) {
      std::fprintf(stderr, "sluice: %s\n", base::printable(done.error().what()).c_str());
      // A thing that is kept on purpose is not a failure.
      failed += done.error().kind != google::Kind::kInvalid;
    } else if (!cloud.api->dry_run()) {
      std::fprintf(stderr, "deleted %s %s\n", provision::kind_word(leftover.thing.kind),
                   leftover.thing.name.c_str());
    }
  }
  return failed;
}

int sweep(const CloudFlags& flags) {
  CloudSession session(flags);
  google::Json document = {{"leftovers", google::Json::array()}, {"deleted", flags.yes && !flags.dry_run}};
  std::vector<std::vector<std::string>> rows;
  provision::Gaps gaps;
  int failed = 0, count = 0;
  for (provision::Cloud& cloud : session.clouds()) {
    const auto inventory = value_or_fail(provision::take_inventory(cloud, /*all=*/true));
    gaps.add(inventory.gaps);
    const auto leftovers = provision::leftovers(inventory, cloud.now());
    count += static_cast<int>(leftovers.size());
    for (const auto& leftover : leftovers) {
      document["leftovers"].push_back(leftover_json(leftover));
      auto table = rows_of({leftover.thing}, true);
      table[0].push_back("WHY");
      table[1].push_back(leftover.reason);
      if (rows.empty()) rows.push_back(table[0]);
      rows.push_back(table[1]);
    }
    if (flags.yes) failed += delete_all(cloud, leftovers);
  }
  if (flags.json) {
    document["unreachable"] = gaps.unreachable;
    document["not_enabled"] = gaps.not_enabled;
    print_document(document);
  } else if (count == 0) {
    std::printf("Nothing is left over.\n");
  } else {
    base::print_table(rows);
    if (!flags.yes) std::printf("Nothing was deleted: sluice sweep --yes deletes these.\n");
  }
  std::fflush(stdout);
  return say_gaps(gaps) != 0 || failed > 0 ? 1 : 0;
}

}  // namespace

Verb sweep_verb() {
  auto flags = std::make_shared<CloudFlags>();
  return {.name = "sweep",
          .help = "List what Sluice made and nobody needs any more; --yes deletes it",
          .footer =
              "That is what has expired, TPU slices that are PREEMPTED, SUSPENDED or FAILED and still "
              "hold quota, and networks, firewalls and the like of environments that have nothing else "
              "left. What Sluice did not make is never touched.",
          .add_flags =
              [flags](CLI::App& app) {
                add_flags(app, {project_row(*flags, /*several=*/true), yes_row(*flags), dry_run_row(*flags),
                                json_row(*flags)});
              },
          .run = [flags] { return guard_interrupt([&] { return sweep(*flags); }); }};
}

}  // namespace sluice::cli
