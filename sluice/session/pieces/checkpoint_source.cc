#include "sluice/session/pieces/checkpoint_source.h"

#include <map>
#include <utility>
#include <vector>

#include "sluice/base/files/file.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/cloud/object_reader.h"
#include "sluice/device/sharding/blocks.h"
#include "sluice/device/sharding/shard.h"
#include "sluice/session/files/module_values.h"
#include "sluice/session/files/remote_checkpoint.h"
#include "sluice/session/pieces/piece_index.h"
#include "sluice/session/stored/source_files.h"

namespace sluice::sessions {
namespace checkpoint_source_detail {

base::Result<bool> exists(const std::string& path) {
  if (is_elsewhere(path)) return object_exists(path);
  return base::path_exists(path);
}

// Returns the file with a checkpoint's tensors of one kind, or the index of their pieces.
base::Result<std::string> file_of(const std::string& from, const char* kind) {
  const std::string one = base::str(from, "/", kind, ".safetensors");
  const std::string index = base::str(from, "/", index_name(kind));
  SLUICE_TRY(const bool has_one, exists(one));
  SLUICE_TRY(const bool has_index, exists(index));
  return !has_one && has_index ? index : one;
}

base::Result<Progress> progress_of(const std::string& from) {
  if (!is_elsewhere(from)) return read_progress(from);
  SLUICE_TRY(const auto folder, base::TemporaryDirectory::create("sluice-resume"));
  SLUICE_OK(cloud::download(from + "/state.json", folder.path("state.json")));
  return read_progress(folder.path());
}

using Parameters = std::map<std::string, at::Tensor>;

// Returns the parameter that a tensor of the state is kept for: "optimizer.PARAMETER.FIELD" or
// "callback.NAME.PARAMETER". Undefined: none of its shape.
at::Tensor parameter_of(const std::string& name, const std::vector<int64_t>& sizes,
                        const Parameters& parameters) {
  constexpr const char* kOptimizer = "optimizer.";
  const std::string kept = base::starts_with(name, kOptimizer) ? name.substr(0, name.rfind('.')) : name;
  for (size_t dot = kept.find('.'); dot != std::string::npos; dot = kept.find('.', dot + 1)) {
    const auto found = parameters.find(kept.substr(dot + 1));
    if (found != parameters.end() && found->second.sizes() == at::IntArrayRef(sizes)) return found->second;
  }
  return {};
}

// Returns a tensor of the state, on the devices and laid out like the parameter.
base::Result<at::Tensor> read_like(StoredReader& reader, const std::string& name, const StoredTensor& stored,
                                   const at::Tensor& parameter) {
  const Layout layout = layout_of(parameter);
  std::vector<StoredBox> boxes;
  for (const device::LocalBlock& block : device::blocks_here(layout, stored.sizes))
    boxes.push_back({name, &stored, block.start, block.sizes, stored.type});
  SLUICE_TRY(const std::vector<at::Tensor> blocks, reader.read(boxes));
  return device::from_blocks(layout, stored.sizes, stored.type, blocks);
}

base::Result<at::Tensor> read_whole(StoredReader& reader, const std::string& name,
                                    const StoredTensor& stored) {
  return reader.read(
      StoredBox{name, &stored, std::vector<int64_t>(stored.sizes.size(), 0), stored.sizes, stored.type});
}

}  // namespace checkpoint_source_detail

base::Result<CheckpointSource> CheckpointSource::open(const std::string& from) {
  namespace detail = checkpoint_source_detail;
  CheckpointSource source;
  SLUICE_TRY(source.progress_, detail::progress_of(from));
  SLUICE_TRY(const std::string model, detail::file_of(from, kModel));
  SLUICE_TRY(source.model_, source.reader_->list(model));
  SLUICE_TRY(const std::string state, detail::file_of(from, kState));
  SLUICE_TRY(source.state_, source.reader_->list(state));
  return source;
}

base::Status CheckpointSource::load_model(torch::nn::Module& model, const std::string& source) {
  return load_stored(model, *reader_, model_, source);
}

base::Result<NamedTensors> CheckpointSource::load_state(const torch::nn::Module& model) {
  namespace detail = checkpoint_source_detail;
  detail::Parameters parameters;
  for (const auto& item : model.named_parameters())
    if (item.value().is_xla()) parameters.emplace(item.key(), item.value());
  NamedTensors state;
  for (const auto& [name, stored] : state_) {
    const at::Tensor parameter = detail::parameter_of(name, stored.sizes, parameters);
    SLUICE_TRY(at::Tensor value, parameter.defined() ? detail::read_like(*reader_, name, stored, parameter)
                                                     : detail::read_whole(*reader_, name, stored));
    state.emplace_back(name, std::move(value));
  }
  return state;
}

}  // namespace sluice::sessions
