#include "sluice/cli/flags/old_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"

namespace sluice::cli {
namespace {

using testing::HasSubstr;

std::string answer(const std::string& line) { return answer_to_old_flags(base::split(line, ' ')); }

TEST(OldFlags, NewCommandLinesHaveNone) {
  EXPECT_EQ(answer("--model resnet50 --lr 0.5 --momentum 0.9 --seed 42 --logdir run --epochs 18"), "");
  EXPECT_EQ(answer_to_old_key("epochs"), "");
}

TEST(OldFlags, AllOfThemAreAnswered) {
  // Every flag of that job whose name is another one now.
  const std::string text = answer(
      "--logdir gs://b/run --num_cores 8 --batch_size 128 --test_set_batch_size=64 --num_epochs 18 "
      "--num_workers 8 --log_steps 10 --lr 0.5 --weight_decay 1e-4 --target_accuracy 30 --model resnet50 "
      "--lr_scheduler_type WarmupAndExponentialDecay --lr_scheduler_divide_every_n_epochs 20 "
      "--lr_scheduler_divisor 5 --wds_traindir gs://b/train-{000000..000639}.tar --wds_testdir "
      "gs://b/test-{000000..000049}.tar --trainsize 1280000 --testsize 50000 --save_model x "
      "--load_chkpt_file c.pt --load_chkpt_dir old --model_bucket bucket --profiler_port 9012 "
      "--metrics_debug --drop_last --fake_data --async_closures");
  EXPECT_THAT(
      text,
      HasSubstr("\n  sluice train --logdir gs://b/run --devices 8 --batch-size 128 --test-batch-size 64 "
                "--epochs 18 --log-steps 10 --lr 0.5 --weight-decay 1e-4 --target-accuracy 30 --model "
                "resnet50 --lr-schedule WarmupAndExponentialDecay --lr-every-epochs 20 --lr-divisor 5 "
                "--train 'gs://b/train-{000000..000639}.tar' --test 'gs://b/test-{000000..000049}.tar' "
                "--profiler-port 9012 --report --remainder drop --fake-data --original-workers 8 "
                "--original-samples 1280000 --weights gs://bucket/old/c.pt\n"));
  for (const char* flag : {"num_cores",
                           "batch_size",
                           "test_set_batch_size",
                           "num_epochs",
                           "num_workers",
                           "log_steps",
                           "weight_decay",
                           "target_accuracy",
                           "lr_scheduler_type",
                           "lr_scheduler_divide_every_n_epochs",
                           "lr_scheduler_divisor",
                           "wds_traindir",
                           "wds_testdir",
                           "trainsize",
                           "testsize",
                           "save_model",
                           "load_chkpt_file",
                           "load_chkpt_dir",
                           "model_bucket",
                           "profiler_port",
                           "metrics_debug",
                           "drop_last",
                           "fake_data",
                           "async_closures"})
    EXPECT_THAT(text, HasSubstr(base::str("\n  --", flag, "  →  "))) << flag;
  EXPECT_THAT(text, HasSubstr("--testsize  →  has no successor: the test set is counted"));
}

TEST(OldFlags, ValuesAreTranslated) {
  EXPECT_THAT(answer_to_old_flags({"--wds_traindir", "pipe:gsutil cat gs://b/train-{0..9}.tar"}),
              HasSubstr("--train 'gs://b/train-{0..9}.tar'\n"));
  EXPECT_THAT(answer_to_old_flags({"--wds_traindir", "pipe:gsutil cat gs://b/x.tar | tee y"}),
              HasSubstr("--train 'pipe:gsutil cat gs://b/x.tar | tee y'\n"));
  // The epoch's length belongs to the old order, of which 4 workers were the default.
  EXPECT_THAT(answer("--trainsize 1000"), HasSubstr("--original-workers 4 --original-samples 1000\n"));
  EXPECT_THAT(answer("--model_bucket b"), HasSubstr("sluice train --logdir gs://b/run\n"));
  EXPECT_THAT(answer("--num_epochs"), HasSubstr("--epochs ''\n"));
}

TEST(OldFlags, KeysOfAFileAreAnsweredToo) {
  EXPECT_EQ(answer_to_old_key("num_epochs"), "num_epochs is now epochs");
  EXPECT_THAT(answer_to_old_key("wds-traindir"), HasSubstr("wds-traindir is now train (the same list"));
  EXPECT_THAT(answer_to_old_key("async_closures"), HasSubstr("has no successor"));
}

}  // namespace
}  // namespace sluice::cli
