#include "sluice/pod/engines.h"

#include <gmock/gmock.h>

#include "sluice/pod/test_shell.h"

namespace sluice::pod {
namespace {

using testing::HasSubstr;

Job job_of(std::vector<std::string> command) {
  Job job;
  job.command = std::move(command);
  return job;
}

std::string refusal(const base::Result<std::string>& result) {
  return result ? "" : std::string(result.error().what());
}

// What the script writes as job 7 where srun is this shell function; "(failed)" behind it for another status
// than 0.
std::string run_script(const Job& job, const std::string& srun) {
  const std::string slurm = "SLURM_JOB_ID=7; scancel() { echo \"scancel $*\"; }; srun() { " + srun + "; }; ";
  return output_of({"bash", "-c", slurm + "source /dev/stdin 2>&1"},
                   sbatch_script(job, "train", 2, 4).value());
}

TEST(Sbatch, AsksForWhatTheJobNeeds) {
  const std::string script = sbatch_script(job_of({"sluice", "train", "--resume"}), "train", 2, 4).value();
  for (const char* line :
       {"#SBATCH --job-name=train\n", "#SBATCH --nodes=2\n", "#SBATCH --ntasks-per-node=4\n",
        "#SBATCH --signal=B:TERM@60\n", "srun --label --kill-on-bad-exit=1 sluice train"})
    EXPECT_THAT(script, HasSubstr(line));
}

TEST(Sbatch, WordsVariablesAndTheFolderSurviveTheShell) {
  Job job = job_of({"printf", "%s|", "it's", "$HOME `id`", ""});
  job.environment = {{"A", "x y'z"}};
  job.folder = "/";
  EXPECT_EQ(run_script(job, "shift 2; \"$@\"; echo \"$A $PWD $SLUICE_RESTART\""),
            "it's|$HOME `id`||x y'z / 0\n");
}

TEST(Sbatch, MakesTheKeyOfTheRunWhereItRuns) {
  Job job = job_of({"work"});
  const std::string first = run_script(job, "echo \"$SLUICE_RUN_KEY\"");
  EXPECT_EQ(first.size(), 65u) << first;
  EXPECT_EQ(first.find_first_not_of("0123456789abcdef"), 64u) << first;
  EXPECT_NE(first, run_script(job, "echo \"$SLUICE_RUN_KEY\""));
  job.environment = {{"SLUICE_RUN_KEY", "of the user"}};
  EXPECT_EQ(run_script(job, "echo \"$SLUICE_RUN_KEY\""), "of the user\n");
}

TEST(Sbatch, AFailedAttemptStartsAgain) {
  Job job = job_of({"work"});
  job.max_restarts = 2;
  const std::string out = run_script(job, "echo \"try $SLUICE_RESTART\"; return 3");
  EXPECT_THAT(out, HasSubstr("attempt 0 ended with status 3"));
  EXPECT_THAT(out, HasSubstr("try 2"));
  EXPECT_THAT(out, testing::Not(HasSubstr("try 3")));
}

TEST(Sbatch, WorkersThatSrunEndedForOneThatFailedStartAgain) {
  Job job = job_of({"work"});
  job.max_restarts = 1;
  EXPECT_THAT(run_script(job, "((SLUICE_RESTART == 1)) || return 143; echo again"), HasSubstr("again\n"));
}

// srun's own status is the 143 of the workers that it ended.
TEST(Sbatch, TheStatusOfTheWorkerThatFailedFirstCounts) {
  Job job = job_of({"work"});
  job.max_restarts = 1;
  const auto failing = [&](int status) {
    return run_script(job,
                      base::str("echo go; echo \"3: srun: error: n0: task 3: Exited with exit code 9\" >&2; "
                                "echo \"srun: error: n1: task 3: Exited with exit code ",
                                status,
                                "\" >&2; echo \"srun: error: n0: task 0: Exited with exit code 143\" >&2; "
                                "return 143"));
  };
  for (const int status : {2, 21, 126, 127})
    EXPECT_THAT(failing(status), testing::Not(HasSubstr("starting all workers again"))) << status;
  EXPECT_THAT(failing(5), HasSubstr("attempt 0 ended with status 5; starting all workers again"));
}

TEST(Sbatch, NothingStartsAgainOnceTheJobIsToldToEnd) {
  Job job = job_of({"work"});
  job.max_restarts = 1;
  EXPECT_EQ(run_script(job, "echo once; kill -TERM $$; sleep 0.3; echo saved; return 143"),
            "once\nscancel --signal=TERM 7\nsaved\n(failed)");
  EXPECT_EQ(run_script(job, "kill -TERM $$; sleep 0.3"), "scancel --signal=TERM 7\n");
}

TEST(Sbatch, ASetUpThatFailsEndsTheJob) {
  Job job = job_of({"work"});
  job.setup = "make it";
  EXPECT_EQ(run_script(job, "echo \"$@\"; return 1"),
            "--label --ntasks=2 --ntasks-per-node=1 --kill-on-bad-exit=1 sh -c make it\n(failed)");
}

TEST(JobSet, HasAPodOnEachHostWithItsChips) {
  Job job = job_of({"train", "--resume", "$(HOME)", "a \"b\""});
  job.environment = {{"A", "$$ 1"}};
  const auto slice = estimate::find_tpu_slice("v5litepod-16").value();
  const std::string text = jobset_manifest(job, "train", slice, "me/train:1").value();
  for (const char* line : {"        parallelism: 4\n", "        completions: 4\n", "google.com/tpu: 4\n",
                           "gke-tpu-topology: 4x4\n", "gke-tpu-accelerator: tpu-v5-lite-podslice\n",
                           "- \"$$(HOME)\"\n", "value: \"$$$$ 1\"\n", "- \"a \\\"b\\\"\"\n"})
    EXPECT_THAT(text, HasSubstr(line));
  // The key of the run comes from a Secret, or from the user.
  EXPECT_THAT(text, HasSubstr("name: train-run-key\n"));
  job.setup = "make it # once";
  EXPECT_THAT(jobset_manifest(job, "train", slice, "me/train:1").value(),
              HasSubstr(R"(- "{\nmake it # once\n} || exit\nexec \"$$@\"")"));
  EXPECT_EQ(output_of({"sh", "-c", "{\nfalse\n} || exit\nexec \"$@\"", "sh", "echo", "never"}, ""),
            "(failed)");
  job.environment = {{"SLUICE_RUN_KEY", "of the user"}};
  EXPECT_THAT(jobset_manifest(job, "train", slice, "me/train:1").value(),
              testing::Not(HasSubstr("secretKeyRef")));
}

TEST(JobSet, OfTpu7xInAQueueOfKueue) {
  const auto slice = estimate::find_tpu_slice("tpu7x-16").value();
  const std::string text = jobset_manifest(job_of({"train"}), "t", slice, "i", {"team-a", "high"}).value();
  for (const char* line : {"  name: t\n  labels:\n    kueue.x-k8s.io/queue-name: \"team-a\"\n"
                           "    kueue.x-k8s.io/priority-class: \"high\"\n  annotations:\n",
                           "gke-tpu-accelerator: tpu7x\n", "gke-tpu-topology: 2x2x2\n", "parallelism: 2\n",
                           "google.com/tpu: 4\n"})
    EXPECT_THAT(text, HasSubstr(line));
  const std::string plain = jobset_manifest(job_of({"train"}), "t", slice, "i").value();
  EXPECT_THAT(plain, testing::Not(HasSubstr("kueue")));
  for (const char* queue : {"A", "-a", "a b", "a\nb: c"})
    EXPECT_THAT(refusal(jobset_manifest(job_of({"x"}), "t", slice, "i", {queue, ""})),
                HasSubstr("--queue: expected"));
}

TEST(JobSet, OfSeveralSlices) {
  const auto slices = estimate::find_tpu_slices("3*v5p-32").value();
  const std::string text = jobset_manifest(job_of({"train"}), "big", slices, "i").value();
  for (const char* line :
       {"for 3*v5p-32: 12 hosts of 4 chips", "    replicas: 3\n", "parallelism: 4\n", "completions: 4\n",
        "google.com/tpu: 4\n", "gke-tpu-topology: 2x2x4\n",
        "- name: \"MEGASCALE_NUM_SLICES\"\n                value: \"3\"\n",
        "fieldPath: metadata.annotations['jobset.sigs.k8s.io/job-index']\n",
        "- name: \"MEGASCALE_COORDINATOR_ADDRESS\"\n                value: \"big-slice-0-0.big\"\n"})
    EXPECT_THAT(text, HasSubstr(line));
  const auto one = estimate::find_tpu_slice("v5p-32").value();
  EXPECT_THAT(jobset_manifest(job_of({"train"}), "big", one, "i").value(),
              testing::Not(HasSubstr("MEGASCALE")));
  EXPECT_THAT(refusal(jobset_manifest(job_of({"x"}), "a", estimate::find_tpu_slices("2*v6e-8").value(), "i")),
              HasSubstr("slices of two or more hosts"));
}

TEST(Engines, RefuseWhatTheyCannotHold) {
  const auto slice = estimate::find_tpu_slice("v5litepod-16").value();
  for (const char* name : {"", "Train", "1a", "a-", "a_b", "a.b"})
    EXPECT_THAT(refusal(sbatch_script(job_of({"x"}), name, 1, 1)), HasSubstr("small letters")) << name;
  EXPECT_THAT(refusal(jobset_manifest(job_of({"x"}), std::string(41, 'a'), slice, "i")), HasSubstr("40"));
  Job job = job_of({"x"});
  job.environment = {{"A", "{worker}"}};
  EXPECT_THAT(refusal(sbatch_script(job, "a", 1, 1)), HasSubstr("A={worker}"));
  EXPECT_THAT(refusal(jobset_manifest(job_of({"\xff"}), "a", slice, "i")), HasSubstr("UTF-8"));
  EXPECT_THAT(refusal(jobset_manifest(job_of({"x"}), "a", estimate::find_tpu_slice("v2-8").value(), "i")),
              HasSubstr("GKE has no nodes with v2"));
}

}  // namespace
}  // namespace sluice::pod
