#include "sluice/pod/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <cstdlib>

#include "sluice/base/files/file.h"

namespace sluice::pod {
namespace {

using ::testing::HasSubstr;

class Record : public ::testing::Test {
 protected:
  void SetUp() override { ::setenv("XDG_STATE_HOME", folder_.path().c_str(), 1); }
  void TearDown() override { ::unsetenv("XDG_STATE_HOME"); }

  RunRecord make(const std::string& id, double started) {
    RunRecord record;
    record.job.id = id;
    record.job.workers = *remote_workers("a,user@b");
    record.job.command = {"echo", "\xff\x80 ü\n'\"", ""};
    record.job.environment = {{"A", "\xfe"}};
    record.started = started;
    record.endings.resize(2);
    base::value_or_throw(base::make_directories(run_folder(id)));
    base::value_or_throw(save(record));
    return record;
  }

  base::TemporaryDirectory folder_ = base::value_or_throw(base::TemporaryDirectory::create());
};

TEST_F(Record, ComesBackAsItWas) {
  RunRecord record = make("r1", 5.25);
  record.state = "failed";
  record.attempt = 2;
  record.endings[1] = Ending{137, 7.5, "lost", "gone"};
  record.job.ssh.options = {"Port=2222"};
  record.job.detached = true;
  record.job.tpu_chips = "2,2,1";
  record.job.slices = 2;
  record.job.slice_type = "v5p-16";
  record.job.workers.back().slice = 1;
  record.job.program = {"/p.tar.zst", "0123", 5, "4567", 6'000'000'000};
  base::value_or_throw(save(record));
  const auto loaded = load("r1");
  ASSERT_TRUE(loaded) << loaded.error().what();
  EXPECT_EQ(loaded->job.command, record.job.command);
  EXPECT_EQ(loaded->job.environment, record.job.environment);
  EXPECT_EQ(loaded->job.workers[1].host, "user@b");
  EXPECT_EQ(loaded->job.ssh.options, record.job.ssh.options);
  EXPECT_TRUE(loaded->job.detached);
  EXPECT_EQ(loaded->job.tpu_chips, "2,2,1");
  EXPECT_EQ(loaded->job.slices, 2);
  EXPECT_EQ(loaded->job.slice_type, "v5p-16");
  EXPECT_EQ(loaded->job.workers.back().slice, 1);
  EXPECT_EQ(loaded->job.program.sha256, "0123");
  EXPECT_EQ(loaded->job.program.tar_bytes, 6'000'000'000u);
  EXPECT_EQ(loaded->state, "failed");
  EXPECT_EQ(loaded->attempt, 2);
  EXPECT_EQ(loaded->started, 5.25);
  EXPECT_FALSE(loaded->endings[0]);
  EXPECT_EQ(loaded->endings[1]->status, 137);
  EXPECT_EQ(loaded->endings[1]->detail, "gone");
  EXPECT_TRUE(loaded->is_over());
}

TEST_F(Record, IsFoundByItsNameOrTheBeginning) {
  EXPECT_THAT(find_run("").error().what(), HasSubstr("no run is known"));
  make("0101-aaaa", 1);
  make("0102-bbbb", 3);
  make("0102-cccc", 2);
  EXPECT_EQ(find_run("")->job.id, "0102-bbbb");
  EXPECT_EQ(find_run("0101")->job.id, "0101-aaaa");
  EXPECT_EQ(find_run("0102-cccc")->job.id, "0102-cccc");
  EXPECT_THAT(find_run("0102").error().what(), HasSubstr("2 runs"));
  EXPECT_THAT(find_run("9").error().what(), HasSubstr("0102-bbbb, 0102-cccc, 0101-aaaa"));
}

TEST_F(Record, WhatIsNoRecordIsLeftOut) {
  make("good", 1);
  base::value_or_throw(base::make_directories(run_folder("bad")));
  EXPECT_EQ(load("bad").error().code(), Code::kNotFound);
  const std::string path = base::join_path(run_folder("bad"), "run.json");
  for (const char* text : {"", "{}", "[1]", "{\"job\": 3}", "{\"job\""}) {
    base::value_or_throw(base::write_file_atomically(path, text));
    EXPECT_EQ(load("bad").error().code(), Code::kDataLoss) << text;
  }
  EXPECT_EQ(list_runs().size(), 1u);
}

// Variables of --env may be secrets.
TEST_F(Record, NobodyElseReadsIt) {
  make("r", 1);
  struct stat facts {};
  ASSERT_EQ(::stat(base::join_path(run_folder("r"), "run.json").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600U);
}

TEST_F(Record, OneClientAtATime) {
  make("r", 1);
  EXPECT_FALSE(is_attended("r"));
  {
    auto lock = RunLock::take("r");
    ASSERT_TRUE(lock && *lock);
    EXPECT_TRUE(is_attended("r"));
    EXPECT_FALSE(RunLock::take("r")->has_value());
  }
  EXPECT_FALSE(is_attended("r"));
}

TEST_F(Record, EachAttemptHasItsLog) {
  EXPECT_EQ(worker_log("r", 3, 0), folder_.path("sluice/runs/r/worker-3.log"));
  EXPECT_EQ(worker_log("r", 3, 2), folder_.path("sluice/runs/r/worker-3.restart-2.log"));
}

}  // namespace
}  // namespace sluice::pod
