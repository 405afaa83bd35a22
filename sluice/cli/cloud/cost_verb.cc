// sluice cost
#include <cstdio>
#include <memory>

#include "sluice/base/text/join.h"
#include "sluice/base/text/table.h"
#include "sluice/cli/cloud/common.h"
#include "sluice/cli/verbs.h"
#include "sluice/provision/price.h"

namespace sluice::cli {
namespace {

struct CostFlags {
  CloudFlags cloud;
  std::string by;
};

provision::Inventory everything(CloudSession& session) {
  provision::Inventory all;
  for (provision::Cloud& cloud : session.clouds()) {
    auto one = value_or_fail(provision::take_inventory(cloud, /*all=*/true));
    std::move(one.things.begin(), one.things.end(), std::back_inserter(all.things));
    all.gaps.add(one.gaps);
  }
  return all;
}

void print_sums(const provision::Inventory& all, const std::string& by) {
  std::vector<std::vector<std::string>> rows = {
      {by == "owner" ? "OWNER" : "ENV", "THINGS", "$/H", "$ SO FAR", "WITHOUT PRICE"}};
  provision::CostRow sum;
  for (const provision::CostRow& row : provision::costs_by(all, by)) {
    rows.push_back({row.key, base::str(row.things), provision::dollars(row.hourly),
                    provision::dollars(row.spent), base::str(row.without_price)});
    sum.things += row.things;
    sum.hourly += row.hourly;
    sum.spent += row.spent;
    sum.without_price += row.without_price;
  }
  rows.push_back({"all", base::str(sum.things), provision::dollars(sum.hourly), provision::dollars(sum.spent),
                  base::str(sum.without_price)});
  base::print_table(rows);
}

int cost(const CostFlags& flags) {
  CloudSession session(flags.cloud);
  const provision::Inventory all = everything(session);
  if (flags.cloud.json) {
    google::Json document = {{"prices", provision::price_date()},
                             {"unreachable", all.gaps.unreachable},
                             {"not_enabled", all.gaps.not_enabled},
                             {"things", google::Json::array()},
                             {"sums", google::Json::array()}};
    for (const auto& thing : all.things) document["things"].push_back(json_of(thing));
    for (const auto& row : provision::costs_by(all, flags.by))
      document["sums"].push_back({{"key", row.key},
                                  {"things", row.things},
                                  {"dollars_an_hour", row.hourly},
                                  {"dollars_since_made", row.spent},
                                  {"without_price", row.without_price}});
    print_document(document);
    return say_unreachable(all.gaps.unreachable);
  }
  if (flags.by.empty()) {
    std::vector<provision::Thing> costly;
    for (const auto& thing : all.things)
      if (thing.hourly.value_or(1) > 0 || thing.spent.value_or(0) > 0) costly.push_back(thing);
    base::print_table(rows_of(costly, true));
    std::printf("\n");
  }
  print_sums(all, flags.by);
  say_price_note();
  std::fflush(stdout);
  return say_gaps(all.gaps);
}

}  // namespace

Verb cost_verb() {
  auto flags = std::make_shared<CostFlags>();
  return {.name = "cost",
          .help = "Show what runs in the cloud and what it costs by list prices",
          .footer =
              "TPUs, machines, disks and NFS shares of all zones, whoever made them. What buckets hold and "
              "traffic "
              "are not counted.",
          .add_flags =
              [flags](CLI::App& app) {
                add_flags(
                    app,
                    {Flag{"", "--by", &flags->by, "", "Only sums by env or owner"}.one_of({"env", "owner"}),
                     project_row(flags->cloud, /*several=*/true), json_row(flags->cloud)});
              },
          .run = [flags] { return guard_interrupt([&] { return cost(*flags); }); }};
}

}  // namespace sluice::cli
