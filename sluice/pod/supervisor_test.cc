#include "sluice/pod/supervisor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/base/files/file.h"
#include "sluice/pod/ssh/quote.h"
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

// Supervises a worker that runs `script`, with some functions of the supervisor replaced. Returns the
// worker's status and why it ended.
std::string end_of(const std::string& script, const std::string& replaced, int lease = 0) {
  const auto state = base::value_or_throw(base::TemporaryDirectory::create());
  SupervisorSettings settings;
  settings.run = "r";
  settings.attempt = "0";
  settings.script = script;
  settings.lease = lease;
  return output_of({"timeout", "30", "sh", "-c",
                    "XDG_STATE_HOME=" + quote(state.path()) + "\nset -- none\n" +
                        supervisor_script(settings) + "\nmake_folder && fill_folder\n" + replaced + R"(
supervise >/dev/null 2>&1
read -r status _ why <exit
echo "$status $why")"});
}

TEST(Supervisor, SeesTheEndOfAWorkerThatIsFasterThanItsWatcher) {
  // Both of its helpers begin with this.
  EXPECT_EQ(end_of("exit 4", "number_of_this() { sleep 0.3; read -r this _ </proc/self/stat; }"),
            "4 exited\n");
}

// The supervisor kills the ticker when the worker has ended. A watcher that is slow with a beat of the client
// finds no ticker then; nobody has killed it.
TEST(Supervisor, ABeatAtTheWorkersEndIsNoLossOfAHelper) {
  EXPECT_EQ(end_of("echo beat >orders; sleep 0.2; exit 4", R"(kill() {
  [ "$1" != -0 ] || sleep 1  # the watcher, asking for its ticker
  command kill "$@"
})"),
            "4 exited\n");
}

// Here the watcher ends at the supervisor's word, before the ticker, which ticks each second, is killed.
TEST(Supervisor, ATickAtTheWorkersEndIsNoLossOfAHelper) {
  EXPECT_EQ(end_of("sleep 0.2; exit 4", "kill_ticker() { sleep 2.5; }", /*lease=*/10), "4 exited\n");
}

// A log on a host without its worker, in a shell that knows the supervisor's functions.
std::string with_log(const std::string& script) {
  SupervisorSettings settings;
  settings.run = "r";
  settings.attempt = "0";
  settings.space = 1 << 20;
  return run("XDG_STATE_HOME=$PWD\nset -- none\n" + supervisor_script(settings) + R"(
make_folder && fill_folder && echo 1 1 >"$folder/supervisor"
obey() { :; }
write_x() { head -c "$1" /dev/zero | tr '\0' x >>"$folder/log"; }
)" + script);
}

// The space does not grow with the output. A client that comes late learns what is gone, and gets no zeros.
TEST(Supervisor, TheLogTakesABoundedSpace) {
  for (const int size : {3'000'000, 30'000'000}) {
    const std::string from = std::to_string(size - (1 << 19));
    EXPECT_EQ(with_log("write_x " + std::to_string(size) + R"(
bound_log
set -- $(stat -c '%b %B %s' "$folder/log")
[ $(($1 * $2)) -le 600000 ] && echo "bounded $3"
connect </dev/null 2>said | tr -d x | wc -c
grep -v -e lost -e Terminated said)"),
              base::str("bounded ", size, "\n0\nsluice-worker from ", from, "\nsluice-worker up\n"));
  }
}

TEST(Supervisor, TheLogsBeginningGoesWhenTheClientHasIt) {
  EXPECT_EQ(with_log(R"(write_x 800000
free_log 700000
free_log 500000
bound_log
set -- $(stat -c '%b %B %s' "$folder/log")
[ $(($1 * $2)) -le 110000 ] && echo "bounded $3"
offset=750000
connect </dev/null 2>said | wc -c
grep -c from said)"),
            "bounded 800000\n50000\n0\n(failed)");
}

// A reader that is too slow has to connect again; else it would read zeros.
TEST(Supervisor, TheConnectionOfASlowReaderEnds) {
  EXPECT_EQ(with_log(R"(exec 7<>"$folder/alive"
mkfifo out && exec 8<>out
(connect </dev/null >&8 2>said; echo reported) & connection=$!
until [ -e "$folder/reader-$$" ]; do sleep 0.02; done
write_x 3000000
bound_log
wait "$connection" || cat said
ls "$folder" | grep -c reader)"),
            "sluice-worker up\n0\n(failed)");
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
