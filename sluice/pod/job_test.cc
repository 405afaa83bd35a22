#include "sluice/pod/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "sluice/base/files/file.h"

namespace sluice::pod {
namespace {

using ::testing::HasSubstr;

TEST(Job, LocalWorkersShareOneHost) {
  const auto workers = local_workers(3);
  ASSERT_EQ(workers.size(), 3u);
  EXPECT_EQ(workers[2].host, "");
  EXPECT_EQ(workers[2].address, "127.0.0.1");
  EXPECT_EQ(workers[2].local_index, 2);
  EXPECT_EQ(workers[2].local_count, 3);
  EXPECT_EQ(workers[2].host_index, 0);
}

TEST(Job, RemoteWorkersKeepTheOrderOfTheList) {
  const auto workers = remote_workers("b,user@n[08-09],b");
  ASSERT_TRUE(workers) << workers.error().what();
  ASSERT_EQ(workers->size(), 4u);
  EXPECT_EQ((*workers)[0].address, "b");
  EXPECT_EQ((*workers)[1].host, "user@n08");
  EXPECT_EQ((*workers)[1].address, "n08");  // peers need no user
  EXPECT_EQ((*workers)[2].host_index, 2);
  // The second worker on b.
  EXPECT_EQ((*workers)[3].host_index, 0);
  EXPECT_EQ((*workers)[3].local_index, 1);
  EXPECT_EQ((*workers)[0].local_count, 2);
  EXPECT_EQ((*workers)[1].local_count, 1);
}

TEST(Job, SeveralWorkersOnEachHost) {
  const auto workers = remote_workers("b,user@a", 2);
  ASSERT_TRUE(workers) << workers.error().what();
  ASSERT_EQ(workers->size(), 4u);
  EXPECT_EQ((*workers)[1].host, "b");
  EXPECT_EQ((*workers)[1].local_index, 1);
  EXPECT_EQ((*workers)[2].host, "user@a");
  EXPECT_EQ((*workers)[2].host_index, 1);
  EXPECT_EQ((*workers)[3].local_count, 2);
  EXPECT_THAT(remote_workers("a,b,a", 2).error().what(), HasSubstr("host a comes twice"));
  Job job;
  job.workers = *workers;
  EXPECT_EQ(host_addresses(job), (std::vector<std::string>{"b", "a"}));
}

TEST(Job, HostsFromAFile) {
  const auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  base::value_or_throw(base::write_file_atomically(folder.path("hosts"), "# mine\n a \n\nn[1-2]  # two\n"));
  const auto workers = remote_workers("@" + folder.path("hosts"));
  ASSERT_TRUE(workers);
  EXPECT_EQ(workers->size(), 3u);
  base::value_or_throw(base::write_file_atomically(folder.path("none"), "# nobody\n"));
  EXPECT_THAT(remote_workers("@" + folder.path("none")).error().what(), HasSubstr("no host in"));
  base::value_or_throw(base::write_file_atomically(folder.path("mpi"), "a\nnode1 slots=4\n"));
  EXPECT_THAT(remote_workers("@" + folder.path("mpi")).error().what(),
              HasSubstr("line 2: 'node1 slots=4' is a line of mpirun's host files"));
  EXPECT_EQ(remote_workers("@" + folder.path("missing")).error().code(), Code::kNotFound);
}

TEST(Job, WhatIsNoHostList) {
  EXPECT_FALSE(remote_workers("a,,b"));
  EXPECT_FALSE(remote_workers("a,-oProxyCommand=x"));
}

TEST(Job, RunIdsDiffer) {
  std::set<std::string> ids;
  for (int i = 0; i < 50; ++i) ids.insert(new_run_id());
  EXPECT_GT(ids.size(), 45u);
}

}  // namespace
}  // namespace sluice::pod
