#include "sluice/session/export/export_weights.h"

#include <filesystem>
#include <vector>

#include "sluice/base/files/file.h"
#include "sluice/base/text/strings.h"
#include "sluice/cloud/store.h"
#include "sluice/session/export/weight_parts.h"
#include "sluice/session/export/weight_stream.h"
#include "sluice/session/export/weight_target.h"
#include "sluice/session/files/remote_checkpoint.h"
#include "sluice/session/files/weights.h"
#include "sluice/session/pieces/piece_index.h"
#include "sluice/session/stored/source_files.h"

namespace sluice::sessions {
namespace export_weights_detail {

// The small files that transformers reads in addition to the weights of a model.
constexpr const char* kCompanions[] = {"config.json",
                                       "generation_config.json",
                                       "tokenizer.json",
                                       "tokenizer_config.json",
                                       "special_tokens_map.json",
                                       "added_tokens.json",
                                       "tokenizer.model",
                                       "vocab.json",
                                       "vocab.txt",
                                       "merges.txt",
                                       "chat_template.jinja"};

bool is_torch_name(const std::string& to) {
  return base::ends_with(to, ".pt") || base::ends_with(to, ".pth") || base::ends_with(to, ".bin");
}

ExportReport report_of(const std::vector<SafetensorsEntry>& tensors, size_t files) {
  ExportReport report;
  report.tensors = static_cast<int64_t>(tensors.size());
  for (const auto& tensor : tensors) report.bytes += static_cast<int64_t>(bytes_of(tensor));
  report.files = static_cast<int64_t>(files);
  return report;
}

base::Result<ExportReport> to_torch_file(const std::string& from, const std::string& to) {
  SLUICE_TRY(const NamedTensors tensors, read_weights(from));
  std::vector<SafetensorsEntry> entries;
  for (const auto& [name, tensor] : tensors)
    entries.push_back({name, tensor.scalar_type(), tensor.sizes().vec()});
  if (!cloud::is_object_url(to)) {
    SLUICE_OK(write_torch_file(to, tensors));
    return report_of(entries, 1);
  }
  SLUICE_TRY(const cloud::ObjectName name, cloud::parse_object_url(to));
  SLUICE_TRY(const cloud::Store* store, cloud::store_to_write(name));
  SLUICE_TRY(const auto folder, base::TemporaryDirectory::create("sluice-weights"));
  SLUICE_OK(write_torch_file(folder.path("weights.pt"), tensors));
  SLUICE_TRY([[maybe_unused]] const auto facts, store->upload_file(folder.path("weights.pt"), name));
  return report_of(entries, 1);
}

// Passes a safetensors file with these tensors on. `path` names it in errors.
base::Status pass_file(WeightStream& stream, const std::vector<size_t>& which, const std::string& path,
                       const TakeBytes& take) {
  std::vector<SafetensorsEntry> entries;
  for (const size_t i : which) entries.push_back(stream.tensors()[i]);
  SLUICE_TRY(const std::string start, safetensors_start(path, entries, {{"format", "pt"}}));
  SLUICE_OK(take(start));
  return stream.pass(which, take);
}

uint64_t bytes_of_part(const WeightPart& part, const std::vector<SafetensorsEntry>& tensors) {
  uint64_t bytes = 0;
  for (const size_t i : part.tensors) bytes += bytes_of(tensors[i]);
  return bytes;
}

base::Result<ExportReport> to_safetensors_file(const std::string& from, const std::string& to) {
  SLUICE_TRY(WeightStream stream, WeightStream::open(from));
  const std::vector<WeightPart> all = divide_weights(stream.tensors(), ~uint64_t{0});
  SLUICE_OK(write_whole(to, bytes_of_part(all.front(), stream.tensors()), [&](const TakeBytes& take) {
    return pass_file(stream, all.front().tensors, to, take);
  }));
  return report_of(stream.tensors(), 1);
}

base::Status write_text(WeightFolder& target, const std::string& name, const std::string& text) {
  return target.write(name, text.size(), [&](const TakeBytes& take) { return take(text); });
}

base::Status write_companions(const WeightStream& stream, WeightFolder& target) {
  for (const char* const name : kCompanions) {
    SLUICE_TRY(const bool has, target.has(name));
    if (has) continue;
    SLUICE_TRY(const auto text, stream.read_beside(name));
    if (text) SLUICE_OK(write_text(target, name, *text));
  }
  return {};
}

// The last file is the one that makes the others weights.
base::Status write_files(WeightStream& stream, const std::vector<WeightPart>& parts, const std::string& to,
                         WeightFolder& target) {
  SLUICE_OK(write_companions(stream, target));
  for (const WeightPart& part : parts)
    SLUICE_OK(target.write(part.file, bytes_of_part(part, stream.tensors()), [&](const TakeBytes& take) {
      return pass_file(stream, part.tensors, to + "/" + part.file, take);
    }));
  if (parts.size() > 1)
    SLUICE_OK(write_text(target, index_name(kModel), weight_index_text(parts, stream.tensors())));
  return target.finish();
}

bool is_same_folder(const std::string& a, const std::string& b) {
  std::error_code ignored;
  return a == b || (!is_elsewhere(a) && !is_elsewhere(b) && std::filesystem::equivalent(a, b, ignored));
}

base::Result<ExportReport> to_folder(const std::string& from, const std::string& to,
                                     const ExportOptions& options) {
  SLUICE_TRY(WeightStream stream, WeightStream::open(from));
  if (is_same_folder(stream.folder(), to))
    return base::fail(Code::kInvalidArgument, to,
                      " is the folder of the weights themselves: name another folder");
  const std::vector<WeightPart> parts = divide_weights(stream.tensors(), options.part_bytes);
  SLUICE_TRY(const auto target, WeightFolder::open(to));
  if (const base::Status written = write_files(stream, parts, to, *target); !written)
    return base::fail_at(written, "cannot write the weights to ", to);
  return report_of(stream.tensors(), parts.size());
}

}  // namespace export_weights_detail

bool exports_one_file(const std::string& to) {
  return export_weights_detail::is_torch_name(to) || base::ends_with(to, ".safetensors");
}

ExportReport export_weights(const std::string& from, const std::string& to, const ExportOptions& options) {
  namespace detail = export_weights_detail;
  if (detail::is_torch_name(to)) return base::value_or_throw(detail::to_torch_file(from, to));
  if (exports_one_file(to)) return base::value_or_throw(detail::to_safetensors_file(from, to));
  return base::value_or_throw(detail::to_folder(from, without_slash(to), options));
}

}  // namespace sluice::sessions
