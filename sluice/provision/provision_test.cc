// Whose things are, what they cost, and what is left over.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/base/files/file.h"
#include "sluice/base/process.h"
#include "sluice/base/text/join.h"
#include "sluice/provision/compute_slices.h"
#include "sluice/provision/guard.h"
#include "sluice/provision/inventory.h"
#include "sluice/provision/node_owners.h"
#include "sluice/provision/price.h"
#include "sluice/provision/quota.h"
#include "sluice/provision/slice_request.h"
#include "sluice/provision/slice_state.h"

namespace sluice::provision {
namespace {

using ::testing::HasSubstr;

constexpr double kNow = 1795575600;  // 2026-11-25T03:00:00Z

TEST(Ownership, MarksGoThroughLabelsAndDescriptions) {
  const Mark mark{"lab-1", "ada", kNow, kNow + 7200};
  const auto labels = labels_of(mark);
  EXPECT_EQ(labels.at("sluice-created"), "20261125t030000z");
  for (const auto& back : {mark_of_labels(labels), mark_of_description(description_of(mark))}) {
    ASSERT_TRUE(back);
    EXPECT_EQ(back->environment, "lab-1");
    EXPECT_EQ(back->owner, "ada");
    EXPECT_EQ(back->created, kNow);
    EXPECT_EQ(back->expires, kNow + 7200);
  }
  EXPECT_FALSE(mark_of_labels({{"team", "x"}}));
  EXPECT_FALSE(mark_of_description("made by hand"));
  EXPECT_FALSE(mark_of_description("[1]"));
}

TEST(Ownership, OnlyOursIsAdopted) {
  EXPECT_TRUE(may_adopt(Mark{"e", "", 0, 0}, "e", "x"));
  EXPECT_THAT(may_adopt(Mark{"f", "bob", 0, 0}, "e", "x").error().what(),
              HasSubstr("environment 'f' of bob"));
  EXPECT_THAT(may_adopt(std::nullopt, "e", "x").error().what(), HasSubstr("not made by Sluice"));
}

// A queue of two zones: every entry has one node, which names its entry or is named by it.
std::size_t comparisons_for(int entries) {
  std::vector<google::QueuedResource> queue;
  std::vector<google::Node> nodes;
  for (int i = 0; i < entries; ++i) {
    google::QueuedResource entry;
    entry.zone = i % 2 == 0 ? "a" : "b";
    entry.id = base::str("q", i / 2);
    google::Node node;
    node.zone = entry.zone;
    node.id = base::str("n", i / 2);
    if (i % 3 == 0) {
      node.queued_resource = entry.id;
    } else {
      entry.nodes.push_back({node.id, "", {}, ""});
    }
    queue.push_back(entry);
    nodes.push_back(node);
  }
  const NodeOwners owners(queue);
  for (int i = 0; i < entries; ++i) EXPECT_EQ(owners.of(nodes[i]), static_cast<std::size_t>(i));
  google::Node alone;
  alone.zone = "c";
  alone.id = "n1";
  EXPECT_EQ(owners.of(alone), std::nullopt);
  return owners.comparisons();
}

TEST(Slices, FindingTheEntriesOfNodesCostsAboutTheirNumber) {
  const auto few = static_cast<double>(comparisons_for(1000)),
             many = static_cast<double>(comparisons_for(10'000));
  EXPECT_LT(many / few, 10 * 1.5);  // n log n: 10 * log(10000) / log(1000) = 13.3; pairs would be 100
}

TEST(Slices, AGroupHasNoMachinesOfAnotherWithALongerName) {
  EXPECT_TRUE(is_machine_of("a-0x7k", "a"));
  EXPECT_TRUE(is_machine_of("a-1-0x7k", "a-1"));
  for (const char* machine : {"a-1-0x7k", "ab-0x7k", "a-", "a", "b-0x7k"})
    EXPECT_FALSE(is_machine_of(machine, "a")) << machine;
}

TEST(Ownership, TimesAndNames) {
  EXPECT_EQ(parse_expiry("1h", kNow, "--ttl").value(), kNow + 3600);
  EXPECT_EQ(parse_expiry("2026-11-25T04:00:00Z", kNow, "--ttl").value(), kNow + 3600);
  EXPECT_THAT(parse_expiry("2026-11-25T02:00:00Z", kNow, "--ttl").error().what(), HasSubstr("has passed"));
  EXPECT_TRUE(check_name("a-1", "the name"));
  for (const char* wrong : {"", "1a", "a-", "A", "a_b"}) EXPECT_FALSE(check_name(wrong, "the name")) << wrong;
  EXPECT_FALSE(check_name(std::string(64, 'a'), "the name"));
  EXPECT_EQ(label_value("Ada@Example.com"), "ada-example-com");
}

TEST(Price, OfEverything) {
  EXPECT_DOUBLE_EQ(*tpu_price("v3-32", false), 32);
  EXPECT_DOUBLE_EQ(*tpu_price("v5litepod-16", true, 2), 0.245 * 32);
  EXPECT_FALSE(tpu_price("tpu7x-8", false));
  EXPECT_NEAR(*machine_price("n2-standard-16", false), 16 * 0.031611 + 64 * 0.004237, 1e-9);
  EXPECT_LT(*machine_price("n2-standard-16", true), 0.3 * *machine_price("n2-standard-16", false));
  EXPECT_TRUE(machine_price("e2-custom-4-8192", false));
  EXPECT_FALSE(machine_price("m9-mega-1", false));
  EXPECT_NEAR(*disk_price("pd-balanced", 730), 73.0 / 730, 1e-9);
  EXPECT_NEAR(*filestore_price("BASIC_HDD", 1024), 1024 * 0.16 / 730, 1e-9);
}

SliceWish wish() {
  SliceWish wish;
  wish.name = "a";
  wish.type = "v3-32";
  wish.zones = {"us-central1-a"};
  return wish;
}

TEST(Wish, MaxCostIsComparedBeforeAnything) {
  SliceWish dear = wish();
  dear.max_cost = 100;
  EXPECT_THAT(check_wish(dear, kNow).error().what(), HasSubstr("--max-cost needs --ttl"));
  dear.mark.expires = kNow + 4 * 3600;
  EXPECT_THAT(check_wish(dear, kNow).error().what(), HasSubstr("$128.00 in 4.0 h"));
  dear.capacity = Capacity::kSpot;
  EXPECT_TRUE(check_wish(dear, kNow));
  dear.slices = 4;
  EXPECT_FALSE(check_wish(dear, kNow));
  dear.mark.expires = kNow - 1;
  EXPECT_THAT(check_wish(dear, kNow).error().what(), HasSubstr("has passed"));
}

TEST(Wish, ZonesAndProjectsHaveTheirForm) {
  SliceWish there = wish();
  for (const char* zone : {"A B", "moon", "us-central1", "any "}) {
    there.zones = {"us-central1-a", zone};
    EXPECT_THAT(check_wish(there, kNow).error().what(), HasSubstr(base::str("'", zone, "' is not a zone")));
  }
  there.zones = {"any"};
  EXPECT_TRUE(check_wish(there, kNow));
  for (const auto& zones :
       std::vector<std::vector<std::string>>{{}, {"any"}, {"us-central1-a", "us-east1-d"}})
    EXPECT_TRUE(check_zones(zones));
  for (const auto& zones : std::vector<std::vector<std::string>>{{"any", "us-east1-d"}, {"any", "any"}, {""}})
    EXPECT_FALSE(check_zones(zones));
  for (const char* project : {"my-project-1", "123456789", "example.com:old"})
    EXPECT_TRUE(check_project_id(project));
  for (const char* project : {"A B", "YOUR-PROJECT", "", "a-"})
    EXPECT_FALSE(check_project_id(project)) << project;
}

TEST(Wish, BodiesOfRequests) {
  const auto type = base::value_or_throw(estimate::find_tpu_slice("v3-32"));
  SliceWish spot = completed(wish(), kNow);
  spot.capacity = Capacity::kSpot;
  const auto node = node_body(spot, type, "p", "z-a");
  EXPECT_TRUE(google::truth(node, "schedulingConfig.spot"));
  EXPECT_TRUE(google::truth(node, "networkConfig.enableExternalIps"));
  EXPECT_EQ(google::texts(node, "labels").at("sluice-env"), "tpu-a");
  spot.slices = 2;
  spot.mark.expires = kNow + 3600;
  const auto queued = queued_body(spot, type, "p", "z-a", true, kNow);
  EXPECT_TRUE(queued.contains("spot"));
  EXPECT_EQ(google::text(queued, "runDuration.terminationTime"), "2026-11-25T04:00:00Z");
  EXPECT_EQ(google::number(google::elements(queued, "tpu.nodeSpec")[0], "multisliceParams.nodeCount"), 2);
}

TEST(Wish, WorkerZeroHoldsTheLimitOfIdleTime) {
  SliceWish idle = completed(wish(), kNow);
  const auto type = base::value_or_throw(estimate::find_tpu_slice("v3-32"));
  idle.startup_script = "#!/usr/bin/env python3\nprint('ready')";
  EXPECT_EQ(google::text(node_body(idle, type, "p", "z-a"), "metadata.startup-script"), idle.startup_script);
  idle.idle = 1800;
  const auto startup = google::texts(node_body(idle, type, "p", "z-a"), "metadata").at("startup-script");
  EXPECT_THAT(startup, HasSubstr("projects/p/locations/z-a/nodes/a"));
  EXPECT_THAT(startup, HasSubstr("\nidle=1800\n"));
  // As a machine runs it: the timer does not begin on another worker, and the user's script runs as it is.
  const auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  base::value_or_throw(base::write_file_atomically(folder.path("curl"), "#!/bin/sh\necho 1\n"));
  base::value_or_throw(base::write_file_atomically(folder.path("startup"), startup));
  const auto ran = base::run_process(
      {"sh", "-c", "cd \"$0\" && chmod +x curl && PATH=$PWD:$PATH TMPDIR=$PWD HOME=$PWD sh startup",
       folder.path(".")},
      {}, 10);
  ASSERT_TRUE(ran);
  EXPECT_EQ(ran->status.code(), 0) << ran->output;
  EXPECT_EQ(ran->output, "ready\n");
  idle.type = "tpu7x-8";
  EXPECT_THAT(check_wish(idle, kNow).error().what(), HasSubstr("give --ttl"));
}

TEST(Slice, StateOfTheWhole) {
  google::Node ready, lost;
  ready.state = "READY";
  lost.state = "PREEMPTED";
  EXPECT_EQ(slice_of({ready}, std::nullopt).state, "READY");
  google::QueuedResource queue;
  queue.state = "ACTIVE";
  queue.slices = 2;
  EXPECT_EQ(slice_of({ready}, queue).state, "CREATING");
  EXPECT_EQ(slice_of({ready, ready}, queue).state, "READY");
  EXPECT_EQ(slice_of({ready, lost}, queue).state, "PREEMPTED");
  queue.state = "SUSPENDED";
  EXPECT_EQ(slice_of({ready, ready}, queue).state, "SUSPENDED");
  queue.state = "WAITING_FOR_RESOURCES";
  EXPECT_EQ(slice_of({}, queue).state, "WAITING_FOR_RESOURCES");
}

Thing thing(ThingKind kind, const std::string& name, const std::string& state, std::optional<Mark> mark) {
  Thing thing;
  thing.kind = kind;
  thing.name = name;
  thing.state = state;
  thing.mark = std::move(mark);
  thing.created = kNow - 7200;
  return thing;
}

TEST(Sweep, WhatIsLeftOver) {
  const Mark lives{"lives", "", 0, 0}, gone{"gone", "", 0, 0}, over{"over", "ada", 0, kNow - 1};
  Inventory inventory;
  inventory.things = {thing(ThingKind::kNetwork, "net-gone", "-", gone),
                      thing(ThingKind::kFirewall, "wall-gone", "-", gone),
                      thing(ThingKind::kNetwork, "net-lives", "-", lives),
                      thing(ThingKind::kTpu, "t-lives", "READY", lives),
                      thing(ThingKind::kTpu, "t-lost", "PREEMPTED", lives),
                      thing(ThingKind::kTpu, "t-hand", "PREEMPTED", std::nullopt),
                      thing(ThingKind::kMachine, "m-hand", "RUNNING", std::nullopt),
                      thing(ThingKind::kDisk, "d-over", "READY", over),
                      thing(ThingKind::kTpu, "t-queue", "FAILED", lives)};
  Thing young = thing(ThingKind::kFirewall, "wall-young", "-", Mark{"young", "", 0, 0});
  young.created = kNow - 60;
  inventory.things.push_back(young);
  std::vector<std::string> names;
  for (const Leftover& leftover : leftovers(inventory, kNow)) names.push_back(leftover.thing.name);
  EXPECT_EQ(names, (std::vector<std::string>{"t-lost", "t-queue", "d-over", "wall-gone", "net-gone"}));
}

// Its mark cannot follow when the time to live becomes longer.
TEST(Sweep, ANetworkEndsWithTheLastOfItsEnvironment) {
  const Mark before{"e", "ada", 0, kNow - 1}, longer{"e", "ada", 0, kNow + 60};
  Inventory inventory;
  inventory.things = {thing(ThingKind::kNetwork, "net", "-", before),
                      thing(ThingKind::kDisk, "disk", "READY", longer)};
  EXPECT_TRUE(leftovers(inventory, kNow).empty());
  EXPECT_EQ(leftovers(inventory, kNow + 60).size(), 2u);
}

// Runs a startup script as worker 0 of a TPU does, beside a `curl` that answers for Google's services; what
// the metadata entry with the deadline answers is the shell text `deadline`, which sets `code` and may write
// to $out. What was deleted, and how often the entry was asked for before.
std::string run_timer(const std::string& startup, const std::string& deadline) {
  const auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  const std::string curl = R"sh(#!/bin/sh
out=/dev/null
for word; do [ "$last" = -o ] && out=$word; last=$word; done
case $* in
  *sluice-deadline*)
    echo >>"$HOME/asked"
    asked=$(wc -l <"$HOME/asked")
)sh" + deadline + R"sh(
    echo "$code"
    [ "$code" = 200 ] || exit 22 ;;
  *agent-worker-number*) echo 0 ;;
  *-X\ DELETE*) echo "$* after $(wc -l <"$HOME/asked")" >>"$HOME/deleted"; echo 200 ;;
  *service-accounts/default/token*) echo '{"access_token": "t"}' ;;
  *) echo 200 ;;
esac
)sh";
  base::value_or_throw(base::write_file_atomically(folder.path("curl"), curl));
  std::string fast = startup;
  fast.replace(fast.find("\nspeed=1\n"), 9, "\nspeed=2\n");
  base::value_or_throw(base::write_file_atomically(folder.path("startup"), fast));
  const auto ran = base::run_process(
      {"sh", "-c",
       "cd \"$0\" && chmod +x curl && export PATH=$PWD:$PATH TMPDIR=$PWD HOME=$PWD XDG_STATE_HOME=$PWD\n"
       "sh startup; for _ in $(seq 200); do [ -e deleted ] && break; sleep 0.1; done\n"
       "kill $(cat sluice/guard/pid); cat deleted",
       folder.path(".")},
      {}, 60);
  return base::value_or_throw(ran).output;
}

std::string startup_with_guard(SliceWish made) {
  made.idle = 1800;
  const auto type = base::value_or_throw(estimate::find_tpu_slice("v3-32"));
  return google::texts(node_body(completed(made, kNow), type, "p", "z-a"), "metadata").at("startup-script");
}

TEST(Guard, TheStartupScriptsTimerFollowsTheMetadata) {
  const auto startup = startup_with_guard(wish());
  EXPECT_TRUE(has_guard(startup));
  EXPECT_FALSE(has_guard("#!/bin/sh\n"));
  // The metadata has an end that has passed; the script itself has none.
  EXPECT_THAT(run_timer(startup, "code=200; echo 1 >$out"), HasSubstr("projects/p/locations/z-a/nodes/a"));
}

TEST(Guard, AnUnknownDeadlineIsNone) {
  SliceWish made = wish();
  made.mark.expires = 1;  // has passed; perhaps it was moved
  const auto said = run_timer(startup_with_guard(made), "code=503; [ $asked -lt 5 ] || code=404");
  EXPECT_THAT(said, HasSubstr("queuedResources/a"));
  EXPECT_THAT(said, HasSubstr("after 5\n"));
}

TEST(Guard, IsMadeAgainOfItsStartupScript) {
  SliceWish made = wish();
  made.startup_script = "#!/bin/sh\necho mine\n";
  SliceWish again = wish();
  again.startup_script = startup_with_guard(made);
  EXPECT_TRUE(take_guard(again));
  EXPECT_EQ(again.idle, 1800);
  EXPECT_EQ(again.startup_script, made.startup_script);
  again.startup_script = startup_with_guard(wish());
  EXPECT_TRUE(take_guard(again));
  EXPECT_EQ(again.startup_script, "");
  again.startup_script = made.startup_script;
  EXPECT_FALSE(take_guard(again));
  EXPECT_EQ(again.startup_script, made.startup_script);
}

TEST(Cost, SumsByOwner) {
  Inventory inventory;
  inventory.things = {thing(ThingKind::kTpu, "a", "READY", Mark{"e", "ada", 0, 0}),
                      thing(ThingKind::kTpu, "b", "READY", std::nullopt)};
  inventory.things[0].hourly = 2;
  inventory.things[1].hourly = 3;
  const auto rows = costs_by(inventory, "owner");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].key, "(not made by Sluice)");
  EXPECT_EQ(rows[1].hourly, 2);
}

TEST(Quota, BelongsToAGeneration) {
  const auto& v6e = *base::value_or_throw(estimate::find_tpu_slice("v6e-16")).generation;
  const auto& v5e = *base::value_or_throw(estimate::find_tpu_slice("v5litepod-16")).generation;
  const std::string name = "TPUV6EPreemptiblePerProjectPerRegionForTPUAPI";
  EXPECT_TRUE(quota_is_for(name, v6e, true));
  EXPECT_FALSE(quota_is_for(name, v6e, false));
  EXPECT_FALSE(quota_is_for(name, v5e, true));
  EXPECT_TRUE(quota_is_for("TPUV5sLitepodPerProjectPerZoneForTPUAPI", v5e, false));
}

TEST(Quota, OneLimitWithRoomIsEnough) {
  const auto v3 = base::value_or_throw(estimate::find_tpu_slice("v3-32"));
  const google::Quota here{"TPUV3PerProjectPerRegion", 32, 16, "us-central1", true};
  const google::Quota zonal{"TPUV3PodPerProjectPerZone", 0, 0, "us-central1-b", false};
  const google::Quota spot{"TPUV3PreemptiblePerProjectPerRegion", 64, 0, "us-central1", true};
  const auto lacking = [&](const std::vector<google::Quota>& quotas, Capacity capacity,
                           const std::string& zone) {
    const auto quota = lacking_quota(quotas, v3, capacity, 1, zone);
    return quota ? quota->name : "";
  };
  EXPECT_EQ(lacking({zonal, here, spot}, Capacity::kOnDemand, "us-central1-b"), here.name);
  EXPECT_EQ(lacking({zonal, here, spot}, Capacity::kSpot, "us-central1-b"), "");
  EXPECT_EQ(lacking({here}, Capacity::kOnDemand, "europe-west4-a"), "");  // nothing is known of it
  EXPECT_EQ(lacking({here}, Capacity::kReservation, "us-central1-b"), "");
  google::Quota wide = zonal;
  wide.limit = 512;
  EXPECT_EQ(lacking({here, wide}, Capacity::kOnDemand, "us-central1-b"), "");
}

}  // namespace
}  // namespace sluice::provision
