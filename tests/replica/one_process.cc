// One of several processes that train together, for processes_test.py: what goes wrong is the first argument.
//
//   train: trains a small net and prints "weights CHECKSUM" and metrics of its inputs on the leader;
//          "--sluice-devices=N" as usual
//   logs: a long training that logs each step, in which now one process is behind and now another
//   leader-reads: the leader alone reads a value in the middle of the training
//   other-number: process 1 takes another learning rate
//   later-number: it takes another one from the middle of a long training on
//   other-weights: process 1 begins with other weights
//   send-weights: the same, and process 0's are sent to all
//   dies: process 1 kills itself in the middle of the training
//   stops: process 1 stops itself as a debugger would; leader-stops: process 0 does
//   value-throws: what is called with a logged value throws, in all processes
//   throws: process 1 gives up with an error
#include <sluice/sluice.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>
#include <thread>

namespace {

int run(int argc, char** argv) {
  auto session = sluice::start(&argc, argv);
  const std::string what = argc > 1 ? argv[1] : "train";
  const bool second = session.process_index() == 1;
  torch::set_num_threads(1);
  torch::manual_seed(what.find("weights") != std::string::npos && second ? 2 : 1);
  auto model = torch::nn::Sequential(torch::nn::Linear(6, 16), torch::nn::ReLU(), torch::nn::Linear(16, 3));
  model->to(session.device());
  torch::manual_seed(1);
  const double rate = what == "other-number" && second ? 0.2 : 0.1;
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(rate).momentum(0.9));
  session.prepare(*model, optimizer, {.from_leader = what == "send-weights"});
  const int steps = what == "later-number" ? 100'000 : what == "logs" ? 100 : 12;
  sluice::metrics::Collection sums(
      session,
      {sluice::metrics::TopK(2), sluice::metrics::F1({.classes = 3}), sluice::metrics::ConfusionMatrix(3),
       sluice::metrics::Mean("mean"), sluice::metrics::ConfusionMatrix(3, false, 0).named("sparse")});
  for (int step = 0; step < steps; ++step) {
    if (what == "logs" && step % session.processes() == session.process_index())
      std::this_thread::sleep_for(std::chrono::milliseconds(step % 5));
    if (step == 7 && what == "later-number" && second) optimizer.param_groups()[0].options().set_lr(0.2);
    // The same batch in all processes; each takes its part.
    const torch::Tensor image = torch::randn({24, 6}), label = torch::randint(3, {24});
    auto loss =
        torch::nn::functional::cross_entropy(model->forward(sluice::split(image)), sluice::split(label));
    loss.backward();
    if (what == "train") {
      const torch::Tensor scores = sluice::split(image).slice(1, 0, 3), classes = sluice::split(label);
      sums.update(scores, classes);
      sums.add("mean", scores.square(), classes.unsqueeze(1));
    }
    session.step(optimizer, {.clip_norm = 1.0});
    session.log_every(what == "logs" ? 1 : 4, {{"Loss", loss.detach()}});
    if (step == 7 && what == "leader-reads" && session.is_leader())
      std::printf("%f\n", sluice::mean(loss.detach()).item<double>());
    if (step == 7 && what == "dies" && second) std::raise(SIGKILL);
    if (step == 7 && ((what == "stops" && second) || (what == "leader-stops" && session.is_leader())))
      std::raise(SIGSTOP);
    if (step == 7 && what == "value-throws")
      session.after_step({loss.detach()},
                         [](const auto&) { throw std::runtime_error("the value says that it is over"); });
    if (step == 7 && what == "throws" && second) throw std::runtime_error("the second process gives up");
  }
  session.finish();
  torch::Tensor sum = torch::zeros({});
  for (const auto& parameter : model->parameters()) sum = sum + parameter.detach().cpu().abs().sum();
  session.print("replicas ", session.replicas(), " weights ", sum.item<double>());
  const sluice::metrics::Values values = sums.compute();
  for (const auto& [name, number, count] : values.numbers)
    session.print("metric ", name, " ", number, " of ", count);
  for (const char* name : {"confusion", "sparse"}) {
    const torch::Tensor found = values.tensor(name);
    const torch::Tensor matrix = (found.is_sparse() ? found.to_dense() : found).flatten();
    std::string cells;
    for (int64_t i = 0; i < matrix.numel(); ++i) cells += " " + std::to_string(matrix[i].item<int64_t>());
    session.print("metric ", name, cells);
  }
  session.barrier();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
