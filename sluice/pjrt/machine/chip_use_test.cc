#include "sluice/pjrt/machine/chip_use.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <functional>

#include "sluice/base/clock.h"
#include "sluice/pjrt/testing/machine_folder.h"

namespace sluice::pjrt {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::MachineFolder;
using ::testing::MatchesRegex;
using testing::Variable;

// A process that has done `work` and lives until this object goes.
class Other {
 public:
  explicit Other(const std::function<bool()>& work) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    process_ = ::fork();
    if (process_ == 0) {
      const char answer = work() ? 'y' : 'n';
      if (::write(ends[1], &answer, 1) == 1) ::pause();
      ::_exit(0);
    }
    char answer = 'n';
    EXPECT_EQ(::read(ends[0], &answer, 1), 1);
    EXPECT_EQ(answer, 'y');
    ::close(ends[0]);
    ::close(ends[1]);
  }
  ~Other() {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  int process() const { return process_; }

 private:
  pid_t process_ = 0;
};

std::function<bool()> opens(const std::string& file) {
  return [file] { return ::open(file.c_str(), O_RDWR) >= 0; };
}

std::function<bool()> locks(const std::string& file) {
  return [file] {
    const int descriptor = ::open(file.c_str(), O_RDWR);
    return descriptor >= 0 && ::lockf(descriptor, F_TLOCK, 0) == 0;
  };
}

class ChipUseTest : public ::testing::Test {
 protected:
  ChipUseTest() { folder_.add_chips(4); }
  Machine machine() const { return find_machine(std::filesystem::canonical(folder_.path()).string()); }
  std::string refusal(Code expected) const {
    const auto status = check_chips(machine());
    if (status) return "usable";
    EXPECT_EQ(status.error().code(), expected);
    return status.error().what();
  }

  MachineFolder folder_;
  Variable chips_{"TPU_VISIBLE_CHIPS", {}}, devices_{"TPU_VISIBLE_DEVICES", {}},
      multiple_{"ALLOW_MULTIPLE_LIBTPU_LOAD", {}}, bounds_{"TPU_CHIPS_PER_PROCESS_BOUNDS", {}};
};

TEST_F(ChipUseTest, FreeChips) {
  EXPECT_EQ(refusal(Code::kOk), "usable");
  EXPECT_EQ(chips_finding(machine()).find("held"), std::string::npos);
  const int own = ::open(folder_.path("dev/accel0").c_str(), O_RDWR);  // this process's own use is none
  EXPECT_EQ(refusal(Code::kOk), "usable");
  ::close(own);
}

TEST_F(ChipUseTest, TheHolderIsNamed) {
  const Other other(opens(folder_.path("dev/accel2")));
  const auto holders = chip_holders(machine());
  ASSERT_EQ(holders.size(), 1u);
  EXPECT_EQ(holders[0].process, other.process());
  EXPECT_THAT(holders[0].files, ::testing::ElementsAre(folder_.path("dev/accel2")));
  EXPECT_NEAR(holders[0].since, base::wall_seconds(), 60);
  EXPECT_THAT(holders[0].text(), MatchesRegex("process [0-9]+ \\(.+\\) of user .+, since .*[0-9]+:[0-9]+"));
  EXPECT_THAT(refusal(Code::kUnavailable),
              AllOf(HasSubstr("the chips are held by " + holders[0].text()),
                    HasSubstr("`kill " + std::to_string(other.process()) + "`")));
  EXPECT_THAT(chips_finding(machine()), HasSubstr("; the chips are held by process"));
}

TEST_F(ChipUseTest, OtherChipsDoNotCount) {
  const Other other(opens(folder_.path("dev/accel2")));
  const Other locker(locks(folder_.touch("tmp/libtpu_lockfile")));
  const Variable visible("TPU_VISIBLE_CHIPS", "0,1");
  EXPECT_EQ(refusal(Code::kOk), "usable");
  const Variable more("TPU_VISIBLE_CHIPS", "2");
  EXPECT_THAT(refusal(Code::kUnavailable), HasSubstr("process " + std::to_string(other.process())));
}

TEST_F(ChipUseTest, TheLockCountsAndItsFileDoesNot) {
  const std::string file = folder_.touch("tmp/libtpu_lockfile");
  EXPECT_EQ(refusal(Code::kOk), "usable");
  const Other other(locks(file));
  EXPECT_THAT(refusal(Code::kUnavailable), HasSubstr("held by process " + std::to_string(other.process())));
  const Variable shared("ALLOW_MULTIPLE_LIBTPU_LOAD", "1");
  EXPECT_EQ(refusal(Code::kOk), "usable");
}

TEST_F(ChipUseTest, TheOwnLockStays) {
  const std::string file = folder_.touch("tmp/libtpu_lockfile");
  const int own = ::open(file.c_str(), O_RDWR);
  ASSERT_EQ(::lockf(own, F_TLOCK, 0), 0);
  EXPECT_EQ(refusal(Code::kOk), "usable");
  // Another process still finds it locked.
  const Other other([&] {
    const int descriptor = ::open(file.c_str(), O_RDWR);
    return ::lockf(descriptor, F_TEST, 0) != 0;
  });
  ::close(own);
}

TEST_F(ChipUseTest, NoDeviceFiles) {
  MachineFolder folder;
  folder.add_pci("0000:00:04.0", "0x0063", "0x120000");
  const auto status = check_chips(find_machine(folder.path()));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), Code::kFailedPrecondition);
  EXPECT_THAT(status.error().what(),
              AllOf(HasSubstr("no device files"), HasSubstr("docker run --privileged")));
}

// Root may use every file, so for a test the process becomes somebody else.
class Nobody {
 public:
  Nobody() {
    if (root_) become(65534);
  }
  ~Nobody() {
    if (root_) become(0);
  }

 private:
  static void become(uid_t user) { EXPECT_EQ(::seteuid(user), 0); }
  const bool root_ = ::geteuid() == 0;
};

TEST_F(ChipUseTest, MissingRightsAndTheRemedy) {
  std::filesystem::permissions(folder_.path(), std::filesystem::perms(0755));
  ASSERT_EQ(::chmod(folder_.path("dev/accel1").c_str(), 0400), 0);
  {
    const Nobody nobody;
    EXPECT_THAT(
        refusal(Code::kPermissionDenied),
        AllOf(HasSubstr("no permission to use " + folder_.path("dev/accel")), HasSubstr("with mode 0"),
              HasSubstr("KERNEL==\"accel[0-9]*\", MODE=\"0666\""), HasSubstr("udevadm")));
  }
  if (::geteuid() != 0) return;
  // A group that may use the file is to be joined.
  for (const char* chip : {"dev/accel0", "dev/accel1", "dev/accel2", "dev/accel3"}) {
    ASSERT_EQ(::chown(folder_.path(chip).c_str(), 0, 54321), 0);
    ASSERT_EQ(::chmod(folder_.path(chip).c_str(), 0660), 0);
  }
  const Nobody nobody;
  EXPECT_THAT(refusal(Code::kPermissionDenied), HasSubstr("sudo usermod -aG 54321 "));
}

TEST(Holder, SaysADateWhenItWasNotToday) {
  Holder holder;
  EXPECT_EQ(holder.text(), "a process outside this container");
  holder.process = 7;
  EXPECT_EQ(holder.text(), "process 7");
  holder.command = "python3";
  holder.user = "ada";
  holder.since = base::wall_seconds() - 3 * 24 * 3600;
  EXPECT_THAT(holder.text(),
              MatchesRegex("process 7 \\(python3\\) of user ada, since [0-9]+-[0-9]+-[0-9]+ [0-9]+:[0-9]+"));
}

}  // namespace
}  // namespace sluice::pjrt
