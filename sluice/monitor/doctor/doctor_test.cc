#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "sluice/base/files/file.h"
#include "sluice/base/text/join.h"
#include "sluice/monitor/doctor/cloud_checks.h"
#include "sluice/monitor/doctor/machine_checks.h"
#include "sluice/monitor/doctor/plugin_checks.h"
#include "sluice/pjrt/testing/machine_folder.h"

namespace sluice::monitor {
namespace {

using pjrt::testing::MachineFolder;
using ::testing::HasSubstr;
using Level = Finding::Level;

// All that a check says, a line each: "problem chips: found | advice".
template <typename Check>
std::string said(const Check& check) {
  std::string lines;
  check([&](const Finding& finding) {
    lines += base::str(word_of(finding.level), " ", finding.check, ": ", finding.found, " | ", finding.advice,
                       "\n");
  });
  return lines;
}

std::string said_of_chips(const MachineFolder& folder) {
  return said([&](const Report& report) { check_chips(pjrt::find_machine(folder.path()), report); });
}

TEST(Doctor, ChipsThatNobodyHolds) {
  MachineFolder folder;
  EXPECT_EQ(said_of_chips(folder), "ok chips: no TPU, no GPU | \n");
  folder.add_chips(4);
  EXPECT_THAT(said_of_chips(folder), HasSubstr("ok holder: no process that is visible here holds a chip"));
  // libtpu's lock file says nothing by being there.
  folder.touch("tmp/libtpu_lockfile");
  EXPECT_THAT(said_of_chips(folder), HasSubstr("is there and not locked, which is as it should be"));
}

TEST(Doctor, AFileIsNoFolder) {
  MachineFolder folder;
  folder.touch("tmp/file");
  const std::string file = folder.path() + "/tmp/file";
  EXPECT_THAT(
      said([&](const Report& report) { check_disks({file}, report); }),
      HasSubstr(base::str("problem disk: ", file, " is a file, not a folder | choose another folder")));
  EXPECT_THAT(said([&](const Report& report) { check_disks({file + "/logs"}, report); }),
              HasSubstr(base::str("problem disk: ", file, "/logs: ", file, " is a file, not a folder | ")));
}

// A process that holds a chip; its parent, from whose session it is, may be gone.
class Holding {
 public:
  Holding(const std::string& file, bool abandoned) {
    int ready[2], ends[2];
    [[maybe_unused]] const int made = ::pipe(ready) | ::pipe(ends);
    const pid_t parent = ::fork();
    if (parent == 0) {
      if (abandoned) ::setsid();
      if (abandoned && ::fork() != 0) ::_exit(0);
      std::ifstream held(file);
      const pid_t own = ::getpid();
      ::close(ends[1]);
      [[maybe_unused]] ssize_t moved = ::write(ready[1], &own, sizeof own);
      moved = ::read(ends[0], &moved, 1);  // until the test closes it
      ::_exit(0);
    }
    [[maybe_unused]] const ssize_t read = ::read(ready[0], &process_, sizeof process_);
    if (abandoned) ::waitpid(parent, nullptr, 0);
    parent_ = abandoned ? 0 : parent;
    for (const int end : {ready[0], ready[1], ends[0]}) ::close(end);
    end_ = ends[1];
  }
  ~Holding() {
    ::close(end_);
    if (parent_ > 0) ::waitpid(parent_, nullptr, 0);
  }
  pid_t process() const { return process_; }

 private:
  pid_t process_ = 0, parent_ = 0;
  int end_ = -1;
};

TEST(Doctor, WhoHoldsTheChips) {
  MachineFolder folder;
  folder.add_chips(4);
  {
    const Holding holding(folder.path("dev/accel1"), /*abandoned=*/false);
    EXPECT_THAT(said_of_chips(folder), HasSubstr(base::str("note holder: ", folder.path("dev/accel1"),
                                                           " is held by process ", holding.process())));
  }
  const Holding holding(folder.path("dev/accel1"), /*abandoned=*/true);
  const std::string lines = said_of_chips(folder);
  EXPECT_THAT(lines, HasSubstr("problem holder: "));
  EXPECT_THAT(lines, HasSubstr("and the shell that it was started from is gone"));
  EXPECT_THAT(lines, HasSubstr(base::str("sluice doctor --fix, or kill ", holding.process())));
}

TEST(Doctor, ChipsWithoutFiles) {
  MachineFolder folder;
  folder.add_pci("0000:00:04.0", "0x005e", "0xff0000");
  EXPECT_THAT(said_of_chips(folder),
              HasSubstr("problem chips: 1 chip of TPU v4 (on the PCI bus, without device"));
}

TEST(Doctor, WhoListensOnAPort) {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(socket, 1), 0);
  ASSERT_EQ(::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const int port = ntohs(address.sin_port);
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  EXPECT_THAT(listeners_of(port), ::testing::ElementsAre(HasSubstr(base::str("process ", child))));
  ::setenv("TPU_RUNTIME_METRICS_PORTS", std::to_string(port).c_str(), 1);
  EXPECT_THAT(
      said([](const Report& report) { check_ports(pjrt::Machine(), report); }),
      HasSubstr(base::str("note ports: port ", port, " (libtpu's metrics) is taken by process ", child)));
  ::unsetenv("TPU_RUNTIME_METRICS_PORTS");
  ::close(socket);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(listeners_of(port).empty());
}

TEST(Doctor, RoomOnDisks) {
  EXPECT_EQ(disk_finding("/a", 20ull << 30, false).level, Level::kOk);
  EXPECT_EQ(disk_finding("/a", 5ull << 30, false).level, Level::kNote);
  EXPECT_EQ(disk_finding("/a", 5ull << 20, false).level, Level::kProblem);
  EXPECT_EQ(disk_finding("/dev/shm", 500ull << 20, true).level, Level::kNote);
  EXPECT_EQ(disk_finding("/dev/shm", 10ull << 20, true).level, Level::kProblem);
  const std::string lines =
      said([](const Report& report) { check_disks({"/tmp/is/not/there/yet"}, report); });
  EXPECT_THAT(lines, HasSubstr("/tmp/is/not/there/yet: "));
  EXPECT_THAT(lines, HasSubstr(" disk: /dev/shm: "));
}

TEST(Doctor, Clocks) {
  EXPECT_EQ(clock_finding(0.4, "x").level, Level::kOk);
  EXPECT_EQ(clock_finding(-30, "x").level, Level::kNote);
  EXPECT_EQ(clock_finding(4000, "x").level, Level::kProblem);
  EXPECT_EQ(clock_finding(4000, "x").found, "the clock is 4000 s ahead of x");
}

TEST(Doctor, MistypedVariables) {
  const auto lines = [] { return said([](const Report& report) { check_variables(report); }); };
  ::setenv("SLUICE_PLUGINS", "cpu", 1);
  EXPECT_THAT(lines(),
              HasSubstr("problem variables: SLUICE_PLUGINS is set, and nothing here reads it | did you mean "
                        "SLUICE_PLUGIN?"));
  ::unsetenv("SLUICE_PLUGINS");
}

TEST(Doctor, Plugins) {
  const base::TemporaryDirectory work = base::value_or_throw(base::TemporaryDirectory::create());
  for (const char* folder : {"libtpu", "libtpu-0.0.51.dist-info", "xla_plugins/xla_cpu_pjrt"})
    std::filesystem::create_directories(work.path(folder));
  const std::string libtpu = work.path("libtpu/libtpu.so");
  std::ofstream{libtpu};
  EXPECT_EQ(package_version(libtpu), "0.0.51");
  EXPECT_EQ(package_version("/no/such/file.so"), "");
  pjrt::Machine machine;
  machine.tpu_chips = 4;
  const auto lines = [&](const char* probe) {
    return said([&](const Report& report) {
      check_plugins(machine, {work.path()}, {"sh", "-c", probe}, report);
    });
  };
  EXPECT_THAT(lines("echo 0.116"),
              HasSubstr(base::str("ok libtpu: ", libtpu, ", version 0.0.51, PJRT API 0.116 | ")));
  EXPECT_THAT(lines("echo 0.116"),
              HasSubstr("note cpu plugin: the cpu plugin (xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so)"
                        " is not installed | run `pip install xla-cpu-pjrt`"));
  EXPECT_THAT(lines("echo 'too old' >&2; exit 1"), HasSubstr("cannot be used | too old"));
  EXPECT_THAT(lines("kill -9 $$"), HasSubstr("problem libtpu: "));
  std::filesystem::remove(libtpu);
  EXPECT_THAT(lines("echo 0.116"),
              HasSubstr("problem libtpu: the tpu plugin (libtpu/libtpu.so) is not installed"));
}

}  // namespace
}  // namespace sluice::monitor
