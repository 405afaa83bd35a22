#include "sluice/pod/supervisor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/base/file.h"
#include "sluice/pod/quote.h"
#include "sluice/pod/test_shell.h"

namespace sluice::pod {
namespace {

using ::testing::HasSubstr;

// The script, run in a folder of its own.
std::string run(const std::string& script) {
  const auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  return sh_output("cd " + quote(folder.path()) + "\n" + script);
}

TEST(WorkerScript, EnvironmentFolderAndCommandArriveWhole) {
  const auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  const std::string place = folder.path("it's a\nfolder");
  base::value_or_throw(base::make_directories(place));
  std::string value;
  for (int byte = 1; byte < 256; ++byte) value += static_cast<char>(byte);
  const std::string output = run(worker_script(
      {{"VALUE", value}, {"EMPTY", ""}}, place,
      {"sh", "-c", "printf '%s|%s|%s|%s' \"$VALUE\" \"${EMPTY-unset}\" \"$PWD\" \"$1\"", "sh", value}));
  EXPECT_EQ(output, value + "||" + place + "|" + value);
}

TEST(WorkerScript, FoldersBelowHome) {
  const auto home = base::value_or_throw(base::TemporaryDirectory::create());
  base::value_or_throw(base::make_directories(home.path("-x")));
  const std::string set = "HOME=" + quote(home.path()) + "\n";
  EXPECT_EQ(run(set + worker_script({}, "-x", {"sh", "-c", "printf %s \"$PWD\""})), home.path("-x"));
  EXPECT_EQ(run(set + worker_script({}, "", {"sh", "-c", "printf %s \"$PWD\""})), home.path());
  EXPECT_EQ(run(set + worker_script({}, "none", {"true"}) + " || echo no"), "(failed)");
}

TEST(Supervisor, SettingsStandBeforeTheText) {
  SupervisorSettings settings;
  settings.run = "r'1";
  settings.attempt = "0";
  settings.worker = 3;
  settings.script = "echo $HOME";
  settings.offset = 5'000'000'000;
  const std::string script = supervisor_script(settings);
  EXPECT_THAT(script, HasSubstr("offset=5000000000\n"));
  EXPECT_THAT(script, HasSubstr("connect() {"));
  EXPECT_EQ(sh_output("set -- none\n" + script +
                      "\nprintf '%s %s %s %s' \"$run\" \"$worker\" \"$script\" \"$lease\""),
            "r'1 3 echo $HOME 0");
}

TEST(Supervisor, SeesTheEndOfAWorkerThatIsFasterThanItsWatcher) {
  const auto state = base::value_or_throw(base::TemporaryDirectory::create());
  SupervisorSettings settings;
  settings.run = "r";
  settings.attempt = "0";
  settings.script = "exit 4";
  const std::string script =
      "XDG_STATE_HOME=" + quote(state.path()) + "\nset -- none\n" + supervisor_script(settings) + R"(
make_folder && fill_folder
number_of_this() { sleep 0.3; read -r this _ </proc/self/stat; }  # which both of its helpers begin with
supervise >/dev/null 2>&1
read -r status _ why <exit
echo "$status $why")";
  EXPECT_EQ(output_of({"timeout", "30", "sh", "-c", script}), "4 exited\n");
}

// Here a file stands for the chips.
TEST(Supervisor, NamesTheHoldersOfChips) {
  const std::string output = sh_output("set -- none\n" + supervisor_script({}) + R"(
chips='/dev/full$'
sleep 1000 9>/dev/full >/dev/null & holder=$!
SLUICE_HEARTBEAT_FILE=x sleep 1000 9>/dev/full >/dev/null & worker=$!
sleep 0.1
chip_holders 2>&1 | sed "s/ $holder / THE HOLDER /"
kill $holder $worker)");
  EXPECT_EQ(output, "process THE HOLDER (sleep 1000 ) still holds a chip\n");
}

}  // namespace
}  // namespace sluice::pod
