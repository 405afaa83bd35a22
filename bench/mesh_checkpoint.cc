// One of several processes that save and resume a decoder with AdamW over a mesh; mesh_checkpoint.py starts
// them on an emulated pod. Prints one line of JSON:
//   bench_mesh_checkpoint save MESH FOLDER RULES    trains, and saves while it trains
//   bench_mesh_checkpoint resume MESH FOLDER RULES  reads the checkpoint
// RULES: "own" for the model's rules, "rows" for all parameters along their first dimension over fsdp,
// "columns" for matrices along their second one.
#include <sluice/sluice.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <future>
#include <string>
#include <vector>

#include "bench/against_eager.h"
#include "bench/mesh_process.h"
#include "sluice/base/test_memory.h"
#include "sluice/device/start/without_values.h"
#include "sluice/models/language/language.h"
#include "sluice/session/files/checkpoint_writer.h"
#include "sluice/session/pieces/checkpoint_source.h"

namespace {

namespace sessions = sluice::sessions;
using sluice::base::peak_memory;
using sluice::base::process_number;
using sluice::base::reset_peak_memory;
using sluice::base::value_or_throw;
using sluice::bench::bytes_here;
using sluice::bench::median;

constexpr int kWarmSteps = 4, kSteps = 8, kRounds = 3, kRows = 4, kLength = 32;

std::vector<sluice::ShardRule> rules_of(const std::string& rules) {
  if (rules == "rows") return {{"*", "fsdp", 0}};
  if (rules == "columns")
    return {
        {"*_proj.weight", "fsdp", 1}, {"*embed_tokens.weight", "fsdp", 1}, {"*lm_head.weight", "fsdp", 1}};
  return {};
}

// 38 million parameters, 154 MB.
sluice::models::LanguageModelPtr make_decoder(sluice::Session& session, const std::string& rules) {
  torch::manual_seed(1);
  auto options = sluice::models::language_preset("llama-mini");
  options.vocabulary = 8192;
  options.width = 768;
  options.layers = 4;
  options.heads = 8;
  options.key_value_heads = 4;
  options.feedforward = 2048;
  options.tied = false;
  sluice::models::LanguageModelPtr model;
  {
    const sluice::WithoutValues scope;
    model = sluice::models::language_model(options);
  }
  if (rules != "own") session.place(*model, rules_of(rules));
  return model;
}

class Training {
 public:
  Training(sluice::Session& session, const std::string& rules)
      : session_(session), model_(make_decoder(session, rules)) {
    session.place(*model_);
    optimizer_.emplace(model_->parameters(), torch::optim::AdamWOptions(1e-3));
    session.prepare(*model_, *optimizer_);
    const int64_t rows = kRows / session.batch_parts();
    ids_ = torch::arange(kRows * kLength)
               .reshape({kRows, kLength})
               .slice(0, rows * session.batch_part(), rows * (session.batch_part() + 1));
  }

  void step() {
    const torch::Tensor x = session_.upload({ids_}), y = session_.upload({ids_.roll(-1, 1)});
    torch::nn::functional::cross_entropy(model_->forward(x).flatten(0, 1), y.flatten()).backward();
    session_.step(*optimizer_);
    sluice::sync_and_wait();
  }

  int64_t shard_bytes() {
    return bytes_here(sessions::module_tensors(*model_)) +
           bytes_here(sessions::optimizer_tensors(*optimizer_, *model_));
  }

  sluice::base::Status start_save(sessions::CheckpointWriter& writer, const std::string& folder) {
    session_.sync("checkpoint");
    return writer.write(sessions::take_snapshot(session_.backend(), *model_, {&*optimizer_}, {}), {folder});
  }

 private:
  sluice::Session& session_;
  sluice::models::LanguageModelPtr model_;
  std::optional<torch::optim::AdamW> optimizer_;
  torch::Tensor ids_;
};

// The steps of one round: without a save, and from the beginning of a save on.
struct Round {
  std::vector<double> plain, around;
  double write_seconds = 0, record_seconds = 0;
  int64_t plain_peak = 0, peak = 0;
};

Round train_and_save(Training& training, sessions::CheckpointWriter& writer, const std::string& folder) {
  Round round;
  reset_peak_memory();
  for (int i = 0; i < kSteps; ++i) {
    const sluice::base::Stopwatch watch;
    training.step();
    round.plain.push_back(watch.seconds());
  }
  round.plain_peak = peak_memory();
  reset_peak_memory();
  const sluice::base::Stopwatch save;
  value_or_throw(training.start_save(writer, folder));
  round.record_seconds = save.seconds();
  std::future<double> written = std::async(std::launch::async, [&] {
    value_or_throw(writer.wait());
    return save.seconds();
  });
  for (int i = 0; i < kSteps; ++i) {
    const sluice::base::Stopwatch watch;
    training.step();
    round.around.push_back(watch.seconds() + (i == 0 ? round.record_seconds : 0));
  }
  round.write_seconds = written.get();
  round.peak = peak_memory();
  return round;
}

template <typename Figure>
double median_of(const std::vector<Round>& rounds, const Figure& figure) {
  std::vector<double> all;
  for (const Round& round : rounds) all.push_back(figure(round));
  return median(all);
}

nlohmann::json save(sluice::Session& session, const std::string& folder, const std::string& rules) {
  Training training(session, rules);
  for (int i = 0; i < kWarmSteps; ++i) training.step();
  sessions::CheckpointWriter writer;
  writer.set_peers(session.save_peers());
  std::vector<Round> rounds;
  for (int i = 0; i < kRounds; ++i) rounds.push_back(train_and_save(training, writer, folder));
  const auto shards = static_cast<double>(training.shard_bytes());
  const auto step_of = [](const Round& round) { return median(round.plain); };
  return {
      {"shard_mb", shards / 1e6},
      {"step_s", median_of(rounds, step_of)},
      {"snapshot_s", median_of(rounds, [](const Round& round) { return round.record_seconds; })},
      {"write_s", median_of(rounds, [](const Round& round) { return round.write_seconds; })},
      {"longest_plain_step_steps",
       median_of(rounds,
                 [&](const Round& round) {
                   return *std::max_element(round.plain.begin(), round.plain.end()) / step_of(round);
                 })},
      {"longest_step_s", median_of(rounds,
                                   [](const Round& round) {
                                     return *std::max_element(round.around.begin(), round.around.end());
                                   })},
      {"stall_steps",
       median_of(rounds,
                 [&](const Round& round) {
                   return *std::max_element(round.around.begin(), round.around.end()) / step_of(round) - 1;
                 })},
      // The first save makes the host's memory grow; later ones find it.
      {"memory_over_shards", static_cast<double>(rounds.front().peak - rounds.front().plain_peak) / shards}};
}

nlohmann::json resume(sluice::Session& session, const std::string& folder, const std::string& rules) {
  const auto model = make_decoder(session, rules);
  reset_peak_memory();
  const int64_t peak_before = peak_memory(), read_before = process_number("io", "rchar:");
  const sluice::base::Stopwatch watch;
  auto source = value_or_throw(sessions::CheckpointSource::open(folder));
  const int64_t headers = process_number("io", "rchar:") - read_before;
  value_or_throw(source.load_model(*model, folder));
  torch::optim::AdamW optimizer(model->parameters(), torch::optim::AdamWOptions(1e-3));
  const auto state = value_or_throw(source.load_state(*model));
  const double seconds = watch.seconds();
  const int64_t read = process_number("io", "rchar:") - read_before - headers, peak = peak_memory();
  value_or_throw(sessions::load_optimizer(optimizer, *model, state, folder));
  const int64_t needed = bytes_here(sessions::module_tensors(*model)) + bytes_here(state);
  const auto ratio = [](int64_t a, int64_t b) { return static_cast<double>(a) / static_cast<double>(b); };
  return {{"needed_mb", static_cast<double>(needed) / 1e6},
          {"read_over_needed", ratio(read, needed)},
          {"counted_over_needed", ratio(source.reads().bytes, needed)},
          {"headers_mb", static_cast<double>(headers) / 1e6},
          {"reads", source.reads().requests},
          {"memory_over_shards", ratio(peak - peak_before, needed)},
          {"seconds", seconds}};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const std::string verb = argv[1], folder = argv[3], rules = argv[4];
  return sluice::bench::run_mesh_process(argv[2], [&](sluice::Session& session) {
    return verb == "save" ? save(session, folder, rules) : resume(session, folder, rules);
  });
}
