#include "sluice/train/run.h"

#include <cmath>
#include <csignal>
#include <iomanip>
#include <nlohmann/json.hpp>

#include "sluice/base/clock.h"
#include "sluice/base/file.h"
#include "sluice/base/log.h"
#include "sluice/base/random.h"
#include "sluice/train/optimizers.h"

namespace sluice::train {
namespace run_detail {

std::string fixed(double value, int digits) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(digits) << value;
  return std::move(out).str();
}

}  // namespace run_detail

int64_t rows_per_replica(const TrainOptions& options, int replicas) {
  if (options.global_batch_size == 0) return options.batch_size;
  const int64_t parts = replicas * options.accumulate;
  if (options.global_batch_size % parts != 0)
    throw Error(Code::kInvalidArgument,
                base::str("--global-batch-size ", options.global_batch_size, " is no multiple of ", replicas,
                          " replicas × accumulate ", options.accumulate, " = ", parts));
  return options.global_batch_size / parts;
}

Run::Run(const TrainOptions& options, Session& session, const Input& train, const Input* test,
         torch::nn::Module& model, Trainer::Forward forward)
    : options_(options),
      session_(session),
      train_(train),
      test_(test),
      model_(model),
      forward_(std::move(forward)),
      console_(!session.is_leader() ? ConsoleMode::kSilent
               : options.json       ? ConsoleMode::kJson
                                    : ConsoleMode::kText),
      steps_per_epoch_(train.batches() / options.accumulate),
      started_(base::monotonic_seconds()) {
  if (options.steps_per_epoch > 0) steps_per_epoch_ = std::min(steps_per_epoch_, options.steps_per_epoch);
  if (steps_per_epoch_ == 0)
    throw Error(Code::kInvalidArgument, base::str("an epoch has ", train.batches(),
                                                  " batches, less than --accumulate ", options.accumulate));
  schedule_ = {options.lr_schedule,
               options.lr,
               options.warmup_epochs,
               options.lr_every_epochs,
               options.lr_divisor,
               options.min_lr,
               static_cast<double>(options.epochs),
               static_cast<double>(steps_per_epoch_)};
  base::value_or_throw(check(schedule_));
  progress_.model = options.model;
  progress_.config = options.config;
  if (RemoteFolder::is_remote(options.logdir)) {
    remote_ = base::value_or_throw(RemoteFolder::open(options.logdir, session.is_leader()));
    writer_.set_publish(
        [this](const std::vector<std::string>& folders) { return remote_->publish(folders); });
  }
}

std::string Run::folder(const char* name) const {
  return base::join_path(remote_ ? remote_->local() : options_.logdir, name);
}

std::string Run::find_start() {
  std::string from = options_.resume;
  if (from == "auto" && remote_) {
    from = base::value_or_throw(remote_->has_checkpoint()) ? options_.logdir : "";
  } else if (from == "auto") {
    from = find_checkpoint(folder("last"));
  }
  if (!RemoteFolder::is_remote(from)) return from;
  fetched_ = base::value_or_throw(base::TemporaryDirectory::create("sluice-resume"));
  base::value_or_throw(fetch_checkpoint(from, fetched_->path()));
  return fetched_->path();
}
double Run::learning_rate_now() const { return learning_rate(schedule_, progress_.step); }

void Run::restore() {
  const std::string from = find_start();
  if (!from.empty()) {
    restored_ = base::value_or_throw(read_checkpoint(from));
    base::value_or_throw(load_module(model_, restored_->model, from));
    const std::string name = progress_.model, config = progress_.config;
    progress_ = restored_->progress;
    progress_.model = name;
    progress_.config = config;
    earlier_seconds_ = progress_.seconds;
    console_.line(base::str("Going on from ",
                            fetched_ ? options_.resume == "auto" ? options_.logdir : options_.resume : from,
                            ": epoch ", progress_.epoch + 1, ", step ", progress_.step));
    return;
  }
  if (remote_ ? base::value_or_throw(remote_->has_checkpoint()) : !find_checkpoint(folder("last")).empty())
    base::warn(shown("last"),
               " is a checkpoint of an earlier run and will be replaced: --resume would go on from it");
  if (!options_.weights.empty()) {
    base::value_or_throw(
        load_module(model_, base::value_or_throw(read_tensors(options_.weights)), options_.weights));
  }
}

void Run::prepare() {
  model_.to(session_.device());
  optimizer_ = make_optimizer(options_, model_.parameters());
  if (restored_) {
    base::value_or_throw(load_optimizer(*optimizer_, model_, restored_->state, options_.resume));
    restore_random(*restored_);
    restored_.reset();
    fetched_.reset();
  }
  session_.prepare(model_, *optimizer_);
  if (session_.is_leader())
    metrics_ = base::value_or_throw(
        MetricsWriter::create(remote_ ? remote_->local() : options_.logdir, progress_.step));
}

void Run::announce() {
  const int64_t rows = rows_per_replica(options_, session_.replicas());
  console_.line(base::str("batch ", rows, " × ", session_.replicas(), " replicas × accumulate ",
                          options_.accumulate, " = ", rows * session_.replicas() * options_.accumulate));
  int64_t weights = 0;
  for (const auto& parameter : model_.parameters()) weights += parameter.numel();
  console_.line(base::str("model ", options_.model, ": ", weights, " weights on ", session_.device(), ", ",
                          options_.precision, "; train ", train_.samples(), " samples, test ",
                          test_ ? test_->samples() : 0, "; ", steps_per_epoch_, " steps an epoch, ",
                          options_.epochs, " epochs; ", train_.describe_remainder()));
}

TrainResult Run::operator()() {
  restore();
  prepare();
  announce();
  while (progress_.epoch < options_.epochs) {
    if (!train_epoch()) return stopped();
    end_of_epoch();
    session_.sync_buffers(model_);
    const double before = progress_.best_accuracy;
    if (!test_epoch()) return stopped();
    save(progress_.best_accuracy > before);
  }
  return end();
}

bool Run::train_epoch() {
  model_.train();
  rate_.emplace(base::monotonic_seconds());
  auto feed = train_.feed(session_, progress_.epoch, progress_.batch * options_.accumulate, progress_.input);
  int64_t steps = train_.batches(progress_.epoch) / options_.accumulate;
  if (options_.steps_per_epoch > 0) steps = std::min(steps, options_.steps_per_epoch);
  while (progress_.batch < steps) {
    set_learning_rate(*optimizer_, learning_rate_now());
    // Random numbers depend on the seed and the step alone: a resumed run draws the same ones.
    torch::manual_seed(base::key({options_.seed, static_cast<uint64_t>(progress_.step)}));
    torch::Tensor loss;
    for (int64_t i = 0; i < options_.accumulate; ++i) {
      auto batch = feed.next();
      if (!batch)
        throw Error(Code::kDataLoss, "the training set ended before its epoch: did its shards change?");
      std::optional<Accumulate> more;
      if (i + 1 < options_.accumulate) more.emplace(session_);
      loss = train_batch(*batch);
      rate_->add(batch->count);
      session_.step(*optimizer_, {.clip_norm = options_.clip_norm});
    }
    const bool last = progress_.batch + 1 == steps, stop = interrupted();
    after_update(loss, last, stop);
    if (stop) return false;
  }
  report_input(feed.statistics());
  return true;
}

// Says when the device waited for data, and where the data was held up.
void Run::report_input(const FeedStatistics& feed) {
  if (!feed.has_data) return;
  const auto percent = [](double share) { return std::lround(100 * share); };
  if (feed.waiting >= 0.1)
    console_.line(base::str("Input-bound: ", percent(feed.waiting),
                            " % of the epoch was waiting for data. The narrowest stage is ", feed.narrowest,
                            " (", data::summary(feed.data), "; upload ", percent(feed.uploading), " %)."));
}

torch::Tensor Run::batch_loss(const Batch& batch) {
  const bool mixed = options_.mixup > 0 || options_.cutmix > 0, by_row = mixed || batch.mask.defined();
  auto cross_entropy =
      torch::nn::functional::CrossEntropyFuncOptions().label_smoothing(options_.label_smoothing);
  if (by_row) cross_entropy.reduction(torch::kNone);
  const torch::Tensor output = forward_(batch.image);
  torch::Tensor loss = torch::nn::functional::cross_entropy(output, batch.label, cross_entropy);
  if (mixed) {
    // The last two columns of a mixed batch (data/batch.h).
    const torch::Tensor &other = batch.columns[batch.columns.size() - 2], &own = batch.columns.back();
    loss = own * loss + (1 - own) * torch::nn::functional::cross_entropy(output, other, cross_entropy);
  }
  if (!by_row) return loss;
  if (!batch.mask.defined()) return loss.mean();
  // Padding counts for nothing: the mean over the replicas is that over all samples of the batch.
  const torch::Tensor samples = batch.mask.to(loss.scalar_type());
  return (loss * samples).sum() / samples.sum().clamp_min(1) * batch.weight;
}

torch::Tensor Run::train_batch(Batch& batch) {
  torch::Tensor loss;
  {
    std::optional<Autocast> autocast;
    if (options_.precision == "bf16") autocast.emplace(session_.device());
    loss = batch_loss(batch);
  }
  if (options_.accumulate > 1)
    (loss / static_cast<double>(options_.accumulate)).backward();
  else
    loss.backward();
  return loss.detach();
}

void Run::after_update(const torch::Tensor& loss, bool last, bool stop) {
  const double lr = learning_rate_now();
  ++progress_.step;
  ++progress_.batch;
  const bool log = progress_.step % options_.log_steps == 0;
  const bool save_now = options_.save_steps > 0 && progress_.step % options_.save_steps == 0 && !last;
  console_.progress(base::str("Epoch ", progress_.epoch + 1), progress_.batch, steps_per_epoch_,
                    base::str("Loss=", run_detail::fixed(last_loss_, 5)));
  if (!log && !last && !save_now && !stop) return;
  const double now = base::monotonic_seconds();
  rate_->mark(now);
  auto deliver = [=, this, alive = std::weak_ptr<char>(alive_), epoch = progress_.epoch + 1,
                  step = progress_.step, batch = progress_.batch,
                  rate = rate_->rate() / session_.local_replicas(), global = rate_->global_rate(now),
                  time = base::local_time()](std::vector<torch::Tensor> values) {
    if (alive.expired()) return;
    const double mean = values[0].to(torch::kDouble).mean().item<double>();
    report(mean, epoch, step, batch, rate, global, lr, time, log);
  };
  session_.after_step({loss}, std::move(deliver));
  if (options_.check_replicas > 0 && progress_.step % options_.check_replicas == 0)
    session_.check_replicas(model_);
  if (save_now) {
    session_.sync_buffers(model_);
    session_.finish();  // the loss is checked before its weights replace a good checkpoint
    save(false);
  }
}

void Run::report(double loss, int64_t epoch, int64_t step, int64_t batch, double rate, double global_rate,
                 double lr, const std::string& time, bool log) {
  last_loss_ = loss;
  if (!std::isfinite(loss)) {
    const std::string last = find_checkpoint(folder("last"));
    throw Error(Code::kOutOfRange,
                base::str("the loss is ", loss, " at step ", step, " (epoch ", epoch, ", batch ", batch,
                          "). Try a smaller --lr (", lr, " now), --warmup-epochs or --clip-norm. ",
                          last.empty() ? std::string("There is no checkpoint yet.")
                                       : base::str("The last good checkpoint is ",
                                                   remote_ ? shown("last") : last, ".")));
  }
  if (!log) return;
  console_.line(base::str(
      "| Training Device=", session_.device(), "/", session_.process_index(), " Epoch=", epoch,
      " Step=", batch, " Loss=", run_detail::fixed(loss, 5), " Rate=", run_detail::fixed(rate, 2),
      " GlobalRate=", run_detail::fixed(global_rate / session_.local_replicas(), 2), " Time=", time));
  Measurement row;
  row.split = "train";
  row.epoch = epoch;
  row.step = step;
  row.loss = loss;
  row.rate = rate;
  row.global_rate = global_rate;
  row.learning_rate = lr;
  write(row);
}

// The examples a second of all processes together.
double Run::global_rate(double now) {
  double total = 0;
  for (const std::string& one : session_.gather_on_host("rate", std::to_string(rate_->global_rate(now))))
    total += std::stod(one);
  return total;
}

void Run::write(const Measurement& row) {
  if (session_.is_leader()) base::value_or_throw(metrics_->write(row));
  console_.json(json_text(row, base::wall_seconds()));
}

void Run::end_of_epoch() {
  session_.finish();
  const double now = base::monotonic_seconds();
  const double rate = global_rate(now);
  console_.line(base::str("Epoch ", progress_.epoch + 1, " train end ", base::local_time(),
                          ", Epoch Time=", base::duration_text_whole(now - rate_->start()),
                          ", Replica Train Samples=", rate_->examples() / session_.local_replicas(),
                          ", Reduced GlobalRate=", run_detail::fixed(rate, 2)));
  progress_.global_rates += rate;
  ++progress_.rated_epochs;
  ++progress_.epoch;
  progress_.batch = 0;
  progress_.seconds = earlier_seconds_ + now - started_;
}

bool Run::test_epoch() {
  if (test_ == nullptr) return !interrupted();
  model_.eval();
  auto forward = [this](torch::Tensor image) {
    std::optional<Autocast> autocast;
    if (options_.precision == "bf16") autocast.emplace(session_.device());
    return forward_(std::move(image));
  };
  Evaluation test = evaluate(
      session_, forward, test_->feed(session_, 0, 0),
      // Many processes do not stop in the middle: they would have to agree on the batch.
      [this] { return session_.processes() == 1 && SignalGuard::pending() != 0; },
      [this](int64_t done) { console_.progress("Test ", done, test_->batches(), ""); });
  if (test.stopped) return false;
  last_accuracy_ = test.accuracy();
  progress_.best_accuracy = std::max(progress_.best_accuracy, last_accuracy_);
  console_.line(base::str("Epoch ", progress_.epoch, " test end ", base::local_time(),
                          ", Samples=", test.samples, ", Loss=", run_detail::fixed(test.loss, 5),
                          ", Accuracy=", run_detail::fixed(last_accuracy_, 2), "%"));
  Measurement row;
  row.split = "test";
  row.epoch = progress_.epoch;
  row.step = progress_.step;
  row.loss = test.loss;
  row.accuracy = last_accuracy_;
  write(row);
  return true;
}

void Run::save(bool best) {
  if (!session_.is_leader()) return;
  progress_.seconds = earlier_seconds_ + base::monotonic_seconds() - started_;
  progress_.input = train_.state(session_, progress_.epoch, progress_.batch * options_.accumulate);
  Snapshot snapshot = take_snapshot(session_.backend(), model_, *optimizer_, progress_);
  std::vector<std::string> folders = {folder("last")};
  if (best) folders.push_back(folder("best"));
  base::value_or_throw(writer_.write(std::move(snapshot), std::move(folders)));
}

TrainResult Run::stopped() {
  const int signal = SignalGuard::pending();
  session_.sync_buffers(model_);
  session_.finish();
  save(false);
  base::value_or_throw(writer_.wait());
  if (remote_) base::value_or_throw(remote_->finish());
  session_.barrier();
  console_.line(base::str(signal == SIGINT ? "Interrupted" : "Terminated", ": saved ", shown("last"),
                          " at epoch ", progress_.epoch + 1, ", step ", progress_.step,
                          ". Go on with --resume."));
  TrainResult result;
  result.exit_status = signal == SIGINT ? kInterrupted : kTerminated;
  result.steps = progress_.step;
  result.accuracy = last_accuracy_;
  result.best_accuracy = progress_.best_accuracy;
  result.loss = last_loss_;
  return result;
}

TrainResult Run::end() {
  base::value_or_throw(writer_.wait());
  if (remote_) base::value_or_throw(remote_->finish());
  session_.barrier();  // the checkpoint is complete before any process ends
  TrainResult result;
  result.steps = progress_.step;
  result.accuracy = last_accuracy_;
  result.best_accuracy = progress_.best_accuracy;
  result.loss = last_loss_;
  if (progress_.rated_epochs > 0)
    result.examples_per_second = progress_.global_rates / static_cast<double>(progress_.rated_epochs);
  const double seconds = earlier_seconds_ + base::monotonic_seconds() - started_;
  console_.line(base::str("Total Train Time: ", base::duration_text_whole(seconds)));
  if (test_ != nullptr)
    console_.line(base::str("Max Accuracy: ", run_detail::fixed(progress_.best_accuracy, 2), "%"));
  console_.line(base::str("Avg. Global Rate: ", run_detail::fixed(result.examples_per_second, 2),
                          " examples per second"));
  console_.line(
      base::str("Checkpoints: ", shown("last"), test_ ? base::str(" and ", shown("best")) : std::string(),
                "; metrics: ", shown("metrics.csv"), "; curves: tensorboard --logdir ", options_.logdir));
  if (test_ != nullptr && options_.target_accuracy > 0 &&
      progress_.best_accuracy < options_.target_accuracy) {
    console_.line(base::str("The target accuracy of ", run_detail::fixed(options_.target_accuracy, 2),
                            "% was missed."));
    result.exit_status = kTargetMissed;
  }
  nlohmann::json summary = {{"event", "end"},
                            {"steps", result.steps},
                            {"seconds", seconds},
                            {"best_accuracy", result.best_accuracy},
                            {"examples_per_second", result.examples_per_second},
                            {"checkpoint", shown("last")},
                            {"exit_status", result.exit_status}};
  console_.json(summary.dump());
  return result;
}

}  // namespace sluice::train
