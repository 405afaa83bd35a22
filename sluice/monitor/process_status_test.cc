#include "sluice/monitor/process_status.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "sluice/base/clock.h"
#include "sluice/base/files/file.h"
#include "sluice/base/text/join.h"

namespace sluice::monitor {
namespace {

ProcessStatus status_of(ProcessIdentity identity) {
  ProcessStatus status;
  status.identity = std::move(identity);
  status.step = 120;
  status.epoch = 3;
  status.step_ms = 41.5;
  status.rate = 3100;
  status.shares = {0.25, 0.25, 0.5};
  status.time = base::wall_seconds();
  return status;
}

class ProcessStatusTest : public ::testing::Test {
 protected:
  std::string path(const char* name = "") const { return folder_.path(name); }
  std::vector<SeenProcess> seen(double later = 0) {
    return read_statuses(path(), base::wall_seconds() + later);
  }

  base::TemporaryDirectory folder_ = base::value_or_throw(base::TemporaryDirectory::create());
};

TEST_F(ProcessStatusTest, IsReadAsItWasWritten) {
  StatusFile file(path());
  ProcessStatus status = status_of(own_identity());
  status.identity.run = "1121-140359-k3xa";
  status.identity.index = 2;
  status.identity.slice = 1;
  status.mfu = 0.41;
  status.step_p50_ms = 41.5;
  status.step_p95_ms = 50.25;
  status.tokens_per_second = 1e6;
  status.flops_per_second = 2.5e13;
  status.memory_in_use = int64_t{10} << 30;
  status.memory_peak = int64_t{12} << 30;
  file.write(status);
  const auto all = seen();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].state, SeenProcess::State::kRunning);
  EXPECT_EQ(text_of(all[0].status), text_of(status));
  EXPECT_EQ(all[0].status.identity.process, ::getpid());
  EXPECT_EQ(all[0].status.identity.slice, 1);
  EXPECT_DOUBLE_EQ(all[0].status.shares->device, 0.5);
}

// Others may have made the folder first, or put links and files into it.
TEST_F(ProcessStatusTest, WhatOthersMayHaveWrittenIsNotBelieved) {
  StatusFile file(path());
  file.write(status_of(own_identity()));
  ASSERT_EQ(seen().size(), 1u);
  ASSERT_EQ(::chmod(path().c_str(), 01777), 0);
  EXPECT_TRUE(seen().empty());
  ASSERT_EQ(::chmod(path().c_str(), 0700), 0);
  const std::string own = path(base::str(::getpid(), ".json").c_str());
  ASSERT_TRUE(base::write_file_atomically(path("7.json"), *base::read_file(own)));
  EXPECT_EQ(seen().size(), 2u);
  ASSERT_EQ(::chmod(path("7.json").c_str(), 0666), 0);
  EXPECT_EQ(seen().size(), 1u);
  ASSERT_EQ(::unlink(path("7.json").c_str()), 0);
  ASSERT_EQ(::symlink(own.c_str(), path("7.json").c_str()), 0);
  EXPECT_EQ(seen().size(), 1u);
}

TEST_F(ProcessStatusTest, GoesWithItsProcess) {
  { StatusFile(path()).write(status_of(own_identity())); }
  EXPECT_TRUE(seen().empty());
}

TEST_F(ProcessStatusTest, OldIsSilentAndLeftBehindIsKilled) {
  const pid_t child = ::fork();
  if (child == 0) {
    StatusFile file(path());
    file.write(status_of(own_identity()));
    ::raise(SIGKILL);
  }
  int how = 0;
  ::waitpid(child, &how, 0);
  StatusFile file(path());
  file.write(status_of(own_identity()));
  for (const SeenProcess& one : seen(/*later=*/60)) {
    const bool own = one.status.identity.process == ::getpid();
    EXPECT_EQ(one.state, own ? SeenProcess::State::kSilent : SeenProcess::State::kGone);
    EXPECT_NEAR(one.age, 60, 5);
  }
  // In the end it is forgotten.
  EXPECT_EQ(seen(/*later=*/700).size(), 1u);
  EXPECT_EQ(seen().size(), 1u);
}

TEST_F(ProcessStatusTest, AnotherProcessOfTheSameIdIsAnother) {
  StatusFile file(path());
  ProcessStatus status = status_of(own_identity());
  --status.identity.began;
  file.write(status);
  EXPECT_EQ(seen().at(0).state, SeenProcess::State::kGone);
  status.identity.namespaces = "pid:[1]";  // of a container: nothing is known of its processes
  file.write(status);
  EXPECT_EQ(seen().at(0).state, SeenProcess::State::kRunning);
}

TEST_F(ProcessStatusTest, WhatIsNoRecordIsLeftOut) {
  for (const char* text : {"", "{", "[]", "{\"process\": \"x\"}", "null"}) {
    base::value_or_throw(base::write_file_atomically(path("1.json"), text));
    EXPECT_TRUE(seen().empty()) << text;
  }
  base::value_or_throw(base::write_file_atomically(path("2.json"), std::string(1 << 20, '[')));
  EXPECT_TRUE(seen().empty());
  EXPECT_TRUE(read_statuses(path("missing"), 0).empty());
}

TEST_F(ProcessStatusTest, AFolderThatWasRemovedIsMadeAgain) {
  StatusFile file(path("own"));
  ASSERT_EQ(::rmdir(path("own").c_str()), 0);
  file.write(status_of(own_identity()));
  EXPECT_EQ(read_statuses(path("own"), base::wall_seconds()).size(), 1u);
}

TEST_F(ProcessStatusTest, AFolderOfOthersIsNotWrittenTo) {
  ASSERT_EQ(::mkdir(path("open").c_str(), 0700), 0);
  ASSERT_EQ(::chmod(path("open").c_str(), 0777), 0);
  EXPECT_FALSE(StatusFile(path("open")).is_on());
  ASSERT_EQ(::symlink(path().c_str(), path("link").c_str()), 0);
  EXPECT_FALSE(StatusFile(path("link")).is_on());
  EXPECT_FALSE(StatusFile(path("no/such")).is_on());
}

TEST_F(ProcessStatusTest, TheVariableSaysWhere) {
  ::setenv("SLUICE_STATUS_DIR", path().c_str(), 1);
  EXPECT_EQ(status_folder(), path());
  ::setenv("SLUICE_STATUS_DIR", "off", 1);
  EXPECT_EQ(status_folder(), std::nullopt);
  EXPECT_FALSE(StatusFile().is_on());
  ::unsetenv("SLUICE_STATUS_DIR");
  EXPECT_TRUE(status_folder().has_value());
}

}  // namespace
}  // namespace sluice::monitor
