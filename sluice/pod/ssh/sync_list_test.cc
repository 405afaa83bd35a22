#include "sluice/pod/ssh/sync_list.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "sluice/base/clock.h"
#include "sluice/base/files/file.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/pod/job.h"
#include "sluice/pod/ssh/quote.h"
#include "sluice/pod/ssh/sync.h"
#include "sluice/pod/test_shell.h"

namespace sluice::pod {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SyncListTest : public ::testing::Test {
 protected:
  SyncListTest() {
    for (const char* folder : {"sub", "sub/deep"})
      base::value_or_throw(base::make_directories(folder_.path(folder)));
    for (const char* file : {"a", "sub/b", "sub/deep/c", "sub+", "two\nlines", "back\\slash", "\xff"})
      base::value_or_throw(base::write_file_atomically(folder_.path(file), "text"));
    job_.sync = folder_.path();
    job_.folder = "there";
    job_.id = "r";
  }
  SyncList list(double now = base::wall_seconds() + 100) const {
    return SyncList::of(folder_.path(), output_of(list_command(job_)), now);
  }
  std::vector<std::string> paths(const SyncList& list, const SyncList::Numbers& numbers) const {
    std::vector<std::string> paths;
    for (const size_t number : numbers) paths.push_back(list.entries()[number].path);
    return paths;
  }

  Job job_;
  const base::TemporaryDirectory folder_ = base::value_or_throw(base::TemporaryDirectory::create());
};

TEST_F(SyncListTest, HasWhatTarFinds) {
  job_.sync_exclude = {"deep"};
  const SyncList list = this->list();
  EXPECT_THAT(paths(list, list.all()), ElementsAre(".", "./a", "./back\\slash", "./sub", "./sub+", "./sub/b",
                                                   "./two\nlines", "./\xff"));
  EXPECT_THAT(list.lines(), HasSubstr("\n./sub/b\t"));
  EXPECT_EQ(list.lines().find("two"), std::string::npos) << "it would be two lines";
}

TEST_F(SyncListTest, KeysChangeWithTheFile) {
  const auto key = [&](const SyncList& list) { return list.entries()[1].key; };
  const std::string before = key(list());
  EXPECT_EQ(key(list()), before);
  base::value_or_throw(base::write_file_atomically(folder_.path("a"), "TEXT"));
  EXPECT_NE(key(list()), before);
  const double now = base::wall_seconds();
  EXPECT_NE(key(list(now)), key(list(now + 0.5))) << "it is too new to know that it stays";
}

TEST_F(SyncListTest, AHostsAnswerIsOnlyWhatTheListHas) {
  const SyncList list = this->list();
  EXPECT_THAT(paths(list, list.lacking({})), ElementsAre("./two\nlines"));
  EXPECT_THAT(paths(list, list.lacking({"./a", "/etc/passwd", "../x", "", "./two"})),
              ElementsAre("./a", "./two\nlines"));
  // A folder may have been replaced by a link to another one.
  EXPECT_THAT(paths(list, list.lacking({"./sub"})),
              ElementsAre("./sub", "./sub/b", "./sub/deep", "./sub/deep/c", "./two\nlines"));
  base::value_or_throw(base::remove_file(folder_.path("a")));
  EXPECT_EQ(list.names(list.lacking({"./a"})), std::string("./two\nlines\0", 12));
}

// The script with a home folder of its own: bytes of its answers grow with what has changed, not with the
// number of entries.
TEST_F(SyncListTest, AHostAnswersWhatHasChanged) {
  const auto home = base::value_or_throw(base::TemporaryDirectory::create());
  const auto on_host = [&](const std::string& what, const std::string& input) {
    return output_of(
        {"sh", "-c",
         base::str("HOME=", quote(home.path()), "\nunset XDG_STATE_HOME\n", sync_script(job_, what, "gz"))},
        input);
  };
  for (const int more : {10, 100}) {
    for (int i = 0; i < more; ++i)
      base::value_or_throw(base::write_file_atomically(folder_.path(base::str("f", more, "-", i)), "x"));
    const SyncList before = list();
    const std::string first = on_host("ask", before.lines());
    EXPECT_THAT(first, more == 10 ? HasSubstr("all\nend") : HasSubstr("./f100-99\n"));
    const auto answers = base::split(first, '\n');
    const auto lacking =
        more == 10 ? before.all() : before.lacking(std::set<std::string>(answers.begin(), answers.end()));
    const std::string archive = output_of(
        {"tar", "-C", folder_.path(), "-cz", "--no-recursion", "--null", "-T", "-"}, before.names(lacking));
    EXPECT_EQ(on_host("take", archive), "");
    EXPECT_THAT(on_host("ask", before.lines()), testing::StartsWith("end"));
    base::value_or_throw(base::write_file_atomically(folder_.path("sub/b"), "new"));
    base::value_or_throw(base::remove_file(home.path("there/a")));
    EXPECT_THAT(on_host("ask", list().lines()), testing::StartsWith("./a\n./sub/b\nend"));
  }
}

}  // namespace
}  // namespace sluice::pod
