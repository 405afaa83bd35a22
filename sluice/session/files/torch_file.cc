// Python's torch.save files: a zip of data.pkl (a pickle, protocol 2) and one record of bytes for each
// storage. Before PyTorch 1.6: several pickles in a row (a magic number, a version, facts of the machine, the
// object, the storages' keys), then the storages, each as its number of elements and its bytes.
#include <ATen/ATen.h>
#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/serialization/pickler.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "sluice/base/files/file.h"
#include "sluice/session/files/tensor_file.h"
#include "sluice/session/files/unpickle.h"

namespace sluice::sessions {
namespace torch_file_detail {

struct TypeName {
  const char* name;
  at::ScalarType type;
};
constexpr TypeName kStorages[] = {
    {"torch.DoubleStorage", at::kDouble},
    {"torch.FloatStorage", at::kFloat},
    {"torch.HalfStorage", at::kHalf},
    {"torch.BFloat16Storage", at::kBFloat16},
    {"torch.ComplexDoubleStorage", at::kComplexDouble},
    {"torch.ComplexFloatStorage", at::kComplexFloat},
    {"torch.LongStorage", at::kLong},
    {"torch.IntStorage", at::kInt},
    {"torch.ShortStorage", at::kShort},
    {"torch.CharStorage", at::kChar},
    {"torch.ByteStorage", at::kByte},
    {"torch.BoolStorage", at::kBool},
    {"torch.storage.UntypedStorage", at::kByte},
};
// Types without their own kind of storage: the storage holds bytes, and the tensor names its type.
constexpr TypeName kTypesOfBytes[] = {
    {"torch.uint16", at::kUInt16},
    {"torch.uint32", at::kUInt32},
    {"torch.uint64", at::kUInt64},
    {"torch.complex32", at::kComplexHalf},
    {"torch.float8_e4m3fn", at::kFloat8_e4m3fn},
    {"torch.float8_e4m3fnuz", at::kFloat8_e4m3fnuz},
    {"torch.float8_e5m2", at::kFloat8_e5m2},
    {"torch.float8_e5m2fnuz", at::kFloat8_e5m2fnuz},
    {"torch.float8_e8m0fnu", at::kFloat8_e8m0fnu},
};

template <size_t kCount>
std::optional<at::ScalarType> type_of(const TypeName (&types)[kCount], const std::string& name) {
  for (const auto& known : types)
    if (name == known.name) return known.type;
  return std::nullopt;
}

// The contents of a persistent id: ("storage", type, key, device, elements); before PyTorch 1.6, followed by
// None.
struct StorageId {
  at::ScalarType type;
  std::string key;
  int64_t elements;
};

base::Result<StorageId> storage_of(const std::string& path, const pickle::Object& id) {
  const bool is_view = id.items.size() == 6 && id.items[5]->kind != pickle::Kind::kNone;
  if (is_view)
    return base::fail(Code::kUnimplemented, path, ": its storages are views of others, as PyTorch 0.3 wrote ",
                      "them: write it again with Python: torch.save(torch.load(\"old.pt\"), \"new.pt\")");
  if (id.kind != pickle::Kind::kTuple || id.items.size() < 5 || id.items.size() > 6 ||
      id.items[0]->text != "storage")
    return base::fail(Code::kDataLoss, path, ": expected a storage where the pickle refers to a record");
  const auto type = type_of(kStorages, id.items[1]->text);
  if (!type)
    return base::fail(Code::kUnimplemented, path, ": storages of type ", id.items[1]->text,
                      " are not supported");
  const int64_t elements = id.items[4]->number;
  if (elements < 0 || elements > (int64_t{1} << 48))
    return base::fail(Code::kDataLoss, path, ": a storage of ", elements, " elements");
  return StorageId{*type, id.items[2]->text, elements};
}

uint64_t bytes_of(const StorageId& id) {
  return static_cast<uint64_t>(id.elements) * c10::elementSize(id.type);
}

at::Tensor tensor_of(const StorageId& id, std::string_view bytes) {
  at::Tensor tensor = at::empty({id.elements}, at::TensorOptions(id.type));
  if (!bytes.empty()) std::memcpy(tensor.mutable_data_ptr(), bytes.data(), bytes.size());
  return tensor;
}

// Reads the values of a storage, one-dimensional.
using ReadStorage = std::function<base::Result<at::Tensor>(const StorageId& id)>;

// Builds the objects that a state dict's pickle asks for, and refuses everything else.
class TorchObjects : public pickle::Objects {
 public:
  TorchObjects(std::string path, uint64_t file_bytes, ReadStorage read)
      : path_(std::move(path)), file_bytes_(file_bytes), read_(std::move(read)) {}

  base::Result<pickle::Ref> load(const pickle::Ref& id) override {
    SLUICE_TRY(const StorageId storage, storage_of(path_, *id));
    auto result = pickle::make(pickle::Kind::kTensor);
    if (auto found = storages_.find(storage.key); found != storages_.end()) {
      result->tensor = found->second;
      return result;
    }
    SLUICE_TRY(result->tensor, read_(storage));
    storages_[storage.key] = result->tensor;
    return result;
  }

  base::Result<pickle::Ref> call(const std::string& function, const std::vector<pickle::Ref>& args) override {
    if (function == "collections.OrderedDict" && args.empty()) return pickle::make(pickle::Kind::kDict);
    // PyTorch before 0.4 wrote the first of these.
    if ((function == "torch._utils._rebuild_tensor" || function == "torch._utils._rebuild_tensor_v2") &&
        args.size() >= 4)
      return rebuild(args);
    if (function == "torch._utils._rebuild_tensor_v3" && args.size() >= 7) return rebuild_of_bytes(args);
    if (function == "torch._utils._rebuild_parameter" && !args.empty()) return args[0];
    return base::fail(Code::kPermissionDenied, path_, ": the file asks to call ", function,
                      ", which no file of weights needs. Save model.state_dict() instead of the model.");
  }

 private:
  // `args`: (storage, offset, sizes, strides, needs a gradient, hooks, type, metadata).
  base::Result<pickle::Ref> rebuild_of_bytes(std::vector<pickle::Ref> args) {
    const auto type = type_of(kTypesOfBytes, args[6]->text);
    if (!type)
      return base::fail(Code::kUnimplemented, path_, ": tensors of type ", args[6]->text,
                        " are not supported");
    const at::Tensor& bytes = args[0]->tensor;
    if (args[0]->kind != pickle::Kind::kTensor || bytes.scalar_type() != at::kByte ||
        bytes.numel() % static_cast<int64_t>(c10::elementSize(*type)) != 0)
      return base::fail(Code::kDataLoss, path_, ": a tensor of ", args[6]->text,
                        " has another storage than whole elements of it");
    auto typed = pickle::make(pickle::Kind::kTensor);
    typed->tensor = bytes.view(*type);
    args[0] = std::move(typed);
    args.erase(args.begin() + 6);  // the rest is then in rebuild()'s order
    return rebuild(args);
  }

  // `args`: (storage, offset, sizes, strides, needs a gradient, hooks, metadata).
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
    // Strides of 0 would let a few bytes stand for any number of values.
    if (!empty && static_cast<uint64_t>(values) > file_bytes_ / args[0]->tensor.element_size() + 1)
      return base::fail(Code::kDataLoss, path_, ": a tensor of ", values, " values has a storage of ",
                        elements, " elements: save a contiguous one (tensor.contiguous())");
    auto result = pickle::make(pickle::Kind::kTensor);
    result->tensor = empty ? at::empty(sizes, args[0]->tensor.options())
                           : args[0]->tensor.as_strided(sizes, strides, offset).contiguous();
    if (args.size() > 6) result->tensor = with_signs(result->tensor, *args[6]);
    return result;
  }

  // The storage may hold the conjugate or the negative of the values; the metadata says which.
  static at::Tensor with_signs(at::Tensor tensor, const pickle::Object& metadata) {
    for (const auto& [key, value] : metadata.entries) {
      if (value->number == 0) continue;
      if (key->text == "conj" && tensor.is_complex()) tensor = at::conj_physical(tensor);
      if (key->text == "neg" && tensor.scalar_type() != at::kBool) tensor = at::negative(tensor);
    }
    return tensor;
  }

  std::string path_;
  uint64_t file_bytes_;
  ReadStorage read_;
  std::map<std::string, at::Tensor> storages_;
};

// Returns the dict of tensors: the unpickled object itself, or the dict that a checkpoint holds under one of
// the usual names.
base::Result<NamedTensors> state_dict(const std::string& path, const pickle::Object& root) {
  if (root.kind != pickle::Kind::kDict)
    return base::fail(Code::kInvalidArgument, path, ": expected a dict of tensors, found ",
                      pickle::name_of(root.kind));
  for (const auto& [key, value] : root.entries) {
    const bool nested = key->text == "model_state_dict" || key->text == "state_dict" || key->text == "model";
    if (nested && value->kind == pickle::Kind::kDict) return state_dict(path, *value);
  }
  NamedTensors result;
  std::set<std::string> names;
  for (const auto& [key, value] : root.entries) {
    if (key->kind != pickle::Kind::kText || value->kind != pickle::Kind::kTensor)
      return base::fail(Code::kInvalidArgument, path,
                        ": expected a dict from names to tensors, found the entry \"", key->text, "\" with ",
                        pickle::name_of(value->kind));
    if (!names.insert(key->text).second)
      return base::fail(Code::kDataLoss, path, ": two tensors are called ", key->text);
    result.emplace_back(key->text, value->tensor);
  }
  return result;
}

base::Result<NamedTensors> read_zip(const std::string& path, uint64_t file_bytes) {
  caffe2::serialize::PyTorchStreamReader reader(path);
  if (!reader.hasRecord("data.pkl"))
    return base::fail(Code::kInvalidArgument, path, ": no file of torch.save (it has no data.pkl)");
  if (reader.hasRecord("byteorder")) {
    auto [order, bytes] = reader.getRecord("byteorder");
    if (std::string_view(static_cast<const char*>(order.get()), bytes) != "little")
      return base::fail(Code::kUnimplemented, path, ": written on a big-endian machine");
  }
  if (reader.getRecordSize("data.pkl") > file_bytes)
    return base::fail(Code::kDataLoss, path, ": data.pkl has ", reader.getRecordSize("data.pkl"),
                      " bytes, more than the whole file");
  auto [memory, bytes] = reader.getRecord("data.pkl");
  const auto read_storage = [&](const StorageId& id) -> base::Result<at::Tensor> {
    const std::string record = "data/" + id.key;
    if (!reader.hasRecord(record))
      return base::fail(Code::kDataLoss, path, ": the record ", record, " is missing");
    // torch.save compresses nothing: a record that is larger than the file was made to fill the memory.
    if (reader.getRecordSize(record) > file_bytes)
      return base::fail(Code::kDataLoss, path, ": the record ", record, " has ", reader.getRecordSize(record),
                        " bytes, more than the whole file");
    auto [content, size] = reader.getRecord(record);
    if (size != bytes_of(id))
      return base::fail(Code::kDataLoss, path, ": the record ", record, " has ", size, " bytes, expected ",
                        id.elements, " elements of ", c10::elementSize(id.type), " bytes");
    return tensor_of(id, {static_cast<const char*>(content.get()), size});
  };
  TorchObjects objects(path, file_bytes, read_storage);
  SLUICE_TRY(pickle::Ref root, pickle::load({static_cast<const char*>(memory.get()), bytes}, path, objects));
  return state_dict(path, *root);
}

// Collects the storages that follow a pickle. Builds nothing.
class StorageList : public pickle::Objects {
 public:
  explicit StorageList(const std::string& path) : path_(path) {}
  base::Result<pickle::Ref> load(const pickle::Ref& id) override {
    SLUICE_TRY(StorageId storage, storage_of(path_, *id));
    auto [known, is_new] = storages.try_emplace(storage.key, storage);
    if (!is_new && (known->second.type != storage.type || known->second.elements != storage.elements))
      return base::fail(Code::kDataLoss, path_, ": the storage ", storage.key, " has two types or sizes");
    return pickle::make(pickle::Kind::kNone);
  }
  base::Result<pickle::Ref> call(const std::string&, const std::vector<pickle::Ref>&) override {
    return pickle::make(pickle::Kind::kDict);
  }

  std::map<std::string, StorageId> storages;

 private:
  const std::string& path_;
};

// Reads a file from before PyTorch 1.6, from front to back.
class OldFile {
 public:
  OldFile(const std::string& path, std::string_view bytes) : path_(path), bytes_(bytes) {}

  base::Result<NamedTensors> read() {
    StorageList list(path_);
    SLUICE_OK(check_head(list));
    const size_t object_at = at_;
    SLUICE_TRY([[maybe_unused]] const pickle::Ref skipped, next(list));
    SLUICE_TRY(const pickle::Ref keys, next(list));
    std::map<std::string, at::Tensor> storages;
    for (const pickle::Ref& key : keys->items) {
      const auto found = list.storages.find(key->text);
      if (found == list.storages.end())
        return base::fail(Code::kDataLoss, path_, ": the storage ", key->text, " belongs to no tensor");
      SLUICE_TRY(storages[key->text], storage(found->second));
    }
    const auto read_storage = [&](const StorageId& id) -> base::Result<at::Tensor> {
      const auto found = storages.find(id.key);
      if (found == storages.end())
        return base::fail(Code::kDataLoss, path_, ": the storage ", id.key, " is missing");
      return found->second;
    };
    TorchObjects objects(path_, bytes_.size(), read_storage);
    SLUICE_TRY(const pickle::Ref root, pickle::load(bytes_.substr(object_at), path_, objects));
    return state_dict(path_, *root);
  }

 private:
  base::Result<pickle::Ref> next(pickle::Objects& objects) {
    size_t used = 0;
    auto result = pickle::load(bytes_.substr(at_), path_, objects, &used);
    at_ += used;
    return result;
  }

  // Checks the magic number, the version 1001 and the machine's byte order.
  base::Status check_head(pickle::Objects& objects) {
    constexpr std::string_view kMagic = "\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.";
    constexpr size_t kFarthest = 11;  // after the pickle's protocol and the length of its frame
    const size_t magic = bytes_.substr(0, kFarthest + kMagic.size()).find(kMagic);
    if (magic == std::string_view::npos)
      return base::fail(Code::kInvalidArgument, path_, ": no file of torch.save, but another pickle");
    at_ = magic + kMagic.size();
    SLUICE_TRY(const pickle::Ref version, next(objects));
    if (version->kind != pickle::Kind::kNumber || version->number != 1001)
      return base::fail(Code::kUnimplemented, path_, ": a file of torch.save of an unknown version");
    SLUICE_TRY(const pickle::Ref machine, next(objects));
    for (const auto& [key, value] : machine->entries)
      if (key->text == "little_endian" && value->number == 0)
        return base::fail(Code::kUnimplemented, path_, ": written on a big-endian machine");
    return {};
  }

  base::Result<at::Tensor> storage(const StorageId& id) {
    int64_t elements = 0;
    const uint64_t left = bytes_.size() - at_, bytes = bytes_of(id);
    if (left < sizeof elements || left - sizeof elements < bytes)
      return base::fail(Code::kDataLoss, path_, ": cut off in the storage ", id.key);
    std::memcpy(&elements, bytes_.data() + at_, sizeof elements);
    if (elements != id.elements)
      return base::fail(Code::kDataLoss, path_, ": the storage ", id.key, " has ", elements,
                        " elements, expected ", id.elements);
    at_ += sizeof elements;
    const std::string_view content = bytes_.substr(at_, bytes);
    at_ += bytes;
    return tensor_of(id, content);
  }

  const std::string& path_;
  std::string_view bytes_;
  size_t at_ = 0;
};

base::Result<NamedTensors> read(const std::string& path) {
  SLUICE_TRY(const uint64_t file_bytes, base::file_size(path));
  char first = 0;
  std::ifstream(path, std::ios::binary).get(first);
  if (static_cast<unsigned char>(first) != 0x80) return read_zip(path, file_bytes);
  SLUICE_TRY(const std::string bytes, base::read_file(path));
  return OldFile(path, bytes).read();
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
  namespace detail = torch_file_detail;
  c10::impl::GenericDict dict(c10::StringType::get(), c10::TensorType::get());
  for (const auto& [name, tensor] : tensors) {
    const auto is_its_type = [type = tensor.scalar_type()](const auto& known) { return known.type == type; };
    if (std::none_of(std::begin(detail::kStorages), std::end(detail::kStorages), is_its_type))
      return base::fail(Code::kUnimplemented, "cannot save tensor ", name, " in ", path,
                        ": LibTorch writes no file of torch.save with the element type ",
                        c10::toString(tensor.scalar_type()), ": choose a name that ends in .safetensors");
    dict.insert(name, tensor.detach().resolve_conj().resolve_neg().contiguous());
  }
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
