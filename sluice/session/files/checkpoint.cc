#include "sluice/session/files/checkpoint.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "sluice/base/files/file.h"
#include "sluice/base/formats/json_bytes.h"
#include "sluice/base/formats/parse_json.h"
#include "sluice/base/span.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/shown_url.h"
#include "sluice/base/text/strings.h"
#include "sluice/session/files/fresh_folders.h"
#include "sluice/session/files/save.h"
#include "sluice/session/finite.h"
#include "sluice/session/pieces/piece_index.h"
#include "sluice/session/pieces/piece_writers.h"
#include "sluice/session/stored/stored_tensors.h"

namespace sluice::sessions {
namespace checkpoint_detail {

constexpr int kFormat = 1;
constexpr const char* kFiles[] = {"model.safetensors", "state.safetensors", "state.json"};

NamedTensors values(const std::vector<std::pair<std::string, Pending>>& pending) {
  NamedTensors result;
  for (const auto& [name, value] : pending) result.emplace_back(name, value.get().front());
  return result;
}

// Whether a name ends with a parameter's name: "callback.average.fc.weight" is kept for fc.weight.
bool ends_with_one_of(const std::set<std::string>& parameters, const std::string& name) {
  for (size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1))
    if (parameters.count(name.substr(dot + 1)) > 0) return true;
  return false;
}

std::string to_json(const Progress& progress) {
  nlohmann::json json = {{"format", kFormat},
                         {"model", progress.model},
                         {"epoch", progress.epoch},
                         {"batch", progress.batch},
                         {"step", progress.step},
                         {"monitor", progress.monitor},
                         {"best", progress.best ? nlohmann::json(*progress.best) : nlohmann::json()},
                         {"value", progress.value ? nlohmann::json(*progress.value) : nlohmann::json()},
                         {"callbacks", progress.callbacks},
                         {"seconds", progress.seconds},
                         {"global_rates", progress.global_rates},
                         {"rated_epochs", progress.rated_epochs},
                         {"config", base::shown_urls(progress.config)},
                         {"input", progress.input},
                         {"skipped", progress.skipped},
                         {"tested", progress.tested},
                         {"due",
                          {{"test", progress.due.test},
                           {"within_epoch", progress.due.within_epoch},
                           {"stop", progress.due.stop}}}};
  return base::with_json_texts(json).dump(2) + "\n";
}

// Returns a whole number of at least 0: a negative number or a fraction would be no place in the run.
int64_t count_at(const nlohmann::json& json, const char* name) {
  const nlohmann::json& value = json.at(name);
  if (!value.is_number_unsigned() || value.get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()})
    throw nlohmann::json::other_error::create(
        501, base::str(name, " is ", value.dump(), ", expected 0 or more"), &json);
  return value.get<int64_t>();
}

base::Result<Progress> from_json(const std::string& text, const std::string& path) {
  const auto json = base::parse_json(text);
  if (!json.is_object()) return base::fail(Code::kDataLoss, path, ": expected a JSON object");
  if (const auto format = json.find("format"); format == json.end() || *format != kFormat)
    return base::fail(Code::kUnimplemented, path, ": a checkpoint of format ",
                      format == json.end() ? "0" : format->dump().substr(0, 100),
                      "; this program reads format ", kFormat);
  const auto text_of = [](const nlohmann::json& value) {
    return base::bytes_of_json(value.get<std::string>());
  };
  Progress progress;
  try {
    progress.model = text_of(json.at("model"));
    progress.epoch = count_at(json, "epoch");
    progress.batch = count_at(json, "batch");
    progress.step = count_at(json, "step");
    progress.monitor = text_of(json.at("monitor"));
    if (const auto& best = json.at("best"); !best.is_null()) progress.best = best.get<double>();
    if (const auto& value = json.at("value"); !value.is_null()) progress.value = value.get<double>();
    progress.callbacks = base::with_bytes(json.at("callbacks")).get<std::map<std::string, std::string>>();
    progress.seconds = json.at("seconds");
    progress.global_rates = json.at("global_rates");
    progress.rated_epochs = count_at(json, "rated_epochs");
    progress.config = text_of(json.at("config"));
    progress.input = text_of(json.at("input"));
    progress.skipped = count_at(json, "skipped");
    const nlohmann::json& due = json.at("due");
    progress.due = {.test = due.at("test").get<bool>(),
                    .within_epoch = due.at("within_epoch").get<bool>(),
                    .stop = text_of(due.at("stop"))};
    progress.tested = json.at("tested").get<int64_t>();
  } catch (const nlohmann::json::exception& error) {
    const std::string what = error.what();  // begins with the library's own name for the error, in brackets
    return base::fail(Code::kDataLoss, path, " is not what a checkpoint has: ",
                      what.substr(std::min(what.find("] ") + 2, what.size())));
  }
  return progress;
}

base::Status write_files(const Snapshot& snapshot, const std::string& folder) {
  SLUICE_OK(base::make_directories(folder));
  SLUICE_OK(write_safetensors(base::join_path(folder, "model.safetensors"), values(snapshot.model)));
  SLUICE_OK(write_safetensors(base::join_path(folder, "state.safetensors"), values(snapshot.state)));
  return write_progress(snapshot, folder);
}

// Returns the names of all files of a checkpoint of this snapshot.
std::vector<std::string> file_names(const Snapshot& snapshot) {
  std::vector<std::string> names(std::begin(kFiles), std::end(kFiles));
  for (const auto& [name, content] : snapshot.files) names.push_back(name);
  return names;
}

// Returns the tensors of one kind, from one file or from pieces.
base::Result<NamedTensors> read_kind(const std::string& folder, const char* kind) {
  const std::string index = base::join_path(folder, index_name(kind));
  const std::string one = base::join_path(folder, base::str(kind, ".safetensors"));
  return !base::path_exists(one) && base::path_exists(index) ? read_all_stored(index) : read_safetensors(one);
}

// Takes the values of a snapshot: whole, or the pieces that this process writes.
class Taker {
 public:
  Taker(const Backend& backend, Snapshot& snapshot) : backend_(backend), snapshot_(snapshot) {
    if (backend.spans_processes()) snapshot.pieces.emplace();
  }
  void model(const std::string& name, const at::Tensor& tensor, bool may_be_infinite) {
    take(kModel, name, tensor, may_be_infinite);
  }
  void state(const std::string& name, const at::Tensor& tensor, bool may_be_infinite) {
    take(kState, name, tensor, may_be_infinite);
  }

  // Divides the blocks of all values among the processes, and starts the copies of the blocks of this
  // process. All processes take the same tensors, so they divide alike.
  void finish() {
    const auto pieces = divide_among(blocks_, backend_.processes());
    for (size_t i = 0; i < given_.size(); ++i) {
      const Given& given = given_[i];
      const device::Blocks& blocks = blocks_[i];
      auto& tensors = (given.kind == kModel ? snapshot_.pieces->model : snapshot_.pieces->state).tensors;
      PiecedTensor& whole = tensors[given.name];
      whole.type = blocks.type;
      whole.sizes = blocks.sizes;
      std::map<size_t, Pending> own;  // the blocks that this process writes, or parts of them
      for (const WrittenPiece& piece : pieces[i]) {
        const std::string name = piece_name(given.name, piece.start, piece.sizes, blocks.sizes);
        whole.pieces.push_back(
            {name, piece.start, piece.sizes, part_name(given.kind, piece.process, backend_.processes())});
        if (piece.process != backend_.process()) continue;
        const device::BlockPlace& place = blocks.places[piece.block];
        if (own.count(piece.block) == 0)
          own[piece.block] = backend_.fetch_block(given.tensor, blocks, piece.block);
        const Pending& block = own[piece.block];
        if (given.may_be_infinite) snapshot_.may_be_infinite.insert(name);
        values(given.kind)
            .emplace_back(
                name, piece.sizes == place.sizes ? block : backend_.fetch_part(block, part_in(place, piece)));
      }
    }
  }

 private:
  // A value whose blocks are in `blocks_`.
  struct Given {
    const char* kind;
    std::string name;
    at::Tensor tensor;
    bool may_be_infinite;
  };

  void take(const char* kind, const std::string& name, const at::Tensor& tensor, bool may_be_infinite) {
    if (may_be_infinite) snapshot_.may_be_infinite.insert(name);
    if (!snapshot_.pieces) {
      values(kind).emplace_back(name, backend_.fetch(tensor));
      return;
    }
    given_.push_back({kind, name, tensor, may_be_infinite});
    blocks_.push_back(backend_.blocks(tensor));
  }

  // Returns where a piece is in its block.
  static device::LocalBlock part_in(const device::BlockPlace& place, const WrittenPiece& piece) {
    device::LocalBlock part{piece.start, piece.sizes};
    for (size_t d = 0; d < part.start.size(); ++d) part.start[d] -= place.start[d];
    return part;
  }

  std::vector<std::pair<std::string, Pending>>& values(const char* kind) const {
    return kind == kModel ? snapshot_.model : snapshot_.state;
  }

  const Backend& backend_;
  Snapshot& snapshot_;
  std::vector<Given> given_;
  std::vector<device::Blocks> blocks_;  // [given_]
};

}  // namespace checkpoint_detail

Snapshot take_snapshot(const Backend& backend, const torch::nn::Module& model,
                       const std::vector<torch::optim::Optimizer*>& optimizers, const Progress& progress,
                       const NamedTensors& more) {
  const base::Span span("snapshot");
  Snapshot snapshot;
  snapshot.progress = progress;
  checkpoint_detail::Taker taker(backend, snapshot);
  std::set<std::string> trained;
  for (const auto& item : model.named_parameters())
    if (item.value().requires_grad()) trained.insert(item.key());
  for (const auto& [name, tensor] : module_tensors(model))
    taker.model(name, tensor, trained.count(name) == 0);
  for (auto* optimizer : optimizers)
    for (const auto& [name, tensor] : optimizer_tensors(*optimizer, model)) taker.state(name, tensor, false);
  for (const auto& [name, tensor] : more)
    taker.state(name, tensor, !checkpoint_detail::ends_with_one_of(trained, name));
  taker.state("random.cpu", at::detail::getDefaultCPUGenerator().get_state(), false);
  if (snapshot.pieces) taker.finish();
  return snapshot;
}

void settle(Snapshot& snapshot) {
  for (auto* part : {&snapshot.model, &snapshot.state})
    for (auto& [name, value] : *part) value = value.first();
}

base::Status write_checkpoint(const Snapshot& snapshot, const std::string& folder) {
  return write_checkpoints(snapshot, {folder});
}

base::Status write_checkpoints(const Snapshot& snapshot, const std::vector<std::string>& folders) {
  namespace detail = checkpoint_detail;
  const base::Span span("write a checkpoint");
  const std::string& first = folders.front();
  if (const base::Status finite = check_finite(snapshot); !finite)
    return base::fail_at(finite, "the checkpoint ", first, " was not written");
  FreshFolders fresh;
  const auto each = [&](const auto& act) -> base::Status {
    for (size_t i = 0; i < folders.size(); ++i)
      if (const base::Status done = act(i); !done)
        return base::fail_at(done, "cannot write the checkpoint ", folders[i]);
    return {};
  };
  SLUICE_OK(each([&](size_t i) -> base::Status {
    SLUICE_TRY(const std::string path, fresh.add(folders[i]));
    return i == 0 ? detail::write_files(snapshot, path)
                  : link_files(detail::file_names(snapshot), fresh.paths().front(), path);
  }));
  return each([&](size_t i) { return put_in_place(fresh.paths()[i], folders[i]); });
}

base::Status write_progress(const Snapshot& snapshot, const std::string& folder) {
  for (const auto& [name, content] : snapshot.files)
    SLUICE_OK(base::write_file_atomically(base::join_path(folder, name), content));
  return base::write_file_atomically(base::join_path(folder, "state.json"),
                                     checkpoint_detail::to_json(snapshot.progress));
}

std::string find_checkpoint(const std::string& folder) {
  if (base::path_exists(base::join_path(folder, "state.json"))) return folder;
  const std::string old = hidden_name(folder, ".old");
  return base::path_exists(base::join_path(old, "state.json")) ? old : "";
}

std::vector<std::string> missing_files(const std::vector<std::string>& names) {
  const auto has = [&](const char* file) {
    return std::find(names.begin(), names.end(), file) != names.end();
  };
  if (!has(checkpoint_detail::kFiles[0]) && has_parts(names)) return missing_parts(names);
  std::vector<std::string> missing;
  for (const char* const file : checkpoint_detail::kFiles)
    if (!has(file)) missing.emplace_back(file);
  return missing;
}

namespace checkpoint_detail {

// Returns which of a checkpoint's files are in a folder; none if there is no such folder.
std::vector<std::string> files_there(const std::string& folder) {
  std::vector<std::string> there;
  for (const char* const file : kFiles)
    if (base::path_exists(base::join_path(folder, file))) there.emplace_back(file);
  const auto names = base::list_directory(folder);
  for (const std::string& name : names ? *names : std::vector<std::string>())
    if (has_parts({name})) there.push_back(name);
  return there;
}

}  // namespace checkpoint_detail

base::Status check_whole(const std::string& folder, const std::string& source) {
  std::vector<std::string> there = checkpoint_detail::files_there(folder);
  const auto missing = missing_files(there);
  if (missing.empty()) return {};
  constexpr size_t kNamed = 8;
  const bool has_weights = !there.empty() && there.front() == checkpoint_detail::kFiles[0];
  if (there.size() > kNamed) there.resize(kNamed);
  return base::fail(
      Code::kDataLoss, source, " is not a whole checkpoint: ", base::join(missing, " and "),
      missing.size() == 1 ? " is missing" : " are missing",
      there.empty() ? std::string() : base::str(" beside ", base::join(there, " and ")),
      ": bring it back from a copy, or begin again without --resume, with another --logdir",
      has_weights ? base::str(" and --weights ", base::join_path(source, there.front())) : std::string());
}

base::Result<std::string> find_whole_checkpoint(const std::string& folder) {
  if (!checkpoint_detail::files_there(folder).empty()) SLUICE_OK(check_whole(folder, folder));
  return find_checkpoint(folder);
}

base::Result<Progress> read_progress(const std::string& folder) {
  const std::string path = base::join_path(folder, "state.json");
  SLUICE_TRY(std::string text, base::read_file(path));
  return checkpoint_detail::from_json(text, path);
}

base::Result<Checkpoint> read_checkpoint(const std::string& folder) {
  SLUICE_TRY(const std::string found, find_whole_checkpoint(folder));
  if (found.empty())
    return base::fail(Code::kNotFound, "there is no checkpoint in ", folder, " (expected model.safetensors, ",
                      "state.safetensors and state.json)");
  Checkpoint checkpoint;
  SLUICE_TRY(checkpoint.progress, read_progress(found));
  SLUICE_TRY(checkpoint.model, read_model(found));
  SLUICE_TRY(checkpoint.state, checkpoint_detail::read_kind(found, kState));
  return checkpoint;
}

base::Result<NamedTensors> read_model(const std::string& folder) {
  return checkpoint_detail::read_kind(folder, kModel);
}

void restore_random(const Checkpoint& checkpoint) {
  for (const auto& [name, tensor] : checkpoint.state) {
    if (name != "random.cpu") continue;
    auto generator = at::detail::getDefaultCPUGenerator();
    generator.set_state(tensor);
  }
}

}  // namespace sluice::sessions

namespace sluice {

void save(const torch::nn::Module& model, const std::string& path) {
  sessions::NamedTensors tensors;
  for (const auto& [name, tensor] : sessions::module_tensors(model))
    tensors.emplace_back(name, tensor.detach().cpu());
  const bool python =
      base::ends_with(path, ".pt") || base::ends_with(path, ".pth") || base::ends_with(path, ".bin");
  base::value_or_throw(python ? sessions::write_torch_file(path, tensors)
                              : sessions::write_safetensors(path, tensors));
}

void load(torch::nn::Module& model, const std::string& path) {
  auto tensors = base::value_or_throw(sessions::read_tensors(path));
  base::value_or_throw(sessions::load_module(model, tensors, path));
}

}  // namespace sluice
