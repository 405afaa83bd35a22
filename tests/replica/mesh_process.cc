// One of several processes whose devices form one mesh, for the tests in Python of this folder: SCENARIO MESH
// FOLDER.
//
//   train: trains a small decoder on token files and prints losses and weights
//   reads: reads, fetches and writes values that lie over the processes; refusals that all processes get
//   leader-reads: only the leader reads a weight that lies over the processes
//   long: fifty steps of a decoder, a residual net, an LSTM, a model that scatters and a GAN
//   start: a model without values gets the numbers that it starts with, drawn by the host and by the devices
//   weights: each process loads a model from a folder and from a bucket, and reads only its own blocks
//   trainer: two epochs of the trainer, which writes a checkpoint into FOLDER; the second one is resumed with
//     another mesh
//   epochs: trains on from what is in FOLDER, with averages of the weights; three more arguments: up to the
//     end of this epoch, on so many devices of each process, and with a checkpoint every N steps
//   words: trains a small Llama on from what is in FOLDER; three more arguments: up to this step, on so many
//     devices of each process, and the number of all replicas if there is no mesh
#include <sluice/sluice.h>

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>

#include "sluice/base/environment.h"
#include "sluice/base/files/file.h"
#include "sluice/cloud/test_server.h"
#include "sluice/device/sharding/shard.h"
#include "sluice/models/language/language.h"
#include "sluice/session/files/module_values.h"
#include "sluice/text/test_tokens.h"
#include "sluice/text/token_batches.h"
#include "sluice/train/trainer.h"
#include "tests/common/mesh_trainings.h"

namespace {

namespace nn = torch::nn;
using sluice::Layout;
using sluice::base::str;

constexpr int64_t kWidth = 256, kVocabulary = 512, kRows = 8, kLength = 12;

struct TinyDecoderImpl : nn::Module {
  nn::Embedding tokens = register_module("tokens", nn::Embedding(kVocabulary, kWidth));
  nn::LayerNorm norm = register_module("norm", nn::LayerNorm(nn::LayerNormOptions({kWidth})));
  nn::Linear up = register_module("up", nn::Linear(kWidth, 2 * kWidth));
  nn::Linear down = register_module("down", nn::Linear(2 * kWidth, kWidth));
  nn::Linear head = register_module("head", nn::Linear(kWidth, kVocabulary));

  torch::Tensor forward(const torch::Tensor& ids) {
    torch::Tensor x = tokens(ids);
    x = x + x.cumsum(1) / kLength;  // each place sees those before it
    return head(x + down(torch::gelu(up(norm(x)))));
  }
};
TORCH_MODULE(TinyDecoder);

void expect(bool right, const std::string& what) {
  if (!right) throw std::runtime_error("WRONG: " + what);
}

// Prints numbers of which one changes when an element changes or moves.
void print_weight(int process, const std::string& name, const torch::Tensor& of_host) {
  const torch::Tensor value = of_host.to(torch::kDouble).flatten();
  const torch::Tensor place = torch::arange(value.numel(), torch::kDouble).remainder(101) / 101;
  std::printf("weight %d %s %.9g %.9g\n", process, name.c_str(), value.abs().sum().item<double>(),
              (value * place).sum().item<double>());
}

void print_weights(sluice::Session& session, const nn::Module& model) {
  for (const auto& item : model.named_parameters())
    print_weight(session.process_index(), item.key(), item.value().detach().cpu());
}

void train_long(sluice::Session& session, bool over_mesh) {
  for (const std::string model : sluice::tests::kMeshTrainings) {
    const auto run = sluice::tests::train_on_mesh(model);
    for (size_t i = 0; i < run.losses.size(); ++i)
      std::printf("loss %d %s-%zu %.9g\n", session.process_index(), model.c_str(), i, run.losses[i]);
    for (const auto& [name, value] : run.values)
      print_weight(session.process_index(), str(model, '-', name), value);
    if (over_mesh) expect(run.in_blocks >= 3, str(run.in_blocks, " weights lie in blocks"));
  }
}

// The token set of all scenarios: each process writes its own copy.
sluice::text::TokenBatches token_batches(const std::string& folder, int process, int64_t rows) {
  std::vector<std::vector<std::uint32_t>> documents(1);
  for (uint32_t i = 0; i < 4096; ++i) documents[0].push_back(i * i % 509);
  const std::string path = str(folder, "/tokens-", process);
  (void)sluice::text::test::token_file(path, documents);
  sluice::text::TokenBatchOptions options;
  options.kind = sluice::text::RowKind::kRunning;
  options.shapes = {{rows, kLength}};
  options.next_token = true;
  options.seed = 3;
  return {sluice::text::TokenSet::open(path + ".bin"), options};
}

void train(sluice::Session& session, const std::string& mesh, const std::string& folder) {
  TinyDecoder model;
  session.place(*model);
  // A large epsilon: Adam divides a gradient by itself, which makes rounding errors of small ones large.
  torch::optim::AdamW optimizer(model->parameters(), torch::optim::AdamWOptions(1e-3).eps(1e-3));
  session.prepare(*model, optimizer);
  const auto batches = token_batches(folder, session.process_index(), kRows / session.batch_parts());
  int step = 0;
  for (auto& batch : session.feed(batches)) {
    const torch::Tensor ids = batch.columns[0];
    expect(ids.size(0) == kRows, str("a batch has ", ids.size(0), " rows"));
    const torch::Tensor scores = model->forward(ids.slice(1, 0, kLength)).flatten(0, 1);
    const torch::Tensor loss = nn::functional::cross_entropy(scores, ids.slice(1, 1).flatten());
    loss.backward();
    session.step(optimizer, {.clip_norm = 1.0});
    std::printf("loss %d %d %.9g\n", session.process_index(), step, loss.item<double>());
    if (++step == 6) break;
  }
  session.finish();
  if (!mesh.empty()) {
    const std::string layout = sluice::layout_of(model->up->weight).str();
    expect(layout == "[fsdp, -]", "the layout is " + layout);
    const auto& state = static_cast<const torch::optim::AdamWParamState&>(
        *optimizer.state().at(model->up->weight.unsafeGetTensorImpl()));
    expect(sluice::layout_of(state.exp_avg()).str() == layout, "the moment lies otherwise");
  }
  print_weights(session, *model);
}

torch::Tensor ramp(std::vector<int64_t> sizes) {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  return (torch::arange(count, torch::kFloat) * 0.25 - 3).reshape(sizes);
}

// Returns the text of the error that is thrown.
template <typename Function>
std::string thrown(const Function& function) {
  try {
    function();
  } catch (const sluice::Error& error) {
    return error.what();
  }
  return "nothing";
}

void expect_refusal(const std::string& error, const std::string& part) {
  expect(error.find(part) != std::string::npos, "the error is " + error);
}

void refusals(sluice::Session& session) {
  nn::Linear model(4, 300);
  const torch::Tensor other = torch::full({300}, static_cast<double>(session.process_index()));
  model->bias.set_data(other);
  expect_refusal(thrown([&] { session.place(*model); }), "'bias' differs between process 0 and process 1");
  expect_refusal(thrown([&] { sluice::shard(other, Layout::along(1, 0, {"fsdp"})); }),
                 "'the tensor' differs between process 0 and process 1");
  // Whole on every device, and not compared so far: a value to be read by local() until session.prepare().
  const torch::Tensor x = other.to(session.device());
  expect_refusal(thrown([&] { (void)x.sum().item<float>(); }), "the 2 processes may hold different ones");
  expect(torch::equal(sluice::local(x), other), "local()");
  expect_refusal(thrown([&] {
                   (void)session.upload({torch::ones({3, 2})});
                 }),
                 "a batch whose part of each process has the shape [3, 2]: dimension 0 of [6, 2] has 6");
}

void reads(sluice::Session& session) {
  const torch::Tensor host = ramp({8, 6});
  // Two layouts: the third new program of a place would be looked up in the debug information.
  for (const auto& [layout, beyond] :
       {std::pair(Layout({{{"fsdp"}}, {{"data"}}}), true), std::pair(Layout({{{"fsdp"}}, {}}), false)}) {
    const std::string of = layout.str();
    const torch::Tensor x = sluice::shard(host, layout);
    expect(sluice::lies_over_processes(x) == beyond, "where the blocks are, " + of);
    expect(torch::equal(x.cpu(), host), "cpu(), " + of);
    expect(torch::equal(sluice::fetch(x).get().at(0), host), "fetch(), " + of);
    expect(x[3][2].item<float>() == host[3][2].item<float>(), "item(), " + of);
    expect(torch::equal(x.t().slice(0, 1, 4).cpu(), host.t().slice(0, 1, 4)), "a slice, " + of);
    x.mul_(3);
    const auto pending = sluice::fetch(x);
    sluice::sync();
    expect(torch::equal(pending.get().at(0), host * 3), "fetch() of a pending value, " + of);
    expect(sluice::layout_of(x).str() == of, "a write's layout, " + of);
    expect(torch::equal(x.cpu(), host * 3), "a write, " + of);
    x.copy_(host + 1);
    expect(torch::equal(sluice::local(x), host + 1), "copy_() from the host, " + of);
  }
  const int64_t rows = 8 / sluice::batch_parts(), first = rows * sluice::batch_part();
  const torch::Tensor batch = sluice::shard_batch(host.slice(0, first, first + rows));
  expect(torch::equal(batch.cpu(), host), "the batch");
  expect(torch::equal(session.upload({host.slice(0, first, first + rows)}).cpu(), host), "an upload");
  const auto programs = sluice::counters().programs;
  for (int i = 0; i < 3; ++i) expect(torch::equal(batch.cpu(), host), "the batch again");
  expect(sluice::counters().programs == programs, "the same read needs a new program");
  session.print("all reads are right");
}

// A large table lies over fsdp along its first dimension, and a small one along its second.
struct TablesImpl : nn::Module {
  nn::Embedding large = register_module("large", nn::Embedding(4096, 256));
  nn::Linear wide = register_module("wide", nn::Linear(nn::LinearOptions(1024, 512)));
  nn::LayerNorm norm = register_module("norm", nn::LayerNorm(nn::LayerNormOptions({256})));
};
TORCH_MODULE(Tables);

Tables without_values(sluice::StartNumbers numbers) {
  torch::manual_seed(5);
  const sluice::WithoutValues scope(numbers);
  return Tables();
}

void expect_values(const nn::Module& model, const nn::Module& wanted, const std::string& what) {
  const auto values = wanted.named_parameters();
  for (const auto& item : model.named_parameters())
    expect(torch::equal(item.value().detach().cpu(), values[item.key()]), str(what, ", ", item.key()));
}

void start_without_values(sluice::Session& session) {
  torch::manual_seed(5);
  const Tables plain;
  Tables of_host = without_values(sluice::StartNumbers::kHost);
  session.place(*of_host);
  expect_values(*of_host, *plain, "the host's numbers");
  Tables of_device = without_values(sluice::StartNumbers::kDevice);
  session.place(*of_device);
  print_weights(session, *of_device);
  if (session.processes() == 1) return;
  torch::manual_seed(static_cast<uint64_t>(session.process_index()));
  std::optional<Tables> apart;
  {
    const sluice::WithoutValues scope;
    apart.emplace();
  }
  expect_refusal(thrown([&] { session.place(**apart); }), "the state of the CPU generator' differs between");
  session.print("all starts are right");
}

// Puts the model's tensors into the bucket, and into files of a folder of this process.
std::string write_files(const nn::Module& model, sluice::cloud::test::Bucket& bucket,
                        const std::string& folder) {
  sluice::base::value_or_throw(sluice::base::make_directories(folder));
  const auto write = [&](const std::string& name, const std::string& bytes) {
    sluice::base::value_or_throw(sluice::base::write_file_atomically(folder + "/" + name, bytes));
    bucket.put("m/" + name, bytes);
  };
  std::string map;
  for (const auto& [name, tensor] : sluice::sessions::module_tensors(model)) {
    const std::string file = name + ".safetensors", path = folder + "/" + file;
    sluice::base::value_or_throw(sluice::sessions::write_safetensors(path, {{name, tensor}}));
    write(file, sluice::base::value_or_throw(sluice::base::read_file(path)));
    map += str(map.empty() ? "" : ",", '"', name, "\":\"", file, '"');
  }
  write("model.safetensors.index.json", R"({"weight_map":{)" + map + "}}");
  return folder;
}

void load_weights(sluice::Session& session, const std::string& folder) {
  namespace sessions = sluice::sessions;
  sluice::cloud::test::Bucket bucket;
  const sluice::cloud::test::Server server([&](const auto& request) { return bucket(request); });
  expect(sluice::cloud::test::stand_for_cloud(server), "the environment");
  const Tables plain;
  const std::string files = write_files(*plain, bucket, str(folder, "/weights-", session.process_index()));
  int64_t all = 0;
  for (const auto& parameter : plain->parameters()) all += static_cast<int64_t>(parameter.nbytes());
  for (const std::string& from : {files, std::string("gs://b/m")}) {
    Tables model = without_values(sluice::StartNumbers::kHost);
    sessions::StoredReader reader;
    const auto stored = sluice::base::value_or_throw(reader.list(from));
    const int before = server.requests();
    const auto programs = sluice::counters().programs;
    sluice::base::value_or_throw(sessions::load_stored(*model, reader, stored, from));
    expect(sluice::counters().programs == programs, "loading needs a program");
    const sessions::StoredReads reads = reader.reads();
    // Half of what is laid out, and all of the rest.
    expect(reads.needed < all * 52 / 100, str(reads.needed, " bytes of ", all, " are needed"));
    expect(reads.bytes * 100 <= reads.needed * 125, str(reads.bytes, " bytes are read"));
    // A slow answer may be asked for a second time.
    const int64_t requests = server.requests() - before;
    const bool counted = requests >= reads.requests && requests <= reads.requests + 8;
    expect(from == files || counted, str(requests, " requests, ", reads.requests, " are counted"));
    expect_values(*model, *plain, from);
  }
  // A model that is laid out already keeps its layouts.
  Tables placed;
  session.place(*placed, {{"large.weight", "fsdp", 1}});
  sessions::StoredReader reader;
  const auto stored = sluice::base::value_or_throw(reader.list(files));
  sluice::base::value_or_throw(sessions::load_stored(*placed, reader, stored, files));
  const sessions::StoredReads reads = reader.reads();
  expect(reads.needed < all * 52 / 100 && reads.bytes * 100 <= reads.needed * 125,
         str(reads.bytes, " bytes are read, and ", reads.needed, " of ", all, " are needed"));
  const std::string layout = sluice::layout_of(placed->large->weight).str();
  expect(layout == "[-, fsdp]" && placed->large->weight.requires_grad(), "the layout is " + layout);
  expect_values(*placed, *plain, "a model that is laid out");
  session.print("all weights are right");
}

sluice::train::TrainOptions train_options(const std::string& mesh, const std::string& folder) {
  sluice::train::TrainOptions options;
  options.model = "mlp";
  options.fake_data = true;
  options.classes = 5;
  options.image_size = 8;
  options.channels = 3;
  options.train_size = 64;
  options.test_size = 20;  // the last batch is padded
  options.lr = 0.01;
  options.lr_schedule = sluice::train::LrSchedule::kConstant;
  options.optimizer = sluice::train::OptimizerKind::kSgd;
  options.mesh = sluice::Mesh::parse(mesh);
  options.devices = 2;
  options.batch_size = mesh.empty() ? 4 : 8;
  options.logdir = folder + "/run";
  options.cpu_kernels = false;
  options.log_steps = 1;
  return options;
}

void train_epochs(sluice::train::TrainOptions options, const std::vector<int64_t>& numbers) {
  options.ema = 0.5;
  options.epochs = numbers[0];
  options.devices = static_cast<int>(numbers[1]);
  options.save_steps = numbers[2];
  options.batch_size = 8;
  options.resume = {.from_last = true};
  sluice::train::train(options);
}

// A decoder whose matrices lie over the mesh, whose norms and projections to keys and values are whole, and
// whose vocabulary no axis divides.
std::string decoder_file(const std::string& folder, int process) {
  sluice::models::LanguageOptions decoder = sluice::models::language_preset("llama-mini");
  decoder.width = 320;
  decoder.layers = 2;
  decoder.feedforward = 480;
  decoder.vocabulary = 509;
  decoder.positions = 64;
  decoder.tied = false;
  const std::string path = str(folder, "/decoder-", process, ".json");
  sluice::base::value_or_throw(
      sluice::base::write_file_atomically(path, sluice::models::language_config(decoder)));
  return path;
}

// Returns token files that all processes of a folder read. Each writes its own; the first ones get the name.
std::string words_file(const std::string& folder, int process) {
  const std::string path = str(folder, "/tokens.bin");
  if (sluice::base::path_exists(path)) return path;
  (void)token_batches(folder, process, 1);
  for (const char* const kind : {".idx", ".bin"}) {
    const std::string own = str(folder, "/tokens-", process, kind), all = str(folder, "/tokens", kind);
    if (::link(own.c_str(), all.c_str()) != 0 && errno != EEXIST)
      throw std::runtime_error(str("cannot link ", all, ": ", std::strerror(errno)));
  }
  return path;
}

void train_words(const std::string& mesh, const std::string& folder, const std::vector<int64_t>& numbers) {
  sluice::train::TrainOptions options;
  options.task = sluice::train::Task::kClm;
  sluice::train::set_language_recipe(options);
  const auto variable = sluice::base::environment("SLUICE_PROCESS_ID");
  const int process = variable ? std::stoi(*variable) : 0;
  options.train = words_file(folder, process);
  options.model = decoder_file(folder, process);
  options.length = 16;
  options.mesh = sluice::Mesh::parse(mesh);
  options.max_steps = numbers[0];
  options.devices = static_cast<int>(numbers[1]);
  options.batch_size = kRows / numbers[2];
  options.lr = 1e-3;
  options.eps = 1e-3;  // Adam divides a gradient by itself, which makes rounding errors of small ones large
  options.lr_schedule = sluice::train::LrSchedule::kConstant;
  options.warmup_epochs = 0;
  options.logdir = folder + "/run";
  options.cpu_kernels = false;
  options.log_steps = 1;
  options.resume = {.from_last = true};
  sluice::train::train(options);
}

int run(const std::string& scenario, const std::string& mesh, const std::string& folder,
        const std::vector<int64_t>& numbers) {
  if (scenario == "words") {
    train_words(mesh, folder, numbers);
    return 0;
  }
  if (scenario == "epochs") {
    train_epochs(train_options(mesh, folder), numbers);
    return 0;
  }
  if (scenario == "trainer") {
    sluice::train::TrainOptions options = train_options(mesh, folder);
    options.epochs = mesh.empty() ? 2 : 1;
    auto result = sluice::train::train(options);
    if (!mesh.empty()) {
      sluice::shutdown();
      options.mesh = sluice::Mesh::parse("fsdp=4");
      options.resume = {.from_last = true};
      options.epochs = 2;
      result = sluice::train::train(options);
    }
    std::printf("result %.9g %.9g\n", result.loss, result.accuracy);
    return 0;
  }
  sluice::Options options;
  options.mesh = sluice::Mesh::parse(mesh);
  if (scenario == "long") options.xla.cpu_kernels = false;  // a mesh has none
  auto session = sluice::start(options);
  torch::manual_seed(5);
  if (scenario == "reads") {
    refusals(session);
    reads(session);
  } else if (scenario == "leader-reads") {
    const torch::Tensor x = sluice::shard(ramp({8, 6}), sluice::batch_layout(2));
    if (session.is_leader()) std::printf("%f\n", x.cpu().sum().item<double>());
    torch::Tensor y = x + 1;
    session.finish();
    std::printf("%f\n", y.sum().item<double>());
  } else if (scenario == "start") {
    start_without_values(session);
  } else if (scenario == "weights") {
    load_weights(session, folder);
  } else if (scenario == "long") {
    train_long(session, !mesh.empty());
  } else {
    train(session, mesh, folder);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  torch::set_num_threads(1);
  try {
    std::vector<int64_t> numbers;
    for (int i = 4; i < argc; ++i) numbers.push_back(std::stoll(argv[i]));
    return argc == 4 || argc == 7 ? run(argv[1], argv[2], argv[3], numbers) : 2;
  } catch (const std::exception& error) {
    std::printf("error: %s\n", error.what());
    return 1;
  }
}
