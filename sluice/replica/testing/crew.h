// Tests with several processes: the test's program starts itself again, once for each process, to run a part,
// which is what that process does and expects.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "sluice/base/text/hostlist.h"
#include "sluice/base/text/join.h"
#include "sluice/replica/placement.h"

namespace sluice::replica::testing {

// Far more than any test here takes; reached only if something is stuck.
inline constexpr double kDeadline = 240;

inline bool wait_until(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(kDeadline);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

// A port of this machine that was free a moment ago; stays taken while the socket is open.
struct Port {
  Port() : socket(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_ANY);
    socklen_t size = sizeof address;
    auto* raw = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(socket, raw, size), 0);
    EXPECT_EQ(::getsockname(socket, raw, &size), 0);
    number = ntohs(address.sin_port);
  }
  ~Port() { release(); }
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;
  void release() {
    if (socket >= 0) ::close(socket);
    socket = -1;
  }
  std::string coordinator(const std::string& host = "127.0.0.1") const {
    return base::host_and_port(host, number);
  }
  int socket, number = 0;
};

inline std::string scratch_path(const std::string& name) {
  return ::testing::TempDir() + base::str("sluice_crew_", ::getpid(), "_", name);
}

// The parts by name. SLUICE_PART(Name) { … } is like TEST, but runs only in the processes of run_part("Name",
// …).
using Parts = std::map<std::string, void (*)()>;
inline Parts& parts() {
  static Parts all;
  return all;
}
#define SLUICE_PART(name)                                                                                \
  void part_##name();                                                                                    \
  const bool part_##name##_known = sluice::replica::testing::parts().emplace(#name, part_##name).second; \
  void part_##name()

// One process that runs a part.
class Member {
 public:
  Member(const std::string& part, const Placement& placement, const std::string& program = "/proc/self/exe")
      : log_(scratch_path(base::str(part, "_", placement.process_id))) {
    const std::string number = base::str(placement.process_id), count = base::str(placement.processes);
    pid_ = ::fork();
    if (pid_ != 0) return;
    const int file = ::open(log_.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
    ::dup2(file, 1);
    ::dup2(file, 2);
    ::setenv("SLUICE_TEST_INDEX", number.c_str(), 1);
    ::setenv("SLUICE_TEST_COUNT", count.c_str(), 1);
    ::setenv("SLUICE_TEST_COORDINATOR", placement.coordinator.c_str(), 1);
    ::setenv("SLUICE_TEST_PART", part.c_str(), 1);
    ::unsetenv("GTEST_OUTPUT");
    ::execl(program.c_str(), "member", "--gtest_filter=Parts.RunTheOneAskedFor", nullptr);
    ::_exit(99);
  }
  ~Member() {
    kill();
    ::unlink(log_.c_str());
  }
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  void kill() {
    if (ended()) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, &status_, 0);
    over_ = true;
  }
  // A stopped process does nothing, but the system does not consider it ended.
  void stop() { ::kill(pid_, SIGSTOP); }
  void go_on() { ::kill(pid_, SIGCONT); }
  bool ended() {
    if (!over_) over_ = ::waitpid(pid_, &status_, WNOHANG) == pid_;
    return over_;
  }
  // Returns whether its test passed.
  bool passed() const { return over_ && WIFEXITED(status_) && WEXITSTATUS(status_) == 0; }
  std::string ending() const {
    return WIFSIGNALED(status_) ? base::str("signal ", WTERMSIG(status_))
                                : base::str("status ", WEXITSTATUS(status_));
  }
  std::string output() const {
    std::stringstream text;
    text << std::ifstream(log_).rdbuf();
    return text.str();
  }
  bool has_said(const std::string& text) const { return output().find(text) != std::string::npos; }

 private:
  const std::string log_;
  pid_t pid_ = -1;
  int status_ = 0;
  bool over_ = false;
};

// Runs the part in `processes` processes, which meet at `host`, and expects it to pass in all but
// `not_passing`, for example the processes that `meanwhile` killed.
using Members = std::vector<std::unique_ptr<Member>>;
inline void run_part(const std::string& part, int processes, const std::vector<int>& not_passing = {},
                     const std::function<void(Members&)>& meanwhile = {},
                     const std::string& host = "127.0.0.1") {
  Port port;
  port.release();
  Members members;
  for (int p = 0; p < processes; ++p) {
    members.push_back(
        std::make_unique<Member>(part, Placement{p, processes, port.coordinator(host), "a test"}));
  }
  if (meanwhile) meanwhile(members);
  for (int p = 0; p < processes; ++p) {
    Member& member = *members[static_cast<size_t>(p)];
    ASSERT_TRUE(wait_until([&] { return member.ended(); })) << part << " " << p << ":\n" << member.output();
    const bool exempt = std::find(not_passing.begin(), not_passing.end(), p) != not_passing.end();
    EXPECT_TRUE(exempt || member.passed()) << part << ", process " << p << " (" << member.ending() << "):\n"
                                           << member.output();
  }
}

// Runs the part, and stops one process when process 2 reports that it is under way. The others must report
// the loss. The stopped process continues after they have ended, and must report that the run is over.
inline void run_and_stop(const std::string& part, int processes, int stopped) {
  run_part(part, processes, {}, [&](Members& members) {
    Member& victim = *members[static_cast<size_t>(stopped)];
    EXPECT_TRUE(wait_until([&] { return members[2]->has_said("under way"); })) << part;
    victim.stop();
    for (const auto& member : members) {
      if (member.get() == &victim) continue;
      EXPECT_TRUE(wait_until([&] { return member->ended(); })) << part << ", stopped " << stopped;
      EXPECT_TRUE(member->has_said(base::str("error: lost process ", stopped, " of ", processes, " (no ")))
          << part << ":\n"
          << member->output();
    }
    victim.go_on();
  });
}

// Returns the placement of this process, in a part.
inline Placement my_placement() {
  const auto get = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "0" : value);
  };
  return {std::stoi(get("SLUICE_TEST_INDEX")), std::stoi(get("SLUICE_TEST_COUNT")),
          get("SLUICE_TEST_COORDINATOR"), "a test"};
}

// Runs a part in the processes of the other tests; in a normal run it only checks that there are parts. One
// file of a test program includes this header.
TEST(Parts, RunTheOneAskedFor) {
  const char* name = std::getenv("SLUICE_TEST_PART");
  if (name == nullptr) {
    EXPECT_FALSE(parts().empty());
  } else {
    parts().at(name)();
  }
}

}  // namespace sluice::replica::testing
