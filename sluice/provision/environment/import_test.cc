#include "sluice/provision/environment/import.h"

#include <gmock/gmock.h>

#include <set>

#include "sluice/base/files/file.h"
#include "sluice/base/text/join.h"
#include "sluice/provision/environment/settings.h"

namespace sluice::provision {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

// Every variable of the module's newest values.env and values.env.auto.
constexpr const char* kValues = R"(#!/bin/bash
ENV_BUILD_NAME="20200430" # Has to be unique
PROJECT_ID="my-project"
ZONE="europe-west4-a"
REGION="europe-west4"
MOUNT_POINT="/mnt/common"
GCS_DATASET="gs://data/set/*"
GCS_RAW_DATASET=""
TPU_ACCELERATOR_TYPE="v3-32"
TPU_PYTORCH_VERSION="pytorch-nightly"
MACHINE_TYPE="n1-standard-64"
DOCKER_CONTAINER='false'
GCE_IMAGE_VERSION="20200527"
SOURCE_IMAGE_FAMILY="torch-xla"
SOURCE_IMAGE_PROJECT="ml-images"
SOURCE_IMAGE_BASE="debian-9-torch-xla"
BOOT_DISK_SIZE_GB="110"
NETWORK="default"
MIG_SETUP_SCRIPT='setup_mig.sh'
SHARED_FS="tpushare"
SHARED_FS_CAPACITY="1024"
SHARED_FS_TIER="STANDARD"
SHARED_PD_DISK_ATTACH=true
SHARED_PD_DISK_SIZE="2055"
SHARED_PD_DISK_TYPE='pd-ssd'
MIG_SEED_DATA_PREP_SCRIPT='prep.sh'
RED='\033[1;33m'
GREEN='\033[1;32m'
NC='\033[0m'
MIG_MASTER=
SHARED_NFS_IP=10.154.111.82
SHARED_PD_DISK_NAME=${SHARED_PD_DISK_TYPE}-${SHARED_PD_DISK_SIZE}-${ENV_BUILD_NAME}
PROTOCOL="tcp"
PORTS="22"
SOURCE_RANGES="0.0.0.0/0"
TAGS="allow-ssh"
)";

TEST(Import, EveryVariableHasItsKeyOrItsReason) {
  const auto values = read_variables(kValues, "values.env");
  ASSERT_TRUE(values) << values.error().what();
  EXPECT_EQ(values->size(), 35U);
  EXPECT_EQ(values->at("SHARED_PD_DISK_NAME"), "pd-ssd-2055-20200430");
  std::set<std::string> known;
  for (const ImportRow& row : import_rows()) {
    EXPECT_TRUE(known.insert(row.variable).second) << row.variable;
    EXPECT_TRUE(*row.key != 0 || *row.because != 0) << row.variable;
  }
  for (const auto& [name, value] : *values) EXPECT_THAT(known, Contains(name));
}

TEST(Import, TheFileMeansTheSame) {
  const auto folder = base::TemporaryDirectory::create();
  ASSERT_TRUE(base::write_file_atomically(folder->path("setup_mig.sh"), "s"));
  ASSERT_TRUE(base::write_file_atomically(folder->path("prep.sh"), "p"));
  const auto file = import_values(kValues, "values.env");
  ASSERT_TRUE(file) << file.error().what();
  const auto settings = settings_of(file->toml, "x", folder->path());
  ASSERT_TRUE(settings) << settings.error().what() << file->toml;
  EXPECT_EQ(settings->name, "env-20200430");
  EXPECT_EQ(settings->project, "my-project");
  EXPECT_EQ(settings->zone(), "europe-west4-a");
  EXPECT_EQ(settings->network, "default");
  EXPECT_EQ(settings->tpu->type, "v3-32");
  EXPECT_EQ(settings->machines->count, 4);
  EXPECT_EQ(settings->machines->type, "n1-standard-64");
  EXPECT_EQ(settings->machines->boot_disk_gb, 110);
  EXPECT_EQ(settings->machines->image, "projects/ml-images/global/images/debian-9-torch-xla-v20200527");
  EXPECT_EQ(settings->machines->variables.at("GCS_DATASET"), "gs://data/set/*");
  EXPECT_EQ(settings->nfs->tier, "BASIC_HDD");
  EXPECT_EQ(settings->nfs->share, "tpushare");
  EXPECT_EQ(settings->nfs->mount, "/mnt/common/nfs_share");
  EXPECT_EQ(settings->disk->size_gb, 2055);
  EXPECT_EQ(settings->disk->type, "pd-ssd");
  EXPECT_EQ(settings->disk->mount, "/mnt/common/shared_pd");
  EXPECT_TRUE(settings->ssh_from.empty());
  EXPECT_THAT(base::join(file->notes, "\n"), HasSubstr("open to the whole world"));
}

TEST(Import, AnUnattachedDiskIsAComment) {
  std::string text = kValues;
  text.replace(text.find("ATTACH=true"), 11, "ATTACH=false");
  const auto file = import_values(text, "values.env");
  ASSERT_TRUE(file) << file.error().what();
  EXPECT_THAT(file->toml, HasSubstr("# [disk]"));
  EXPECT_THAT(file->toml, Not(HasSubstr("\n[disk]")));
}

TEST(Import, UnknownVariablesGoToTheScripts) {
  const auto file = import_values(std::string(kValues) + "export MINE='a \"b\"'\n", "values.env");
  ASSERT_TRUE(file) << file.error().what();
  EXPECT_THAT(file->toml, HasSubstr(R"(MINE = "a \"b\"")"));
}

TEST(Import, WhatItRefuses) {
  const auto error = [](const std::string& text) {
    return std::string(import_values(text, "v").error().what());
  };
  EXPECT_THAT(error("A=1\nB=$(ls)\n"), HasSubstr("v:2: expected NAME=value without commands"));
  EXPECT_THAT(error("echo hi\n"), HasSubstr("v:1: "));
  EXPECT_THAT(error("A=\"open\n"), HasSubstr("v:1: "));
  EXPECT_THAT(error("PROJECT_ID=p\nZONE=z\n"), HasSubstr("ENV_BUILD_NAME is not set"));
  EXPECT_THAT(error("ENV_BUILD_NAME=a\nPROJECT_ID=p\nZONE=z\nTPU_ACCELERATOR_TYPE=v3-31\n"),
              HasSubstr("TPU_ACCELERATOR_TYPE"));
}

}  // namespace
}  // namespace sluice::provision
