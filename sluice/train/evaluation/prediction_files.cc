#include "sluice/train/evaluation/prediction_files.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "sluice/base/files/file.h"
#include "sluice/base/formats/json_bytes.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/quantity.h"
#include "sluice/base/text/strings.h"
#include "sluice/cloud/store.h"
#include "sluice/data/decode/npy.h"
#include "sluice/data/shards/shard_index.h"
#include "sluice/data/shards/tar_writer.h"
#include "sluice/train/log/metrics_writer.h"

namespace sluice::train {
namespace prediction_files_detail {

using Json = nlohmann::ordered_json;

// JSON has no numbers for NaN and infinite values: these become texts.
Json number(double value) {
  if (std::isfinite(value)) return value;
  return number_text(value);
}

Json json_of(const at::Tensor& value) {
  if (value.dim() > 0) {
    Json list = Json::array();
    for (int64_t i = 0; i < value.size(0); ++i) list.push_back(json_of(value[i]));
    return list;
  }
  if (value.scalar_type() == at::kBool) return value.item<bool>();
  if (c10::isIntegralType(value.scalar_type(), /*includeBool=*/false)) return value.item<int64_t>();
  if (value.scalar_type() == at::kDouble) return number(value.item<double>());
  // The shortest text that reads back as the same f32.
  const float single = value.item<float>();
  return std::isfinite(single) ? Json::parse(number_text(single)) : number(single);
}

// Types that NumPy does not have (bfloat16, float8) become float32.
base::Result<std::string> npy_of(const std::string& name, const at::Tensor& value) {
  const char* type = "<f4";
  at::Tensor row = value;
  switch (value.scalar_type()) {
    case at::kBool:
      type = "|b1";
      break;
    case at::kByte:
      type = "|u1";
      break;
    case at::kChar:
      type = "|i1";
      break;
    case at::kShort:
      type = "<i2";
      break;
    case at::kInt:
      type = "<i4";
      break;
    case at::kLong:
      type = "<i8";
      break;
    case at::kHalf:
      type = "<f2";
      break;
    case at::kDouble:
      type = "<f8";
      break;
    default:
      if (value.is_complex())
        return base::fail(Code::kInvalidArgument, "predict_step's '", name,
                          "' is complex: expected real numbers, such as torch::view_as_real()");
      row = value.to(at::kFloat);
  }
  row = row.contiguous();
  return data::npy_file(type, row.sizes().vec(), {static_cast<const char*>(row.data_ptr()), row.nbytes()});
}

class Lines final : public PredictionFile {
 public:
  explicit Lines(base::AtomicFile file) : file_(std::move(file)) {}

  base::Status add(const std::string& key, const NamedValues& values) override {
    Json line;
    if (!key.empty()) line["key"] = base::json_of_bytes(key);
    for (const auto& [name, value] : values) line[base::json_of_bytes(name)] = json_of(value);
    pending_ += line.dump() + "\n";
    return pending_.size() < kFlushBytes ? base::Status() : flush();
  }
  base::Status commit() override {
    SLUICE_OK(flush());
    return file_.commit();
  }

 private:
  static constexpr size_t kFlushBytes = 1 << 20;
  base::Status flush() {
    SLUICE_OK(file_.write(pending_));
    pending_.clear();
    return {};
  }
  base::AtomicFile file_;
  std::string pending_;
};

// "codes-%04d.tar" cut in two, with the number of digits between.
struct ShardNames {
  std::string before, after;
  std::optional<size_t> digits;  // empty: one shard with this name

  std::string name(int64_t shard) const {
    if (!digits) return before;
    std::string number = std::to_string(shard);
    number.insert(0, *digits - std::min(*digits, number.size()), '0');
    return before + number + after;
  }
  bool has(const std::string& name) const {
    if (!digits || name.size() <= before.size() + after.size()) return false;
    const std::string number = name.substr(before.size(), name.size() - before.size() - after.size());
    return base::starts_with(name, before) && base::ends_with(name, after) &&
           number.find_first_not_of("0123456789") == std::string::npos;
  }
};

base::Result<ShardNames> parse_names(const std::string& file) {
  const size_t percent = file.find('%');
  if (percent == std::string::npos) return ShardNames{file, "", std::nullopt};
  size_t end = percent + 1;
  if (end < file.size() && file[end] == '0') ++end;
  const size_t begin = end;
  while (end < file.size() && std::isdigit(static_cast<unsigned char>(file[end])) != 0) ++end;
  const std::string digits = file.substr(begin, end - begin);
  if (end >= file.size() || file[end] != 'd' || digits.size() > 2 || file.find('%', end) != std::string::npos)
    return base::fail(Code::kInvalidArgument, "shards called '", file,
                      "': expected the place of their number once, such as codes-%04d.tar");
  return ShardNames{file.substr(0, percent), file.substr(end + 1),
                    digits.empty() ? 0 : static_cast<size_t>(std::stoi(digits))};
}

// Writes shards to a hidden folder next to their place, until all are written.
class Shards final : public PredictionFile {
 public:
  static base::Result<std::unique_ptr<PredictionFile>> create(const std::string& path,
                                                              const PredictionPlace& place) {
    auto shards = std::unique_ptr<Shards>(new Shards);
    shards->folder_ = base::parent_path(path);
    const std::string file = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
    SLUICE_TRY(shards->names_, parse_names(file));
    shards->size_ = place.shard_size;
    if (place.shard_size < 1)
      return base::fail(Code::kInvalidArgument, "a shard size of ", place.shard_size,
                        ": expected 1 sample or more");
    if (place.processes > 1) shards->key_ = base::str(place.process, "-");
    SLUICE_TRY(const auto there, base::list_directory(shards->folder_));
    for (const std::string& name : there)
      if (shards->names_.has(name))
        return base::fail(Code::kAlreadyExists, base::join_path(shards->folder_, name),
                          " is there already: choose another name than ", path,
                          ", or remove the old shards, which would be read together with the new ones");
    shards->hidden_ = base::join_path(shards->folder_, "." + file + ".partial");
    shards->clear();
    SLUICE_OK(base::make_directories(shards->hidden_));
    return std::unique_ptr<PredictionFile>(std::move(shards));
  }
  ~Shards() override { clear(); }

  base::Status add(const std::string& given, const NamedValues& values) override {
    const std::string key = given.empty() ? key_ + std::to_string(samples_) : given;
    SLUICE_OK(check(key, values));
    if (writer_ && names_.digits && in_shard_ == size_) SLUICE_OK(end_shard());
    if (!writer_) SLUICE_OK(begin_shard());
    Json numbers;
    for (const auto& [name, value] : values)
      if (value.dim() == 0) numbers[base::json_of_bytes(name)] = json_of(value);
    if (!numbers.empty()) SLUICE_OK(writer_->add(key + ".json", numbers.dump()));
    for (const auto& [name, value] : values) {
      if (value.dim() == 0) continue;
      SLUICE_TRY(const std::string npy, npy_of(name, value));
      SLUICE_OK(writer_->add(base::str(key, ".", name, ".npy"), npy));
    }
    last_key_ = key;
    ++in_shard_;
    ++samples_;
    return {};
  }

  base::Status commit() override {
    if (!writer_ && written_.empty() && !names_.digits) SLUICE_OK(begin_shard());
    if (writer_) SLUICE_OK(end_shard());
    for (const std::string& shard : written_) {
      if (is_indexed()) SLUICE_OK(move(data::index_path(shard)));
      SLUICE_OK(move(shard));
    }
    return base::sync_directory(folder_);
  }

 private:
  Shards() = default;
  void clear() {
    std::error_code ignored;
    if (!hidden_.empty()) std::filesystem::remove_all(hidden_, ignored);
  }
  // Checks that readers will find the sample again, under this key and with these names.
  base::Status check(const std::string& key, const NamedValues& values) const {
    const std::string last = key.substr(key.rfind('/') + 1);
    if (last.empty() || last.find('.') != std::string::npos)
      return base::fail(Code::kInvalidArgument, "the sample '", key,
                        "' cannot be in a shard, where a key ends at its first dot: write JSON lines");
    if (key == last_key_)
      return base::fail(Code::kInvalidArgument, "two samples in a row have the key '", key,
                        "', and would be one in a shard: write JSON lines");
    for (const auto& [name, value] : values)
      if (name.empty() || name.find('/') != std::string::npos)
        return base::fail(Code::kInvalidArgument, "predict_step's '", name,
                          "': expected a name without slashes, which can be a member of a shard");
    return {};
  }
  base::Status begin_shard() {
    const std::string name = names_.name(static_cast<int64_t>(written_.size()));
    SLUICE_TRY(writer_, data::TarWriter::create(base::join_path(hidden_, name)));
    written_.push_back(name);
    in_shard_ = 0;
    last_key_.clear();
    return {};
  }
  base::Status end_shard() {
    SLUICE_OK(writer_->finish());
    writer_.reset();
    if (!is_indexed()) return {};
    const std::string path = base::join_path(hidden_, written_.back());
    SLUICE_TRY(const data::ShardIndex index, data::index_shard(path));
    return data::write_index(path, index);
  }

  // If names have a dot before the one of .tar, several shards would have one index file.
  bool is_indexed() const { return written_.back().find('.', 1) == written_.back().size() - 4; }
  base::Status move(const std::string& file) const {
    const std::string from = base::join_path(hidden_, file), to = base::join_path(folder_, file);
    if (std::rename(from.c_str(), to.c_str()) == 0) return {};
    return base::fail_errno(errno, "move a finished shard to", to);
  }

  std::string folder_, hidden_;
  ShardNames names_;
  int64_t size_ = 0, in_shard_ = 0, samples_ = 0;
  std::string key_, last_key_;  // key prefix of unnamed samples; the shard's last key
  std::optional<data::TarWriter> writer_;
  std::vector<std::string> written_;  // names of the shards, including the open one
};

std::string own_path(const PredictionPlace& place) {
  const std::string& path = place.path;
  if (place.processes == 1) return path;
  const size_t slash = path.rfind('/') == std::string::npos ? 0 : path.rfind('/') + 1;
  const size_t dot = path.rfind('.');
  const size_t end = dot == std::string::npos || dot <= slash ? path.size() : dot;
  // In a shard's name, a dot would end the name of its index file.
  const char between = base::ends_with(path, ".tar") ? '-' : '.';
  return base::str(path.substr(0, end), between, place.process, path.substr(end));
}

}  // namespace prediction_files_detail

base::Result<std::unique_ptr<PredictionFile>> create_predictions(const PredictionPlace& place) {
  namespace detail = prediction_files_detail;
  if (cloud::is_object_url(place.path))
    return base::fail(Code::kInvalidArgument, "predictions are written to a disk, not to ", place.path,
                      ": give a path, and copy what is there with 'sluice data cp'");
  const std::string path = detail::own_path(place);
  if (base::ends_with(path, ".tar")) return detail::Shards::create(path, place);
  SLUICE_TRY(base::AtomicFile file, base::AtomicFile::create(path));
  return std::unique_ptr<PredictionFile>(std::make_unique<detail::Lines>(std::move(file)));
}

}  // namespace sluice::train
