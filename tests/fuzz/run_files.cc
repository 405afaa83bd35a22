// Files of weights, checkpoints and runs: the first byte says which, the rest is the file (of torch.save's,
// also the pickle alone: it is put into a file with two records).
//
//   s safetensors   z a file of torch.save   p its data.pkl   l config.json of a language model
//   i model.safetensors.index.json   c a checkpoint's state.json   m mlflow.json, a zero and mlflow.jsonl
#include <ATen/ATen.h>
#include <caffe2/serialize/inline_container.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/files/file.h"
#include "sluice/models/language/options.h"
#include "sluice/session/files/checkpoint.h"
#include "sluice/session/files/tensor_file.h"
#include "sluice/session/pretrained/weight_files.h"
#include "sluice/session/stored/stored_tensors.h"
#include "sluice/train/tracking/mlflow_spool.h"
#include "tests/fuzz/demand.h"

namespace {

using namespace sluice;

// As quick as a file can be: nothing here must outlive the process.
void write(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

std::uint64_t bytes_of(const sessions::NamedTensors& tensors) {
  std::uint64_t bytes = 0;
  for (const auto& [name, tensor] : tensors) {
    fuzz::demand(tensor.is_contiguous(), "tensors are contiguous");
    bytes += static_cast<std::uint64_t>(tensor.numel()) * tensor.element_size();
    if (tensor.nbytes() > 0)
      (void)static_cast<const volatile char*>(tensor.const_data_ptr())[tensor.nbytes() - 1];
  }
  return bytes;
}

// Read whole, and as blocks from where the tensors lie.
void read_safetensors_twice(const std::string& path, std::uint64_t file_bytes) {
  const auto tensors = sessions::read_safetensors(path);
  if (tensors) fuzz::demand(bytes_of(*tensors) <= file_bytes, "tensors are made of their file");
  sessions::StoredReader reader;
  const auto listed = reader.list(path);
  // A file of torch.save is not a damaged one.
  fuzz::demand(listed.has_value() == tensors.has_value() || listed.error().code() == Code::kUnimplemented,
               "both readers accept the same files");
  if (!tensors || !listed) return;
  for (const auto& [name, tensor] : *tensors) {
    const sessions::StoredTensor& stored = listed->at(name);
    const auto block = reader.read(sessions::StoredBox{
        name, &stored, std::vector<int64_t>(stored.sizes.size(), 0), stored.sizes, stored.type});
    fuzz::demand(block.has_value() && block->sizes() == tensor.sizes() && block->nbytes() == tensor.nbytes(),
                 "a block is its tensor");
    fuzz::demand(tensor.nbytes() == 0 ||
                     std::memcmp(block->const_data_ptr(), tensor.const_data_ptr(), tensor.nbytes()) == 0,
                 "a block has its tensor's bytes");
  }
}

// The tensors of a pickle may share their storages, each not larger than the file.
void read_torch(const std::string& path) {
  const auto size = base::file_size(path).value_or(0);
  if (const auto tensors = sessions::read_torch_file(path))
    fuzz::demand(bytes_of(*tensors) <= (tensors->size() + 1) * (size + 8),
                 "no tensor is larger than its file");
}

void read_pickle(const std::string& path, std::string_view pickle) {
  {
    caffe2::serialize::PyTorchStreamWriter writer(path);
    writer.writeRecord("data.pkl", pickle.data(), pickle.size());
    const std::string zeros(96, '\0');
    for (const char* key : {"data/0", "data/1"}) writer.writeRecord(key, zeros.data(), zeros.size());
    writer.writeEndOfFile();
  }
  read_torch(path);
}

// Beside the folder lies what the index must not reach.
void read_index(const std::string& folder, std::string_view index) {
  static const bool ready = [&] {
    const at::Tensor ones = at::ones({2, 3});
    base::value_or_throw(
        sessions::write_safetensors(folder + "/../outside.safetensors", {{"outside", ones}}));
    base::value_or_throw(sessions::write_safetensors(folder + "/one.safetensors", {{"a.weight", ones}}));
    base::value_or_throw(sessions::write_safetensors(folder + "/two.safetensors", {{"b", ones}}));
    return true;
  }();
  (void)ready;
  write(folder + "/model.safetensors.index.json", index);
  const auto tensors = sessions::read_weight_files(folder);
  if (tensors)
    for (const auto& [name, tensor] : *tensors)
      fuzz::demand(name != "outside", "no file outside of the folder is read");
  const auto listed = sessions::StoredReader().list(folder + "/model.safetensors.index.json");
  fuzz::demand(listed.has_value() == tensors.has_value(), "both readers accept the same indexes");
  if (listed) fuzz::demand(listed->size() == tensors->size(), "both readers find the same tensors");
}

void read_state(const std::string& folder, std::string_view text) {
  write(folder + "/state.json", text);
  if (const auto progress = sessions::read_progress(folder))
    fuzz::demand(progress->epoch >= 0 && progress->batch >= 0 && progress->step >= 0,
                 "a run stands somewhere");
}

void read_mlflow(const std::string& folder, std::string_view text) {
  const std::size_t zero = std::min(text.find('\0'), text.size());
  write(folder + "/mlflow.json", text.substr(0, zero));
  write(folder + "/mlflow.jsonl", zero < text.size() ? text.substr(zero + 1) : "");
  (void)train::MlflowSpool::left_in(folder);
  auto spool = train::MlflowSpool::open(folder, 10);
  if (!spool) return;
  std::size_t lines = 0;
  for (auto line = (*spool)->peek(0); line && *line != nullptr; line = (*spool)->peek(++lines))
    fuzz::demand(
        !(**line).contains("metrics") || ((**line)["metrics"].is_object() && (**line).contains("time")),
        "metrics have a time");
  fuzz::demand(static_cast<std::int64_t>(lines) == (*spool)->left(), "all lines that are left are seen");
  fuzz::demand((*spool)->append({{"tags", {{"a", "b"}}}}).has_value(), "a line is added");
  if (lines > 0) fuzz::demand((*spool)->arrived(1).has_value(), "a line arrives");
}

void read_config(std::string_view text) {
  try {
    const auto options = models::parse_language_config(std::string(text), "config.json");
    (void)models::language_config(options);
  } catch (const Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  static const auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  static const std::string inner = [] {
    const std::string path = folder.path("inner");
    base::value_or_throw(base::make_directories(path));
    return path;
  }();
  const std::string_view file(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string path = folder.path("file");
  switch (data[0]) {
    case 's':
      write(path, file);
      read_safetensors_twice(path, file.size());
      break;
    case 'z':
      write(path, file);
      read_torch(path);
      break;
    case 'p':
      read_pickle(path, file);
      break;
    case 'l':
      read_config(file);
      break;
    case 'i':
      read_index(inner, file);
      break;
    case 'c':
      read_state(inner, file);
      break;
    case 'm':
      read_mlflow(inner, file);
      break;
    default:
      break;
  }
  return 0;
}
