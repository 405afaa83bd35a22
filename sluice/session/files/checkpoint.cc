#include "sluice/session/files/checkpoint.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "sluice/base/files/file.h"
#include "sluice/base/formats/json_bytes.h"
#include "sluice/base/formats/parse_json.h"
#include "sluice/base/span.h"
#include "sluice/base/text/shown_url.h"
#include "sluice/base/thread.h"
#include "sluice/session/files/save.h"
#include "sluice/session/finite.h"

namespace sluice::sessions {
namespace checkpoint_detail {

constexpr int kFormat = 1;
constexpr const char* kFiles[] = {"model.safetensors", "state.safetensors", "state.json"};

NamedTensors values(const std::vector<std::pair<std::string, Pending>>& pending) {
  NamedTensors result;
  for (const auto& [name, value] : pending) result.emplace_back(name, value.get().front());
  return result;
}

// A text with the name of `tensors`, but not of `others`, that is nearest to `name`; "" if none is near.
std::string nearest_name(const std::string& name, const NamedTensors& tensors, const NamedTensors& others) {
  std::set<std::string> known;
  for (const auto& [other, tensor] : tensors) known.insert(other);
  for (const auto& [other, tensor] : others) known.erase(other);
  const std::string near = base::nearest(name, {known.begin(), known.end()});
  return near.empty() ? std::string() : base::str("; the nearest name is ", near);
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

std::string beside(const std::string& folder, const char* what) {
  const std::filesystem::path path(folder);
  return (path.parent_path() / ("." + path.filename().string() + what)).string();
}

// Removes the temporary folders that runs left when they were killed while writing.
void remove_leftovers(const std::string& folder) {
  const std::string start = std::filesystem::path(beside(folder, ".writing-")).filename().string();
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(base::parent_path(folder), ignored)) {
    const std::string name = entry.path().filename().string();
    if (base::starts_with(name, start) && name != start + std::to_string(getpid()))
      std::filesystem::remove_all(entry.path(), ignored);
  }
}

// Puts `fresh` in the place of `folder`: with one system call if the file system can exchange two names;
// otherwise it moves the old checkpoint aside first, where find_checkpoint() looks for it.
base::Status replace(const std::string& fresh, const std::string& folder) {
  std::error_code ignored;
  if (!base::path_exists(folder)) {
    if (rename(fresh.c_str(), folder.c_str()) != 0) return base::fail_errno(errno, "rename to", folder);
    return base::sync_directory(base::parent_path(folder));
  }
  if (renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, folder.c_str(), RENAME_EXCHANGE) == 0) {
    SLUICE_OK(base::sync_directory(base::parent_path(folder)));
    std::filesystem::remove_all(fresh, ignored);  // the old checkpoint, since the exchange
    return {};
  }
  const std::string old = beside(folder, ".old");
  std::filesystem::remove_all(old, ignored);
  if (rename(folder.c_str(), old.c_str()) != 0) return base::fail_errno(errno, "rename", folder);
  if (rename(fresh.c_str(), folder.c_str()) != 0) return base::fail_errno(errno, "rename to", folder);
  SLUICE_OK(base::sync_directory(base::parent_path(folder)));
  std::filesystem::remove_all(old, ignored);
  return {};
}

// Gives a file a second name, in a new folder. Links need one file system that has them; a copy needs
// nothing.
base::Status link_or_copy(const std::string& from, const std::string& to) {
  if (::link(from.c_str(), to.c_str()) == 0) return {};
  std::error_code error;
  std::filesystem::copy_file(from, to, error);
  if (error) return base::fail_errno(error.value(), "copy a file of the checkpoint to", to);
  return base::sync_file(to);
}

// Gives all files of the checkpoint in `from` a second name in `folder`, which is new.
base::Status link_files(const Snapshot& snapshot, const std::string& from, const std::string& folder) {
  SLUICE_OK(base::make_directories(folder));
  std::vector<std::string> names(std::begin(kFiles), std::end(kFiles));
  for (const auto& [name, content] : snapshot.files) names.push_back(name);
  for (const std::string& name : names)
    SLUICE_OK(link_or_copy(base::join_path(from, name), base::join_path(folder, name)));
  return base::sync_directory(folder);
}

// The folders under their temporary names. A folder that has not taken its place is removed at the end.
class FreshFolders {
 public:
  FreshFolders() = default;
  FreshFolders(const FreshFolders&) = delete;
  FreshFolders& operator=(const FreshFolders&) = delete;
  ~FreshFolders() {
    std::error_code ignored;
    for (const std::string& path : paths_) std::filesystem::remove_all(path, ignored);
  }
  // Returns the temporary name for `folder`; nothing has this name.
  base::Result<std::string> add(const std::string& folder) {
    SLUICE_OK(base::make_directories(base::parent_path(folder)));
    remove_leftovers(folder);
    paths_.push_back(beside(folder, base::str(".writing-", getpid()).c_str()));
    std::error_code ignored;
    std::filesystem::remove_all(paths_.back(), ignored);
    return paths_.back();
  }
  const std::vector<std::string>& paths() const { return paths_; }

 private:
  std::vector<std::string> paths_;
};

base::Status write_files(const Snapshot& snapshot, const std::string& folder) {
  SLUICE_OK(base::make_directories(folder));
  SLUICE_OK(write_safetensors(base::join_path(folder, "model.safetensors"), values(snapshot.model)));
  SLUICE_OK(write_safetensors(base::join_path(folder, "state.safetensors"), values(snapshot.state)));
  for (const auto& [name, content] : snapshot.files)
    SLUICE_OK(base::write_file_atomically(base::join_path(folder, name), content));
  return base::write_file_atomically(base::join_path(folder, "state.json"), to_json(snapshot.progress));
}

}  // namespace checkpoint_detail

NamedTensors module_tensors(const torch::nn::Module& model) {
  NamedTensors result;
  for (const auto& item : model.named_parameters()) result.emplace_back(item.key(), item.value());
  for (const auto& item : model.named_buffers()) result.emplace_back(item.key(), item.value());
  return result;
}

base::Status load_module(torch::nn::Module& model, const NamedTensors& tensors, const std::string& source) {
  namespace detail = checkpoint_detail;
  std::map<std::string, at::Tensor> given(tensors.begin(), tensors.end());
  NamedTensors own = module_tensors(model);
  for (const auto& [name, tensor] : own) {
    auto found = given.find(name);
    if (found == given.end())
      return base::fail(Code::kInvalidArgument, source, " is not of this model: the tensor ", name,
                        " is missing in it", detail::nearest_name(name, tensors, own));
    if (found->second.sizes() != tensor.sizes())
      return base::fail(Code::kInvalidArgument, source, " is not of this model: the tensor ", name,
                        " has shape ", found->second.sizes(), " there, ", tensor.sizes(), " in the model");
    if (found->second.is_complex() && !tensor.is_complex())
      return base::fail(Code::kInvalidArgument, source, " is not of this model: the tensor ", name,
                        " has complex numbers there, real ones in the model");
  }
  std::set<std::string_view> known;
  for (const auto& [name, tensor] : own) known.insert(name);
  for (const auto& [name, tensor] : tensors) {
    if (known.count(name) == 0)
      return base::fail(Code::kInvalidArgument, source, " is not of this model: it has no tensor called ",
                        name, detail::nearest_name(name, own, tensors));
  }
  torch::NoGradGuard no_grad;
  for (auto& [name, tensor] : own) tensor.copy_(given[name]);
  return {};
}

Snapshot take_snapshot(const Backend& backend, const torch::nn::Module& model,
                       const std::vector<torch::optim::Optimizer*>& optimizers, const Progress& progress,
                       const NamedTensors& more, bool keep) {
  const base::Span span("snapshot");
  Snapshot snapshot;
  snapshot.progress = progress;
  std::set<std::string> trained;
  for (const auto& item : model.named_parameters())
    if (item.value().requires_grad()) trained.insert(item.key());
  for (const auto& [name, tensor] : module_tensors(model)) {
    snapshot.model.emplace_back(name, backend.fetch_in_turn(tensor, keep));
    if (trained.count(name) == 0) snapshot.may_be_infinite.insert(name);
  }
  for (auto* optimizer : optimizers)
    for (const auto& [name, tensor] : optimizer_tensors(*optimizer, model))
      snapshot.state.emplace_back(name, backend.fetch_in_turn(tensor, keep));
  for (const auto& [name, tensor] : more) {
    snapshot.state.emplace_back(name, backend.fetch_in_turn(tensor, keep));
    if (!checkpoint_detail::ends_with_one_of(trained, name)) snapshot.may_be_infinite.insert(name);
  }
  snapshot.state.emplace_back("random.cpu", backend.fetch(at::detail::getDefaultCPUGenerator().get_state()));
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
  detail::FreshFolders fresh;
  const auto each = [&](const auto& act) -> base::Status {
    for (size_t i = 0; i < folders.size(); ++i)
      if (const base::Status done = act(i); !done)
        return base::fail_at(done, "cannot write the checkpoint ", folders[i]);
    return {};
  };
  SLUICE_OK(each([&](size_t i) -> base::Status {
    SLUICE_TRY(const std::string path, fresh.add(folders[i]));
    return i == 0 ? detail::write_files(snapshot, path)
                  : detail::link_files(snapshot, fresh.paths().front(), path);
  }));
  return each([&](size_t i) { return detail::replace(fresh.paths()[i], folders[i]); });
}

std::string find_checkpoint(const std::string& folder) {
  if (base::path_exists(base::join_path(folder, "state.json"))) return folder;
  const std::string old = checkpoint_detail::beside(folder, ".old");
  return base::path_exists(base::join_path(old, "state.json")) ? old : "";
}

std::vector<std::string> missing_files(const std::vector<std::string>& names) {
  std::vector<std::string> missing;
  for (const char* const file : checkpoint_detail::kFiles)
    if (std::find(names.begin(), names.end(), file) == names.end()) missing.emplace_back(file);
  return missing;
}

base::Status check_whole(const std::string& folder, const std::string& source) {
  std::vector<std::string> there;
  for (const char* const file : checkpoint_detail::kFiles)
    if (base::path_exists(base::join_path(folder, file))) there.emplace_back(file);
  const auto missing = missing_files(there);
  if (missing.empty()) return {};
  const bool has_weights = !there.empty() && there.front() == checkpoint_detail::kFiles[0];
  return base::fail(
      Code::kDataLoss, source, " is not a whole checkpoint: ", base::join(missing, " and "),
      missing.size() == 1 ? " is missing" : " are missing",
      there.empty() ? std::string() : base::str(" beside ", base::join(there, " and ")),
      ": bring it back from a copy, or begin again without --resume, with another --logdir",
      has_weights ? base::str(" and --weights ", base::join_path(source, there.front())) : std::string());
}

base::Result<std::string> find_whole_checkpoint(const std::string& folder) {
  bool any = false;
  for (const char* const file : checkpoint_detail::kFiles)
    any = any || base::path_exists(base::join_path(folder, file));
  if (any) SLUICE_OK(check_whole(folder, folder));
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
  SLUICE_TRY(checkpoint.model, read_safetensors(base::join_path(found, "model.safetensors")));
  SLUICE_TRY(checkpoint.state, read_safetensors(base::join_path(found, "state.safetensors")));
  return checkpoint;
}

void restore_random(const Checkpoint& checkpoint) {
  for (const auto& [name, tensor] : checkpoint.state) {
    if (name != "random.cpu") continue;
    auto generator = at::detail::getDefaultCPUGenerator();
    generator.set_state(tensor);
  }
}

CheckpointWriter::~CheckpointWriter() {
  if (running_.valid()) running_.wait();
}

base::Status CheckpointWriter::write(Snapshot snapshot, std::vector<std::string> folders) {
  SLUICE_OK(wait());
  running_ = std::async(
      std::launch::async,
      [this, snapshot = std::move(snapshot), folders = std::move(folders)]() mutable -> base::Status {
        base::name_thread("sluice-save");
        try {
          settle(snapshot);
          SLUICE_OK(write_checkpoints(snapshot, folders));
          return publish_ ? publish_(folders) : base::Status();
        } catch (const Error& error) {
          return tl::unexpected<Error>(error);
        } catch (const std::exception& error) {
          return base::fail(Code::kUnknown, "cannot write the checkpoint: ", error.what());
        }
      });
  return {};
}

base::Status CheckpointWriter::wait() {
  if (!running_.valid()) return {};
  return running_.get();
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
