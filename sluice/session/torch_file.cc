// Python's torch.save files: a zip of data.pkl (a pickle, protocol 2) and one record of bytes for each
// storage.
#include <ATen/ATen.h>
#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/serialization/pickler.h>

#include <algorithm>
#include <cstring>

#include "sluice/base/file.h"
#include "sluice/session/tensor_file.h"
#include "sluice/session/unpickle.h"

namespace sluice::sessions {
namespace torch_file_detail {

struct StorageType {
  const char* name;
  at::ScalarType type;
};
constexpr StorageType kStorages[] = {
    {"torch.DoubleStorage", at::kDouble}, {"torch.FloatStorage", at::kFloat},
    {"torch.HalfStorage", at::kHalf},     {"torch.BFloat16Storage", at::kBFloat16},
    {"torch.LongStorage", at::kLong},     {"torch.IntStorage", at::kInt},
    {"torch.ShortStorage", at::kShort},   {"torch.CharStorage", at::kChar},
    {"torch.ByteStorage", at::kByte},     {"torch.BoolStorage", at::kBool},
};

// Builds the objects that a state dict's pickle asks for. Everything else is refused.
class TorchObjects : public pickle::Objects {
 public:
  TorchObjects(std::string path, caffe2::serialize::PyTorchStreamReader& reader, uint64_t file_bytes)
      : path_(std::move(path)), reader_(reader), file_bytes_(file_bytes) {}

  // A persistent id: ("storage", type, key, device, elements).
  base::Result<pickle::Ref> load(const pickle::Ref& id) override {
    if (id->kind != pickle::Kind::kTuple || id->items.size() != 5 || id->items[0]->text != "storage")
      return base::fail(Code::kDataLoss, path_, ": expected a storage where the pickle refers to a record");
    for (const auto& known : kStorages) {
      if (id->items[1]->text != known.name) continue;
      auto result = pickle::make(pickle::Kind::kTensor);
      SLUICE_TRY(result->tensor, storage(id->items[2]->text, known.type, id->items[4]->number));
      return result;
    }
    return base::fail(Code::kUnimplemented, path_, ": storages of type ", id->items[1]->text,
                      " are not supported");
  }

  base::Result<pickle::Ref> call(const std::string& function, const std::vector<pickle::Ref>& args) override {
    if (function == "collections.OrderedDict" && args.empty()) return pickle::make(pickle::Kind::kDict);
    if (function == "torch._utils._rebuild_tensor_v2" && args.size() >= 4) return rebuild(args);
    if (function == "torch._utils._rebuild_parameter" && !args.empty()) return args[0];
    return base::fail(Code::kPermissionDenied, path_, ": the file asks to call ", function,
                      ", which no file of weights needs. Save model.state_dict() instead of the model.");
  }

 private:
  base::Result<at::Tensor> storage(const std::string& key, at::ScalarType type, int64_t elements) {
    if (auto found = storages_.find(key); found != storages_.end()) return found->second;
    const std::string record = "data/" + key;
    if (!reader_.hasRecord(record))
      return base::fail(Code::kDataLoss, path_, ": the record ", record, " is missing");
    // torch.save compresses nothing: what unpacks to more than the file was made to fill the memory.
    if (reader_.getRecordSize(record) > file_bytes_)
      return base::fail(Code::kDataLoss, path_, ": the record ", record, " has ",
                        reader_.getRecordSize(record), " bytes, more than the whole file");
    auto [memory, bytes] = reader_.getRecord(record);
    const auto width = static_cast<int64_t>(c10::elementSize(type));
    if (elements < 0 || elements > (int64_t{1} << 48) || bytes != static_cast<size_t>(elements * width))
      return base::fail(Code::kDataLoss, path_, ": the record ", record, " has ", bytes, " bytes, expected ",
                        elements, " elements of ", width, " bytes");
    at::Tensor tensor = at::empty({elements}, at::TensorOptions(type));
    if (bytes > 0) std::memcpy(tensor.mutable_data_ptr(), memory.get(), bytes);
    storages_[key] = tensor;
    return tensor;
  }

  // (storage, offset, sizes, strides, …)
  base::Result<pickle::Ref> rebuild(const std::vector<pickle::Ref>& args) {
    if (args[0]->kind != pickle::Kind::kTensor || args[2]->items.size() != args[3]->items.size())
      return base::fail(Code::kDataLoss, path_, ": a tensor's description is malformed");
    std::vector<int64_t> sizes, strides;
    const int64_t offset = args[1]->number, elements = args[0]->tensor.numel();
    int64_t last = offset;
    int64_t values = 1;
    bool empty = false, outside = offset < 0;
    for (size_t i = 0; i < args[2]->items.size(); ++i) {
      const int64_t size = args[2]->items[i]->number, stride = args[3]->items[i]->number;
      sizes.push_back(size);
      strides.push_back(stride);
      empty |= size == 0;
      outside |= size < 0 || stride < 0 || __builtin_mul_overflow(values, size, &values);
      int64_t reach = 0;
      outside |= __builtin_mul_overflow(std::max<int64_t>(size - 1, 0), stride, &reach) ||
                 __builtin_add_overflow(last, reach, &last);
    }
    if (outside || (!empty && last >= elements))
      return base::fail(Code::kDataLoss, path_, ": a tensor reaches beyond its storage of ", elements,
                        " elements");
    // Strides of 0 let a few bytes stand for any number of values.
    if (!empty && static_cast<uint64_t>(values) > file_bytes_ / args[0]->tensor.element_size() + 1)
      return base::fail(Code::kDataLoss, path_, ": a tensor of ", values, " values has a storage of ",
                        elements, " elements: save a contiguous one (tensor.contiguous())");
    auto result = pickle::make(pickle::Kind::kTensor);
    result->tensor = empty ? at::empty(sizes, args[0]->tensor.options())
                           : args[0]->tensor.as_strided(sizes, strides, offset).contiguous();
    return result;
  }

  std::string path_;
  caffe2::serialize::PyTorchStreamReader& reader_;
  uint64_t file_bytes_;
  std::map<std::string, at::Tensor> storages_;
};

// The dict of tensors in what was unpickled: itself, or what a checkpoint holds under one of the usual names.
base::Result<NamedTensors> state_dict(const std::string& path, const pickle::Object& root) {
  if (root.kind != pickle::Kind::kDict)
    return base::fail(Code::kInvalidArgument, path, ": expected a dict of tensors, found ",
                      pickle::name_of(root.kind));
  for (const auto& [key, value] : root.entries) {
    const bool nested = key->text == "model_state_dict" || key->text == "state_dict" || key->text == "model";
    if (nested && value->kind == pickle::Kind::kDict) return state_dict(path, *value);
  }
  NamedTensors result;
  for (const auto& [key, value] : root.entries) {
    if (key->kind != pickle::Kind::kText || value->kind != pickle::Kind::kTensor)
      return base::fail(Code::kInvalidArgument, path,
                        ": expected a dict from names to tensors, found the entry \"", key->text, "\" with ",
                        pickle::name_of(value->kind));
    result.emplace_back(key->text, value->tensor);
  }
  return result;
}

base::Result<NamedTensors> read(const std::string& path) {
  caffe2::serialize::PyTorchStreamReader reader(path);
  if (!reader.hasRecord("data.pkl"))
    return base::fail(Code::kInvalidArgument, path, ": no file of torch.save (it has no data.pkl)");
  if (reader.hasRecord("byteorder")) {
    auto [order, bytes] = reader.getRecord("byteorder");
    if (std::string_view(static_cast<const char*>(order.get()), bytes) != "little")
      return base::fail(Code::kUnimplemented, path, ": written on a big-endian machine");
  }
  SLUICE_TRY(const uint64_t file_bytes, base::file_size(path));
  if (reader.getRecordSize("data.pkl") > file_bytes)
    return base::fail(Code::kDataLoss, path, ": data.pkl has ", reader.getRecordSize("data.pkl"),
                      " bytes, more than the whole file");
  auto [memory, bytes] = reader.getRecord("data.pkl");
  TorchObjects objects(path, reader, file_bytes);
  SLUICE_TRY(pickle::Ref root, pickle::load({static_cast<const char*>(memory.get()), bytes}, path, objects));
  return state_dict(path, *root);
}

}  // namespace torch_file_detail

base::Result<NamedTensors> read_torch_file(const std::string& path) {
  try {
    return torch_file_detail::read(path);
  } catch (const c10::Error& error) {
    return base::fail(Code::kDataLoss, path, ": ", error.what_without_backtrace());
  }
}

base::Status write_torch_file(const std::string& path, const NamedTensors& tensors) {
  c10::impl::GenericDict dict(c10::StringType::get(), c10::TensorType::get());
  for (const auto& [name, tensor] : tensors) dict.insert(name, tensor.detach().contiguous());
  SLUICE_TRY(auto file, base::AtomicFile::create(path));
  base::Status written;
  try {
    std::string pickled;
    torch::jit::Pickler pickler([&](const char* bytes, size_t size) { pickled.append(bytes, size); }, nullptr,
                                nullptr, nullptr, nullptr, /*tag_aggregates=*/false);
    pickler.protocol();
    pickler.pushIValue(dict);
    pickler.stop();
    caffe2::serialize::PyTorchStreamWriter writer([&](const void* bytes, size_t size) {
      if (written) written = file.write(bytes, size);
      return written ? size : 0;
    });
    writer.writeRecord("data.pkl", pickled.data(), pickled.size());
    writer.writeRecord("byteorder", "little", 6);
    size_t number = 0;
    for (const at::Tensor& tensor : pickler.tensorData())
      writer.writeRecord("data/" + std::to_string(number++), tensor.storage().data(),
                         tensor.storage().nbytes());
    writer.writeEndOfFile();
  } catch (const c10::Error& error) {
    if (!written) return written;
    return base::fail(Code::kInternal, "cannot write ", path, ": ", error.what_without_backtrace());
  }
  SLUICE_OK(written);
  return file.commit();
}

}  // namespace sluice::sessions
