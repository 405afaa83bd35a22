// Processes: /bin/sh with scripts.
#include "sluice/base/process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>

#include "sluice/base/clock.h"
#include "sluice/base/files/file.h"
#include "sluice/base/text/strings.h"

namespace sluice::base {
namespace {

using ::testing::HasSubstr;
using Output = ProcessOptions::Output;

Finished shell(const std::string& script, double deadline = 60) {
  return value_or_throw(
      run_process({"/bin/sh", "-c", script}, {{"SET_HERE", "yes"}, {"HOME", std::nullopt}}, deadline));
}

ProcessOptions piped() {
  ProcessOptions options;
  options.input = ProcessOptions::Input::kPipe;
  options.output = options.error = Output::kPipe;
  return options;
}

std::string read_all(int descriptor) {
  std::string text;
  char block[256];
  ssize_t count;
  while ((count = ::read(descriptor, block, sizeof block)) > 0)
    text.append(block, static_cast<size_t>(count));
  return text;
}

TEST(RunProcess, OutputStatusAndEnvironment) {
  const Finished end = shell("echo \"$SET_HERE${HOME-unset}\"; echo error >&2; cat; exit 3");
  EXPECT_EQ(end.output, "yesunset\nerror\n");
  EXPECT_EQ(end.status.text(), "status 3");
  EXPECT_EQ(end.status.code(), 3);
  EXPECT_FALSE(end.status.by_signal());
  EXPECT_FALSE(end.timed_out);
}

TEST(RunProcess, KeepsTheEndOfLongOutput) {
  const Finished end = shell("i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done");
  EXPECT_LT(end.output.size(), 40000u);
  EXPECT_THAT(end.output, ::testing::EndsWith("line 19998\nline 19999\n"));
}

TEST(RunProcess, SignalsAndLastWords) {
  const Finished end = shell("echo noise; echo 'F0 Check failed: id < 8'; kill -ABRT $$");
  EXPECT_THAT(end.status.text(), HasSubstr("signal 6"));
  EXPECT_EQ(end.status.code(), 128 + SIGABRT);
  EXPECT_TRUE(end.status.by_signal());
  EXPECT_EQ(end.last_words(), "Check failed: id < 8");
  EXPECT_EQ(shell("exit 1").last_words(), "it wrote nothing");
}

TEST(RunProcess, IsKilledAtTheDeadline) {
  const double start = monotonic_seconds();
  const Finished end = shell("exec sleep 600", 0.2);
  EXPECT_TRUE(end.timed_out);
  EXPECT_THAT(end.status.text(), HasSubstr("signal 9"));
  EXPECT_LT(monotonic_seconds() - start, 300);
}

TEST(RunProcess, WhatIsNotThere) {
  const auto end = run_process({"/no/such/program"}, {}, 1);
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code(), Code::kNotFound);
  EXPECT_THAT(end.error().what(), HasSubstr("/no/such/program"));
}

TEST(Process, PipesToEachStream) {
  Process process = value_or_throw(
      Process::start({"/bin/sh", "-c", "read word; echo \"got $word\"; echo bad >&2; exit 7"}, piped()));
  EXPECT_FALSE(process.poll());
  ASSERT_EQ(::write(process.in(), "seven\n", 6), 6);
  EXPECT_EQ(read_all(process.out()), "got seven\n");
  EXPECT_EQ(read_all(process.error()), "bad\n");
  EXPECT_EQ(process.wait().code(), 7);
  EXPECT_EQ(process.poll()->code(), 7);
}

TEST(Process, TheEndOfItsInput) {
  Process process = value_or_throw(Process::start({"cat"}, piped()));
  process.close_in();
  EXPECT_EQ(process.in(), -1);
  EXPECT_EQ(read_all(process.out()), "");
  EXPECT_EQ(process.wait().code(), 0);
}

TEST(Process, PipesThatDoNotBlock) {
  ProcessOptions options = piped();
  options.nonblocking = true;
  Process process = value_or_throw(Process::start({"cat"}, options));
  char byte;
  EXPECT_EQ(::read(process.out(), &byte, 1), -1);
  EXPECT_EQ(errno, EAGAIN);
  process.kill();
  EXPECT_EQ(process.wait().code(), 128 + SIGKILL);
}

// What the process started holds the pipe too, so its end shows that it has ended.
// With write(2) the first write would end this program.
TEST(Process, ItsEndIsAnErrorOfAWrite) {
  ProcessOptions options;
  options.input = ProcessOptions::Input::kPipe;
  auto process = Process::start({"true"}, options);
  ASSERT_TRUE(process);
  process->wait();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(process->write_in("x", 1), -1);
    EXPECT_EQ(errno, EPIPE);
  }
  sigset_t pending;
  sigpending(&pending);
  EXPECT_EQ(sigismember(&pending, SIGPIPE), 0);
}

TEST(Process, ASessionIsKilledAsAWhole) {
  ProcessOptions options = piped();
  options.own_session = true;
  Process process =
      value_or_throw(Process::start({"/bin/sh", "-c", "sleep 600 & echo started; wait"}, options));
  std::string text(8, '\0');
  ASSERT_EQ(::read(process.out(), text.data(), text.size()), 8);
  process.kill();
  EXPECT_EQ(process.wait().code(), 128 + SIGKILL);
  pollfd closed{process.out(), POLLIN, 0};
  ASSERT_EQ(::poll(&closed, 1, 60'000), 1) << "the sleeping process still runs";
  EXPECT_EQ(read_all(process.out()), "");
}

TEST(Process, TheDestructorEndsIt) {
  int out = -1;
  {
    Process process = value_or_throw(Process::start({"/bin/sh", "-c", "exec sleep 600"}, piped()));
    out = ::dup(process.out());
  }
  pollfd closed{out, POLLIN, 0};
  EXPECT_EQ(::poll(&closed, 1, 60'000), 1) << "it still runs";
  ::close(out);
}

TEST(LookAtProcess, SaysWhatTheSystemKnows) {
  const auto own = look_at_process(::getpid());
  ASSERT_TRUE(own);
  EXPECT_EQ(own->state, "R");
  EXPECT_EQ(own->session, ::getsid(0));
  EXPECT_GT(own->began, 0);
  EXPECT_FALSE(look_at_process(-1));
}

TEST(HostName, IsTheSystems) {
  EXPECT_EQ(host_name(), trim(value_or_throw(read_file("/proc/sys/kernel/hostname"))));
}

}  // namespace
}  // namespace sluice::base
