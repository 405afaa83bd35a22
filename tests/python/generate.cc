// Language models for generate_oracle.py. For each folder with config.json, weights, request.json and
// logits.safetensors:
//   sluice_generated cpu|xla FOLDER…   writes FOLDER/answer-DEVICE.json and FOLDER/limited-DEVICE.safetensors
#include <cstdio>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "sluice/base/files/file.h"
#include "sluice/device/device.h"
#include "sluice/generate/generate.h"
#include "sluice/generate/score.h"
#include "sluice/session/files/tensor_file.h"
#include "sluice/session/pretrained/pretrained.h"

namespace {

using nlohmann::json;
using Ids = std::vector<uint32_t>;
namespace sessions = sluice::sessions;

sluice::SamplingOptions sampling_of(const json& options) {
  return {.repetition_penalty = options.value("repetition_penalty", 1.0),
          .temperature = options.value("temperature", 1.0),
          .top_k = options.value("top_k", int64_t{0}),
          .top_p = options.value("top_p", 1.0)};
}

// The logits, limited as each item of request["sampling"] says.
void limit(const std::string& folder, const std::string& name, const json& request, torch::Device device) {
  torch::Tensor logits, seen;
  for (const auto& [key, tensor] :
       sluice::base::value_or_throw(sessions::read_safetensors(folder + "/logits.safetensors")))
    (key == "logits" ? logits : seen) = tensor.to(device);
  sessions::NamedTensors limited;
  for (const auto& [key, options] : request.at("sampling").items())
    limited.emplace_back(key, sluice::limited_logits(logits, sampling_of(options), seen).cpu());
  sluice::base::value_or_throw(
      sessions::write_safetensors(folder + "/limited-" + name + ".safetensors", limited));
}

void run(const std::string& folder, const std::string& name, torch::Device device) {
  const json request =
      json::parse(sluice::base::value_or_throw(sluice::base::read_file(folder + "/request.json")));
  const sluice::models::LanguageModelPtr model = sluice::load_pretrained(folder);
  model->eval();
  model->to(device);
  const auto counted = [&] {
    if (device.is_cpu()) return sluice::Counters();
    sluice::sync_and_wait();
    return sluice::counters();
  };
  json answer;
  const sluice::Counters before = counted();
  const auto prompts = request.at("prompts").get<std::vector<Ids>>();
  const auto tokens = request.at("tokens").get<int64_t>();
  const sluice::GenerateOptions greedy = {.tokens = tokens, .sampling = {.greedy = true}, .end = Ids()};
  answer["said"] = sluice::generate(*model, prompts, greedy);
  const sluice::Counters after = counted();
  answer["programs"] = after.programs - before.programs;
  sluice::GenerateOptions ending = greedy;
  ending.end = request.at("end").get<Ids>();
  answer["until_end"] = sluice::generate(*model, prompts, ending);
  sluice::PassageScorer scorer(*model, /*batch=*/4);
  for (const json& passage : request.at("passages")) scorer.add({passage.get<Ids>()});
  answer["likelihoods"] = scorer.finish();
  answer["fallbacks"] = counted().fallbacks - before.fallbacks;
  sluice::base::value_or_throw(
      sluice::base::write_file_atomically(folder + "/answer-" + name + ".json", answer.dump()));
  limit(folder, name, request, device);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 3) throw std::runtime_error("usage: sluice_generated cpu|xla FOLDER…");
  const std::string name = argv[1];
  torch::Device device = torch::kCPU;
  if (name == "xla") {
    sluice::init();
    device = torch::Device(torch::kXLA, 0);
  }
  for (int i = 2; i < argc; ++i) run(argv[i], name, device);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "sluice_generated: %s\n", error.what());
  return 1;
}
