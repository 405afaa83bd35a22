#include "sluice/cli/flags/old_flags.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/pod/ssh/quote.h"

namespace sluice::cli {
namespace {

struct OldFlag {
  const char* name;    // without dashes
  const char* now;     // the new flag with its dashes; "": there is no new flag
  const char* remark;  // why there is no new flag, or how the value translates
  bool is_switch = false;
};

constexpr OldFlag kOldFlags[] = {
    {"wds_traindir", "--train", "the same list of shards; gs://… needs no pipe:gsutil"},
    {"wds_testdir", "--test", "the same list of shards; gs://… needs no pipe:gsutil"},
    {"trainsize", "--original-samples",
     "with --original-workers, where it ends the epoch; otherwise shards are counted"},
    {"testsize", "", "the test set is counted, and each of its samples is looked at once"},
    {"num_epochs", "--epochs", ""},
    {"batch_size", "--batch-size", "of one replica, as before"},
    {"test_set_batch_size", "--test-batch-size", "of one replica, as before"},
    {"num_cores", "--devices", "of this process; sluice run starts a process on each host"},
    {"num_workers", "--original-workers",
     "it reproduces the order of N workers; --workers sets the number of decoding threads"},
    {"log_steps", "--log-steps", "counted within the epoch, as before"},
    {"weight_decay", "--weight-decay", ""},
    {"target_accuracy", "--target-accuracy", "below it the exit status is 21, as before"},
    {"lr_scheduler_type", "--lr-schedule", "WarmupAndExponentialDecay, as before, or constant, step, cosine"},
    {"lr_scheduler_divide_every_n_epochs", "--lr-every-epochs", ""},
    {"lr_scheduler_divisor", "--lr-divisor", ""},
    {"save_model", "", "LOGDIR/last and LOGDIR/best are always kept; `sluice export` writes them for Python"},
    {"load_chkpt_file", "--weights", "only weights, as before; --resume also restores optimizer and epoch"},
    {"load_chkpt_dir", "--weights", "the folder of load_chkpt_file"},
    {"model_bucket", "--logdir", "gs://BUCKET/FOLDER keeps logs and checkpoints"},
    {"profiler_port", "--profiler-port",
     "of each process, with TensorBoard's capture button as before, and `sluice profile`"},
    {"metrics_debug", "--report", "", true},
    {"drop_last", "--remainder", "drop, which is the default", true},
    {"fake_data", "--fake-data", "", true},
    {"async_closures", "", "logged values are always fetched while the device continues", true},
};

const OldFlag* find_old(std::string_view name) {
  const auto* found = std::find_if(std::begin(kOldFlags), std::end(kOldFlags),
                                   [&](const OldFlag& f) { return f.name == name; });
  return found == std::end(kOldFlags) ? nullptr : found;
}

// Returns "--batch-size (of one replica, as before)".
std::string answer(const OldFlag& flag, const std::string& now) {
  const std::string remark = flag.remark;
  if (now.empty()) return "has no successor: " + remark;
  return remark.empty() ? now : base::str(now, " (", remark, ")");
}

// Turns "pipe:gsutil cat gs://bucket/x" into a URL, which is read without a command.
std::string shards(const std::string& value) {
  for (const char* start : {"pipe:gsutil cat ", "pipe: gsutil cat ", "pipe:gcloud storage cat "})
    if (base::starts_with(value, start) && value.find_first_of("|;&<>") == std::string::npos)
      return value.substr(std::string_view(start).size());
  return value;
}

// The answers, in the order of the flags, and the new command line.
class Translation {
 public:
  void keep(const std::string& word) { words_.push_back(word); }

  void take(const OldFlag& flag, const std::optional<std::string>& value) {
    const std::string name = flag.name, given = value.value_or("");
    if (name == "load_chkpt_file" || name == "load_chkpt_dir" || name == "model_bucket") {
      places_[name] = given;
    } else if (name == "drop_last") {
      add("--remainder", "drop");
    } else if (flag.is_switch) {
      if (*flag.now != '\0') words_.push_back(flag.now);
    } else if (name == "trainsize") {
      samples_ = given;
    } else if (name == "num_workers") {
      workers_ = given;
    } else if (*flag.now != '\0') {
      add(flag.now, base::starts_with(name, "wds_") ? shards(given) : given);
    }
    lines_.push_back(base::str("  --", name, "  →  ", answer(flag, flag.now)));
  }

  std::string text() {
    if (lines_.empty()) return "";
    add_order();
    add_places();
    return base::str("these flags belong to the PyTorch/XLA job and have other names here:\n",
                     base::join(lines_, "\n"), "\nThe whole command line is now\n  sluice train ",
                     pod::quote_all(words_),
                     "\nThat job's defaults are in recipes/resnet50_cifar10.toml: --config FILE.");
  }

 private:
  void add(const std::string& flag, const std::string& value) {
    words_.push_back(flag);
    words_.push_back(value);
  }
  // By default the job had 4 workers; its epoch ended after --original-samples samples.
  void add_order() {
    if (workers_ && *workers_ != "0") add("--original-workers", *workers_);
    if (samples_ && !workers_) add("--original-workers", "4");
    if (samples_ && workers_.value_or("4") != "0") add("--original-samples", *samples_);
  }
  void add_places() {
    const auto bucket = [&](const std::string& path) {
      const std::string& name = places_["model_bucket"];
      if (name.empty() || base::starts_with(path, "gs://")) return path;
      return base::str(base::starts_with(name, "gs://") ? "" : "gs://", name, "/", path);
    };
    const std::string &file = places_["load_chkpt_file"], &folder = places_["load_chkpt_dir"];
    if (!file.empty()) add("--weights", bucket(folder.empty() ? file : base::str(folder, "/", file)));
    const bool has_logdir = std::any_of(words_.begin(), words_.end(), [](const std::string& word) {
      return word == "--logdir" || base::starts_with(word, "--logdir=");
    });
    if (!places_["model_bucket"].empty() && !has_logdir) add("--logdir", bucket("run"));
  }

  std::vector<std::string> words_, lines_;
  std::map<std::string, std::string> places_;
  std::optional<std::string> workers_, samples_;
};

}  // namespace

std::string answer_to_old_flags(const std::vector<std::string>& words) {
  Translation translation;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const std::size_t equals = word.find('=');
    const bool is_flag = base::starts_with(word, "--");
    const OldFlag* flag = is_flag ? find_old(std::string_view(word).substr(0, equals).substr(2)) : nullptr;
    if (flag == nullptr) {
      translation.keep(word);
      continue;
    }
    std::optional<std::string> value;
    if (equals != std::string::npos) {
      value = word.substr(equals + 1);
    } else if (!flag->is_switch && i + 1 < words.size() && !base::starts_with(words[i + 1], "--")) {
      value = words[++i];
    }
    translation.take(*flag, value);
  }
  return translation.text();
}

std::string answer_to_old_key(const std::string& key) {
  std::string name = key;
  std::replace(name.begin(), name.end(), '-', '_');
  const OldFlag* flag = find_old(name);
  if (flag == nullptr) return "";
  std::string now = flag->now;
  if (now.empty()) return base::str(key, " ", answer(*flag, now));
  now.erase(0, 2);
  std::replace(now.begin(), now.end(), '-', '_');
  return base::str(key, " is now ", answer(*flag, now));
}

}  // namespace sluice::cli
