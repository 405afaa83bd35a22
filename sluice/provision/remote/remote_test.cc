// Workers, keys, host keys and ssh's file: what needs no service.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/base/files/file.h"
#include "sluice/base/process.h"
#include "sluice/base/text/strings.h"
#include "sluice/provision/guard.h"
#include "sluice/provision/remote/holders.h"
#include "sluice/provision/remote/host_keys.h"
#include "sluice/provision/remote/keys.h"
#include "sluice/provision/remote/ssh_config.h"
#include "sluice/provision/remote/tasks.h"
#include "sluice/provision/remote/workers.h"

namespace sluice::provision {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(Workers, RangesAreSortedAndUnique) {
  EXPECT_THAT(*parse_workers("all", 3), ElementsAre(0, 1, 2));
  EXPECT_THAT(*parse_workers("0,2-5", 8), ElementsAre(0, 2, 3, 4, 5));
  EXPECT_THAT(*parse_workers("3, 1-2,2", 4), ElementsAre(1, 2, 3));
}

TEST(Workers, OthersAreRefused) {
  for (const char* text : {"", "a", "1-", "-1", "3-2", "1,,2", "0x1", "99999999999999999999"})
    EXPECT_EQ(parse_workers(text, 4).error().code(), Code::kInvalidArgument) << text;
  EXPECT_THAT(parse_workers("2-4", 4).error().what(), HasSubstr("no worker 4; the slice has workers 0 to 3"));
  EXPECT_THAT(parse_workers("1", 1).error().what(), HasSubstr("worker 0 alone"));
}

constexpr char kKey[] = "ssh-rsa AAAAB3Nza me@here";

TEST(Keys, AreFoundByUserTypeAndBlob) {
  const std::string entry =
      "you:ssh-rsa AAAAB3Nza me@here\nme:ssh-ed25519 AAAAB3Nza x\nme:ssh-rsa AAAAB3Nza other";
  EXPECT_TRUE(has_key(entry, "me", kKey));
  EXPECT_FALSE(has_key(entry, "she", kKey));
  EXPECT_FALSE(has_key("me:ssh-rsa AAAAB3NzaB me@here", "me", kKey));
  EXPECT_FALSE(has_key("", "me", kKey));
  EXPECT_FALSE(
      has_key(R"(me:ssh-rsa AAAAB3Nza google-ssh {"userName":"me","expireOn":"2026-01-01T00:00:00+0000"})",
              "me", kKey));
}

TEST(Keys, AreAddedBehindTheOthers) {
  EXPECT_EQ(with_key("", "me", kKey), "me:ssh-rsa AAAAB3Nza me@here");
  EXPECT_EQ(with_key("you:a b", "me", kKey), "you:a b\nme:ssh-rsa AAAAB3Nza me@here");
  EXPECT_EQ(with_key("you:a b\n", "me", kKey), "you:a b\nme:ssh-rsa AAAAB3Nza me@here");
}

TEST(Keys, AreMadeOnceAndThePublicHalfAgain) {
  const auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  const std::string path = folder.path("ssh/key");
  const auto made = find_or_make_key(path);
  ASSERT_TRUE(made) << made.error().what();
  EXPECT_THAT(made->public_key, ::testing::StartsWith("ssh-rsa AAAA"));
  EXPECT_EQ(find_or_make_key(path)->public_key, made->public_key);
  base::value_or_throw(base::remove_file(path + ".pub"));
  const auto again = find_or_make_key(path);
  ASSERT_TRUE(again) << again.error().what();
  EXPECT_TRUE(has_key(with_key("", "me", made->public_key), "me", again->public_key));
  base::value_or_throw(base::write_file_atomically(path + ".pub", "none\n"));
  EXPECT_THAT(find_or_make_key(path).error().what(), HasSubstr("key.pub is not a public key"));
}

TEST(HostKeys, OfAnAnswer) {
  const auto workers = parse_guest_attributes(R"({"guestAttributes": [
      {"queryPath": "hostkeys/", "queryValue": {"items": [
          {"namespace": "hostkeys", "key": "ssh-ed25519", "value": "AAAAC3=\n"},
          {"namespace": "other", "key": "ssh-rsa", "value": "AAAA"},
          {"namespace": "hostkeys", "key": "ssh-rsa", "value": "AAAA bad\nline"}]}},
      {"queryPath": "hostkeys/"}]})");
  ASSERT_TRUE(workers) << workers.error().what();
  EXPECT_THAT(*workers, ElementsAre(ElementsAre(HostKey{"ssh-ed25519", "AAAAC3="}), IsEmpty()));
  EXPECT_THAT(*parse_guest_attributes("{}"), IsEmpty());
  EXPECT_EQ(parse_guest_attributes("[").error().code(), Code::kDataLoss);
  EXPECT_EQ(parse_guest_attributes(R"({"guestAttributes": [1]})").error().code(), Code::kDataLoss);
}

TEST(HostKeys, AKnownHostIsNeverReplaced) {
  EXPECT_EQ(host_key_alias("123", 4), "tpu.123-4");
  const std::string known = with_host("a ssh-rsa B", "tpu.1-1", {{"ssh-ed25519", "C"}, {"ssh-rsa", "D"}});
  EXPECT_EQ(known, "a ssh-rsa B\ntpu.1-1 ssh-ed25519 C\ntpu.1-1 ssh-rsa D\n");
  EXPECT_TRUE(knows_host(known, "tpu.1-1"));
  EXPECT_FALSE(knows_host(known, "tpu.1-10"));
  EXPECT_FALSE(knows_host(known, "pu.1-1"));
  EXPECT_EQ(with_host(known, "tpu.1-1", {{"ssh-ed25519", "E"}}), known);
}

// What OpenSSH itself makes of the file.
std::string option_of(const std::string& config, const std::string& host, const std::string& option) {
  const auto done = base::run_process({"ssh", "-G", "-F", config, host}, {}, 10);
  if (!done) return done.error().what();
  for (const std::string& line : base::split(done->output, '\n'))
    if (line.starts_with(option + " ")) return line.substr(option.size() + 1);
  return "none";
}

TEST(SshConfig, AsSshReadsIt) {
  const auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  SshSettings settings;
  settings.slice = "v4";
  settings.workers = {{"34.0.0.1", host_key_alias("77", 0)}, {"34.0.0.2", host_key_alias("77", 1)}};
  settings.user = "me";
  settings.key = folder.path("my key");
  settings.known_hosts = folder.path("known hosts");
  const std::string config = folder.path("config");
  base::value_or_throw(base::write_file_atomically(config, ssh_config({settings})));
  const auto of = [&](const char* option) { return option_of(config, host_name("v4", 1), option); };
  EXPECT_EQ(of("hostname"), "34.0.0.2");
  EXPECT_EQ(of("hostkeyalias"), "tpu.77-1");
  EXPECT_EQ(of("user"), "me");
  EXPECT_EQ(of("identityfile"), settings.key);
  EXPECT_EQ(of("identitiesonly"), "yes");
  EXPECT_EQ(of("checkhostip"), "no");
  EXPECT_EQ(of("hashknownhosts"), "no");
  EXPECT_EQ(of("stricthostkeychecking"), "true");
  EXPECT_THAT(of("userknownhostsfile"), HasSubstr("known hosts"));
}

TEST(Holders, OfAHostsAnswer) {
  const auto use = parse_host_use(
      "partial\ndevice 12 /dev/accel0\ndevice 12 /dev/accel1\ndevice 12 /dev/accel0\nprocess 12 1 me "
      "1700000000 "
      "python3 train.py --lr  0.1 \nworker 1121-140359-k3xa 0-2\n");
  ASSERT_TRUE(use) << use.error().what();
  EXPECT_FALSE(use->sees_all);
  ASSERT_EQ(use->holders.size(), 1U);
  const Holder& holder = use->holders.front();
  EXPECT_EQ(holder.process, 12);
  EXPECT_TRUE(holder.own);
  EXPECT_EQ(holder.user, "me");
  EXPECT_EQ(holder.started, 1700000000);
  EXPECT_THAT(holder.devices, ElementsAre("/dev/accel0", "/dev/accel1"));
  EXPECT_EQ(holder.command, "python3 train.py --lr  0.1");
  ASSERT_EQ(use->workers.size(), 1U);
  EXPECT_EQ(use->workers.front().place, "0-2");
  EXPECT_TRUE(parse_host_use("")->holders.empty());
  EXPECT_EQ(parse_host_use("something else\n").error().code(), Code::kDataLoss);
}

TEST(Guard, SaysWhatItLacks) {
  EXPECT_EQ(*read_guard_answer("sluice-guard up\n"), "");
  EXPECT_THAT(*read_guard_answer("sluice-guard lacks tpu.nodes.delete x@y\nsluice-guard up\n"),
              HasSubstr("x@y lacks tpu.nodes.delete"));
  // The host may say anything.
  EXPECT_THAT(*read_guard_answer("sluice-guard lacks\nsluice-guard lacks x\nsluice-guard up\n"),
              HasSubstr("service account lacks x:"));
  EXPECT_THAT(read_guard_answer("a\nsluice: run this\x1b[2J\n").error().what(),
              HasSubstr("\"a sluice: run this\\x1b[2J\""));
  EXPECT_THAT(*read_guard_answer("sluice-guard unknown no account\nsluice-guard up\n"),
              HasSubstr("no account"));
  EXPECT_THAT(read_guard_answer("sluice-guard lost cannot create /x\n").error().what(),
              HasSubstr("cannot create /x"));
  EXPECT_THAT(read_guard_answer("sh: syntax error\n").error().what(), HasSubstr("syntax error"));
}

TEST(Guard, TheStartupScriptIsOneForSh) {
  GuardSettings settings;
  settings.node = "projects/p/locations/z/nodes/it's";
  const std::string script = guard_startup_script(settings);
  EXPECT_THAT(script, ::testing::StartsWith("#!/bin/sh\nmode=boot\nproject=p\n"));
  const auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  base::value_or_throw(base::write_file_atomically(folder.path("script"), script));
  const auto checked = base::run_process({"sh", "-n", folder.path("script")}, {}, 10);
  ASSERT_TRUE(checked);
  EXPECT_EQ(checked->status.code(), 0) << checked->output;
}

TEST(Tasks, LinesAndWhatStandsForThem) {
  const std::map<std::string, std::string> tasks = {{"run", "./train"}, {"test", "make check"}};
  EXPECT_EQ(*task_line(tasks, "test"), "make check");
  EXPECT_EQ(*task_line(tasks, "resume"), "./train");
  EXPECT_THAT(*task_line(tasks, "update"), HasSubstr("pull --ff-only"));
  EXPECT_EQ(task_line(tasks, "install").error().code(), Code::kNotFound);
  EXPECT_THAT(task_line(tasks, "tests").error().what(), HasSubstr("did you mean test?"));
}

TEST(Tasks, TheLatestCheckpoint) {
  const auto object = [](const char* name, const char* generation) {
    cloud::ObjectFacts facts;
    facts.name = name;
    facts.generation = generation;
    return facts;
  };
  EXPECT_EQ(latest_checkpoint("b", {}), "");
  EXPECT_EQ(latest_checkpoint("b", {object("runs/one/last", "900"), object("runs/two/last", "1000"),
                                    object("runs/three/checkpoint.pt", "2000"), object("blast", "3000")}),
            "gs://b/runs/two");
  EXPECT_EQ(latest_checkpoint("b", {object("x/ckpt-1/a", "5"), object("x/ckpt-2/a", "6")}),
            "gs://b/x/ckpt-2");
  EXPECT_EQ(latest_checkpoint("b", {object("last", "5")}), "gs://b");
}

}  // namespace
}  // namespace sluice::provision
