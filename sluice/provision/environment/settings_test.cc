#include "sluice/provision/environment/settings.h"

#include <gmock/gmock.h>

#include <unistd.h>

#include "sluice/base/files/file.h"
#include "sluice/base/text/join.h"
#include "sluice/provision/environment/names.h"

namespace sluice::provision {
namespace {

using base::str;
using ::testing::HasSubstr;

constexpr const char* kEnv = "[env]\nname = \"e\"\nproject = \"p\"\nzones = [\"us-central1-a\"]\n";

std::string error_of(const std::string& toml) {
  const auto settings = settings_of(toml, "x.toml", "/nowhere");
  return settings ? "" : settings.error().what();
}

TEST(Settings, AFileOfAllSections) {
  const auto folder = base::TemporaryDirectory::create();
  ASSERT_TRUE(base::write_file_atomically(folder->path("fill.sh"), "#!/bin/sh\n"));
  const auto settings =
      settings_of(std::string(kEnv) +
                      "ttl = \"8h\"\nmax_cost = 100\nidle = \"30m\"\nssh_from = [\"10.0.0.0/8\"]\n"
                      "[tpu]\ntype = \"v3-32\"\ncapacity = \"spot\"\nvariables = {A = \"b\"}\n"
                      "[machines]\n[nfs]\ntier = \"BASIC_SSD\"\nsize = 2560\n"
                      "[disk]\nsize = 500\nscript = \"fill.sh\"\n[bucket]\n[tasks]\nrun = \"train\"\n",
                  "x.toml", folder->path());
  ASSERT_TRUE(settings) << settings.error().what();
  EXPECT_EQ(settings->machines->count, 4);  // cores / 8
  EXPECT_EQ(settings->tpu->capacity, Capacity::kSpot);
  EXPECT_EQ(settings->idle, 1800);
  EXPECT_EQ(settings->disk->script->text, "#!/bin/sh\n");
  EXPECT_EQ(settings->tasks.at("run"), "train");
  EXPECT_EQ(disk_type(*settings), "pd-balanced");
  EXPECT_EQ(bucket_name(*settings), "sluice-p-e");
}

TEST(Settings, AutomaticMachinesAreOneForEachHost) {
  for (const auto& [type, count] :
       {std::pair("v3-32", 4), {"v4-32", 4}, {"v5litepod-16", 4}, {"v5litepod-8", 1}}) {
    const auto settings = settings_of(
        std::string(kEnv) + "[tpu]\ntype = \"" + type + "\"\n[machines]\ncount = \"auto\"\n", "x", ".");
    ASSERT_TRUE(settings) << settings.error().what();
    EXPECT_EQ(settings->machines->count, count) << type;
  }
}

TEST(Settings, ErrorsSayWhere) {
  EXPECT_THAT(error_of("[env\n"), HasSubstr("x.toml:1: "));
  EXPECT_THAT(error_of(std::string(kEnv) + "[tpu]\ntipe = \"v3-8\"\n"),
              HasSubstr("x.toml:6: unknown key tipe in [tpu]; did you mean type?"));
  EXPECT_THAT(error_of(std::string(kEnv) + "[machine]\n"), HasSubstr("did you mean machines?"));
  EXPECT_THAT(error_of(std::string(kEnv) + "[tpu]\ntype = \"v3-31\"\n"), HasSubstr("x.toml:6: tpu.type: "));
  EXPECT_THAT(error_of(std::string(kEnv) + "[nfs]\nsize = 10\n"), HasSubstr("at least 1024"));
  EXPECT_THAT(error_of(std::string(kEnv) + "[disk]\nsize = 500\n"), HasSubstr("must be filled"));
  EXPECT_THAT(error_of(std::string(kEnv) + "[disk]\nsize = 500\nscript = \"no.sh\"\n"),
              HasSubstr("disk.script: the script cannot be read"));
  EXPECT_THAT(error_of(std::string(kEnv) + "max_cost = 5\n"), HasSubstr("needs a ttl"));
  EXPECT_THAT(error_of(std::string(kEnv) + "ttl = \"8 hours\"\n"), HasSubstr("expected a time span above 0"));
  EXPECT_THAT(error_of("[tpu]\ntype = \"v3-8\"\n"), HasSubstr("[env] is missing"));
  EXPECT_THAT(error_of("[env]\nname = \"E_1\"\nzones = [\"us-central1-a\"]\n"),
              HasSubstr("x.toml:2: env.name"));
  EXPECT_THAT(error_of(std::string(kEnv) + "[tpu]\ntype = \"v3-8\"\ncapacity = \"spto\"\n"),
              HasSubstr("expected on-demand, spot"));
  EXPECT_THAT(error_of(std::string(kEnv) + "[machines]\ncount = \"auto\"\n"), HasSubstr("give a number"));
  EXPECT_THAT(error_of("[env]\nname = \"e\"\nzones = [\"us-central1\"]\n"),
              HasSubstr("'us-central1' is not a zone"));
  EXPECT_THAT(error_of(std::string(kEnv) + "[bucket]\nname = \"My_Bucket\"\n"),
              HasSubstr("x.toml:6: bucket.name"));
  EXPECT_THAT(error_of(std::string(kEnv) + "[bucket]\nname = \"b\"\n"), HasSubstr("3 to 63"));
  EXPECT_THAT(error_of(std::string(kEnv) + "[bucket]\nclass = \"STANDRAD\"\n"),
              HasSubstr("did you mean STANDARD?"));
  EXPECT_THAT(error_of(std::string(kEnv) + "[nfs]\ntier = \"BASIC_HD\"\nsize = 1024\n"),
              HasSubstr("x.toml:6: nfs.tier: 'BASIC_HD': did you mean BASIC_HDD?"));
  for (const char* range : {"203.0.113.7", "203.0.113/24", "203.0.113.0/33", "here/8"})
    EXPECT_THAT(error_of(std::string(kEnv) + "ssh_from = [\"" + range + "\"]\n"),
                HasSubstr("x.toml:5: env.ssh_from: "))
        << range;
}

constexpr const char* kTpu = "[tpu]\ntype = \"v3-8\"\n";

// The file may be a stranger's, and what a script holds is sent to machines.
TEST(Settings, AScriptLiesInTheFilesFolderOrIsNamed) {
  const auto home = base::TemporaryDirectory::create();
  const std::string folder = home->path("clone"), key = home->path("id_ed25519");
  ASSERT_TRUE(base::make_directories(folder + "/.git"));
  ASSERT_TRUE(base::make_directories(folder + "/sub"));
  for (const std::string& path : {key, folder + "/.git/config", folder + "/sub/setup.sh"})
    ASSERT_TRUE(base::write_file_atomically(path, "PRIVATE"));
  ASSERT_EQ(::symlink("../id_ed25519", (folder + "/link.sh").c_str()), 0);
  ASSERT_EQ(::symlink(home->path().c_str(), (folder + "/out").c_str()), 0);
  const auto read = [&](const std::string& script, const ScriptRules& rules = {}) {
    const auto settings = settings_of(str(kEnv, kTpu, "setup = \"", script, "\"\n"), "x.toml", folder, rules);
    return settings ? settings->tpu->setup->text : settings.error().what();
  };
  EXPECT_EQ(read("sub/setup.sh"), "PRIVATE");
  EXPECT_EQ(read("./sub/../sub/setup.sh"), "PRIVATE");
  for (const std::string& script : {key, std::string("../id_ed25519"), std::string("link.sh"),
                                    std::string("out/id_ed25519"), std::string(".git/config")}) {
    EXPECT_THAT(read(script), HasSubstr("--allow-script ")) << script;
    EXPECT_THAT(read(script), HasSubstr("x.toml:7: tpu.setup: ")) << script;
    EXPECT_EQ(read(script, {.read = false, .allowed = {}}), "") << script;
  }
  EXPECT_EQ(read("link.sh", {.read = true, .allowed = {key}}), "PRIVATE");
  EXPECT_THAT(read("link.sh", {.read = true, .allowed = {folder + "/.git/config"}}), HasSubstr("outside of"));
  EXPECT_THAT(read("sub"), HasSubstr("is not a regular file"));
  ASSERT_TRUE(base::write_file_atomically(folder + "/long", std::string(300'000, 'x')));
  EXPECT_THAT(read("long"), HasSubstr("takes at most 262144"));
}

TEST(Settings, NamesOfVariablesRunNothing) {
  for (const char* section :
       {"[tpu]\ntype = \"v3-8\"\n", "[machines]\ncount = 1\n", "[disk]\nsize = 10\nsnapshot = \"s\"\n"}) {
    for (const char* name : {"A;touch WORK/x;B", "", "1A", "A B", "$(id)", "A\\nB", "A-B"})
      EXPECT_THAT(error_of(str(kEnv, section, "variables = {\"", name, "\" = \"1\"}\n")),
                  HasSubstr("is not a name of a variable"))
          << section << name;
    EXPECT_EQ(error_of(str(kEnv, section, "variables = {_A1 = \"; $(id)\"}\n")), "");
  }
}

TEST(Settings, WhoTheMachinesActAs) {
  const auto settings =
      settings_of(str(kEnv,
                      "service_account = \"me@p.iam.gserviceaccount.com\"\nscopes = "
                      "[\"devstorage.read_only\", \"https://www.googleapis.com/auth/logging.write\"]\n"),
                  "x", ".");
  ASSERT_TRUE(settings) << settings.error().what();
  EXPECT_EQ(settings->scopes,
            (std::vector<std::string>{"https://www.googleapis.com/auth/devstorage.read_only",
                                      "https://www.googleapis.com/auth/logging.write"}));
  EXPECT_THAT(error_of(str(kEnv, "service_account = \"me\"\n")), HasSubstr("expected its address"));
  EXPECT_THAT(error_of(str(kEnv, "scopes = [\"https://other.example/auth\"]\n")), HasSubstr("env.scopes"));
  EXPECT_THAT(error_of(str(kEnv, "scopes = []\n")), HasSubstr("at least one"));
}

TEST(Settings, WhatHostsMountIsAPath) {
  EXPECT_THAT(error_of(str(kEnv, "[nfs]\nmount = \"--bind\"\n")), HasSubstr("expected an absolute path"));
  EXPECT_THAT(error_of(str(kEnv, "[nfs]\nshare = \"a b\"\n")), HasSubstr("underscores"));
  EXPECT_THAT(error_of(str(kEnv, "[nfs]\nclients = [\"here\"]\n")), HasSubstr("nfs.clients"));
}

// What cannot be of a group is said before anything else is made.
TEST(Settings, AGroupOfMachines) {
  const std::string group = "[tpu]\ntype = \"tpu7x-16\"\n",
                    image = "runtime = \"projects/x/global/images/y\"\n";
  EXPECT_THAT(error_of(kEnv + group), HasSubstr("say their image, runtime = "));
  EXPECT_THAT(error_of(kEnv + group + image + "slices = 2\n"), HasSubstr("made one by one"));
  EXPECT_THAT(error_of(std::string(kEnv) + "idle = \"1h\"\n" + group + image), HasSubstr("give env.ttl"));
  EXPECT_EQ(error_of(kEnv + group + image), "");
}

TEST(Settings, TheTemplateCanBeRead) {
  const auto settings =
      settings_of(settings_template("train", "p", "us-central1-a", "v5litepod-8"), "x", ".");
  ASSERT_TRUE(settings) << settings.error().what();
  EXPECT_EQ(settings->name, "train");
}

TEST(Names, FitForTheLongestEnvironment) {
  const std::string name(kLongestEnvironmentName, 'e');
  for (const std::string& one :
       {network_name(name), firewall_name(name, "internal"), nfs_name(name), disk_name(name),
        prepare_name(name), machine_name(name, 999), tpu_name(name)})
    EXPECT_TRUE(check_name(one, "the name", 63)) << one;
  Settings settings;
  settings.name = name;
  settings.project = "a-project-with-a-long-name-123";
  EXPECT_LE(bucket_name(settings).size(), 63U);
  EXPECT_EQ(parts_of_words({"tpu", "nfs"}, "--only")->size(), 2U);
  EXPECT_FALSE(parts_of_words({"tpus"}, "--only"));
}

}  // namespace
}  // namespace sluice::provision
