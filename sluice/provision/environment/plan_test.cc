#include "sluice/provision/environment/plan.h"

#include <gmock/gmock.h>

#include "sluice/base/text/join.h"
#include "sluice/provision/environment/notices.h"
#include "sluice/provision/environment/requests.h"

namespace sluice::provision {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr double kNow = 1'800'000'000;

Settings wanted() {
  Settings settings;
  settings.name = "e";
  settings.project = "p";
  settings.owner = "me";
  settings.zones = {"us-central1-b"};
  settings.ttl = "8h";
  settings.tpu.emplace().type = "v3-32";
  settings.machines.emplace().count = 2;
  settings.nfs = NfsSettings{};
  settings.disk.emplace().size_gb = 100;
  settings.disk->script = Script{"fill.sh", "x"};
  settings.bucket = BucketSettings{};
  return settings;
}

Piece piece(Part part, const std::string& name, const std::string& state, const std::string& type,
            double size) {
  Piece made;
  made.part = part;
  made.name = name;
  made.zone = "us-central1-b";
  made.state = state;
  made.type = type;
  made.size_gb = size;
  made.mark = Mark{"e", "me", kNow - 3600, kNow + 7 * 3600};
  made.hourly = 1;
  return made;
}

// All that the settings want, as it is after apply.
Survey made() {
  Survey survey;
  survey.pieces = {piece(Part::kNetwork, "sluice-e-network", "", "", 0),
                   piece(Part::kFirewall, "sluice-e-internal", "", kAutomaticRange, 0),
                   piece(Part::kFirewall, "sluice-e-ssh", "", kProxyRange, 0),
                   piece(Part::kNfs, "sluice-e-nfs", "READY", "BASIC_HDD", 1024),
                   piece(Part::kDisk, "sluice-e-disk", "READY", "pd-balanced", 100),
                   piece(Part::kMachine, "sluice-e-machine-0", "RUNNING", "n1-standard-16", 0),
                   piece(Part::kMachine, "sluice-e-machine-1", "RUNNING", "n1-standard-16", 0),
                   piece(Part::kBucket, "sluice-p-e", "READY", "STANDARD", 0),
                   piece(Part::kTpu, "sluice-e-tpu", "READY", "v3-32", 0)};
  survey.pieces[4].labels = {{kScriptLabel, script_label(wanted())}, {kDataLabel, "ready"}};
  return survey;
}

// "delete tpu, create tpu" of what changes something.
std::string changes(const Plan& plan) {
  std::vector<std::string> texts;
  for (const Step& step : plan.steps)
    if (step.act != Act::kSame && step.act != Act::kKeep && step.act != Act::kDiffers)
      texts.push_back(base::str(act_name(step.act), " ", step.name));
  return base::join(texts, ", ");
}

PlanOptions options(PlanOptions::Verb verb, std::vector<Part> only = {}) {
  PlanOptions made;
  made.verb = verb;
  made.only = std::move(only);
  made.now = kNow;
  return made;
}

Plan plan(const Settings& settings, const Survey& survey, PlanOptions::Verb verb = PlanOptions::kApply,
          std::vector<Part> only = {}) {
  return plan_changes(settings, survey, options(verb, std::move(only)));
}

TEST(Plan, OfNothingMakesAllWithTheDearestLast) {
  const Plan all = plan(wanted(), {});
  EXPECT_EQ(
      changes(all),
      "create sluice-e-network, create sluice-e-internal, create sluice-e-ssh, create sluice-e-nfs, create "
      "sluice-e-disk, fill sluice-e-prepare, create sluice-e-machine-0, create sluice-e-machine-1, create "
      "sluice-p-e, create sluice-e-tpu");
  EXPECT_THAT(all.problems, IsEmpty());
  EXPECT_EQ(all.mark.expires, kNow + 8 * 3600);
  EXPECT_NEAR(*all.total, *all.hourly * 8, 1e-9);
  EXPECT_GT(*all.hourly, 32.0);  // 16 chips of v3
}

TEST(Plan, OfWhatIsThereDoesNothing) {
  const Plan none = plan(wanted(), made());
  EXPECT_EQ(changes(none), "");
  EXPECT_FALSE(none.changes());
  EXPECT_EQ(none.mark.expires, kNow + 7 * 3600);  // counted from when it was made
}

TEST(Plan, TheTpuIsReplacedByUpdateAlone) {
  Settings settings = wanted();
  settings.tpu->type = "v3-128";
  EXPECT_EQ(changes(plan(settings, made())), "");
  EXPECT_EQ(changes(plan(settings, made(), PlanOptions::kUpdate, {Part::kTpu})),
            "delete sluice-e-tpu, create sluice-e-tpu");
}

TEST(Plan, WhatAKilledCallLeftIsGoneOnWith) {
  Survey survey = made();
  survey.pieces[4].labels.erase(kDataLabel);
  survey.pieces.push_back(piece(Part::kPrepare, "sluice-e-prepare", "RUNNING", "n1-standard-16", 0));
  EXPECT_EQ(changes(plan(wanted(), survey)), "fill sluice-e-prepare");
  survey.pieces[4].labels[kDataLabel] = "ready";
  EXPECT_EQ(changes(plan(wanted(), survey)), "delete sluice-e-prepare");
  survey.pieces[8].state = "CREATING";
  EXPECT_EQ(changes(plan(wanted(), survey)), "delete sluice-e-prepare, create sluice-e-tpu");
  survey.pieces[8].state = "PREEMPTED";
  EXPECT_EQ(changes(plan(wanted(), survey)),
            "delete sluice-e-tpu, delete sluice-e-prepare, create sluice-e-tpu");
}

TEST(Plan, DisksAndSharesGrowAndDoNotShrink) {
  Settings settings = wanted();
  settings.disk->size_gb = 200;
  settings.nfs->size_gb = 2048;
  EXPECT_EQ(changes(plan(settings, made())), "grow sluice-e-nfs, grow sluice-e-disk");
  settings.disk->size_gb = 50;
  settings.nfs->size_gb = 1024;
  EXPECT_EQ(changes(plan(settings, made())), "");
  EXPECT_THAT(plan(settings, made(), PlanOptions::kUpdate, {Part::kDisk}).problems,
              ElementsAre(HasSubstr("add machines to --only")));
  EXPECT_EQ(
      changes(plan(settings, made(), PlanOptions::kUpdate)),
      "delete sluice-e-tpu, delete sluice-e-machine-0, delete sluice-e-machine-1, delete sluice-e-disk, "
      "create "
      "sluice-e-disk, fill sluice-e-prepare, create sluice-e-machine-0, create sluice-e-machine-1, create "
      "sluice-e-tpu");
}

TEST(Plan, RefusesWhatIsNotOurs) {
  Survey survey = made();
  survey.pieces[4].mark.reset();
  EXPECT_THAT(plan(wanted(), survey).problems, ElementsAre(HasSubstr("was not made by Sluice")));
  survey = made();
  for (Piece& one : survey.pieces) one.mark->owner = "you";
  EXPECT_THAT(plan(wanted(), survey).problems, ElementsAre(HasSubstr("of you exists")));
}

TEST(Plan, TimeAndMoney) {
  Settings settings = wanted();
  settings.max_cost = 10;
  EXPECT_THAT(plan(settings, {}).problems, ElementsAre(HasSubstr("more than env.max_cost 10")));
  // What is not asked for costs as much as it does without this call: here nothing.
  PlanOptions network;
  network.only = {Part::kNetwork, Part::kFirewall};
  network.now = kNow;
  const Plan only_network = plan_changes(settings, {}, network);
  EXPECT_THAT(only_network.problems, IsEmpty());
  EXPECT_EQ(only_network.hourly, 0.0);
  const Survey whole = made();  // of which each piece costs a dollar
  EXPECT_EQ(plan_changes(settings, whole, network).hourly,
            static_cast<double>(whole.pieces.size() - 3));  // less the network and its rules
  settings.max_cost = 1000;
  EXPECT_THAT(plan(settings, {}).problems, IsEmpty());
  settings.ttl = "30m";
  EXPECT_THAT(plan(settings, made()).problems, ElementsAre(HasSubstr("its time has passed")));
}

TEST(Notices, FilesValuesAndOpenPorts) {
  Settings settings = wanted();
  settings.ssh_from = {"0.0.0.0/0", "::/0", "203.0.113.0/24", "0.0.0.0/1"};
  settings.tpu->setup = Script{"setup.sh", "0123456789"};
  settings.tpu->variables = {{"TOKEN", "x"}};
  settings.disk->variables = {{"DATA", "gs://b"}};
  const std::vector<std::string> all = notices(settings, plan(settings, {}));
  EXPECT_THAT(
      all, ElementsAre(HasSubstr("0.0.0.0/0 opens port 22"), HasSubstr("::/0 opens port 22"),
                       HasSubstr("0.0.0.0/1 opens port 22"), HasSubstr("sends fill.sh (1 bytes)"),
                       HasSubstr("disk.variables (DATA)"), HasSubstr("sends setup.sh (10 bytes) to the TPU"),
                       HasSubstr("tpu.variables (TOKEN)")));
  for (const std::string& line : all) EXPECT_THAT(line, testing::Not(HasSubstr("gs://b")));
  EXPECT_THAT(notices(wanted(), plan(wanted(), made())), IsEmpty());
}

TEST(Requests, TheShareIsOpenToTheNetworkAlone) {
  Settings settings = wanted();
  const auto rules = [&] { return file_shares(settings, 2048)[0]["nfsExportOptions"]; };
  EXPECT_EQ(rules().dump(),
            R"([{"accessMode":"READ_WRITE","ipRanges":["10.128.0.0/9"],"squashMode":"NO_ROOT_SQUASH"}])");
  settings.nfs->root_from = {"10.128.0.7/32"};
  EXPECT_EQ(rules()[0]["ipRanges"][0], "10.128.0.7/32");
  EXPECT_EQ(rules()[1]["squashMode"], "ROOT_SQUASH");
  EXPECT_EQ(rules()[1]["ipRanges"][0], "10.128.0.0/9");
  settings.network = "default";
  EXPECT_THAT(notices(settings, plan(settings, {})), testing::Contains(HasSubstr("nfs.clients limits")));
}

TEST(Requests, MachinesActAsTheFileSays) {
  Settings settings = wanted();
  settings.service_account = "me@p.example";
  settings.scopes = {"https://www.googleapis.com/auth/devstorage.read_only"};
  const google::Json machine = machine_body(settings, {}, "m", "", kNow);
  EXPECT_EQ(
      machine["serviceAccounts"].dump(),
      R"([{"email":"me@p.example","scopes":["https://www.googleapis.com/auth/devstorage.read_only"]}])");
  EXPECT_EQ(tpu_wish(settings, {}, "", kNow).scopes, settings.scopes);
}

// What is in quotes stays in them, whatever stands in it.
TEST(Requests, ValuesRunNothing) {
  const std::string evil = "'; touch x; $(id) `id`\n\"";
  const std::string script = start_script(wanted(), "10.0.0.2", {{"A", evil}});
  EXPECT_THAT(script, HasSubstr("export A=''\\''; touch x; $(id) `id`\n\"'\n"));
}

TEST(Destroy, InReverseAndSaysWhatStays) {
  PlanOptions wish = options(PlanOptions::kDestroy);
  Survey survey = made();
  survey.pieces[7].state = "HOLDS_DATA";
  EXPECT_EQ(changes(plan_destroy("e", "me", survey, wish)),
            "delete sluice-e-tpu, delete sluice-e-machine-1, delete sluice-e-machine-0, delete "
            "sluice-e-disk, delete "
            "sluice-e-nfs, delete sluice-e-ssh, delete sluice-e-internal, delete sluice-e-network");
  wish.keep = {Part::kNfs};
  const Plan kept = plan_destroy("e", "me", survey, wish);
  EXPECT_THAT(kept.steps.back().why, HasSubstr("what stays is in it"));
  EXPECT_THAT(plan_destroy("e", "you", survey, wish).problems, ElementsAre(HasSubstr("is me's")));
  wish = options(PlanOptions::kDestroy, {Part::kDisk});
  EXPECT_THAT(plan_destroy("e", "me", survey, wish).problems,
              ElementsAre(HasSubstr("use it: name these too")));
  wish.only = {Part::kBucket};
  EXPECT_EQ(changes(plan_destroy("e", "me", survey, wish)), "delete sluice-p-e");
  EXPECT_TRUE(plan_destroy("f", "me", survey, wish).steps.empty());
}

TEST(Plan, ALongerTimeToLiveMovesWhatIsThere) {
  Settings longer = wanted();
  EXPECT_EQ(changes(plan(longer, made())), "");
  longer.ttl = "10h";
  const auto only = options(PlanOptions::kApply, {Part::kNetwork, Part::kFirewall, Part::kBucket});
  const Plan moved = plan_changes(longer, made(), only);
  EXPECT_EQ(changes(moved), "mark sluice-e-internal, mark sluice-e-ssh, mark sluice-p-e");
  EXPECT_EQ(moved.steps.back().why, "ends 2027-01-15T17:00:00Z, not 2027-01-15T15:00:00Z");
}

}  // namespace
}  // namespace sluice::provision
