#include "sluice/text/tools/set_writer.h"

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "sluice/base/files/file.h"
#include "sluice/base/formats/json_bytes.h"
#include "sluice/base/formats/parse_json.h"

namespace sluice::text {
namespace {

using nlohmann::json;

constexpr char kState[] = "state.json";
constexpr std::size_t kMaxDocuments = std::size_t{1} << 22;  // in a file, as their lengths are in memory

// Checks a state's entry for a file: the name becomes a path, so it must be this program's own.
bool is_file(const json& file, const std::string& name) {
  return file.is_object() && file.value("name", json()) == name &&
         file.value("documents", json()).is_number_unsigned() &&
         file.value("tokens", json()).is_number_unsigned();
}

}  // namespace

SetWriter::SetWriter(const TokenSetOptions& options, int width, std::string made_of, json about)
    : options_(options),
      width_(width),
      made_of_(std::move(made_of)),
      about_(std::move(about)),
      partial_(base::join_path(options.folder, "." + options.prefix + ".partial")) {}

base::Result<SetWriter> SetWriter::open(const TokenSetOptions& options, int width, const std::string& made_of,
                                        json about) {
  if (options.prefix.empty() || options.prefix.find('/') != std::string::npos)
    return base::fail(Code::kInvalidArgument, "expected a name as prefix, found '", options.prefix, "'");
  if (options.shard_tokens == 0)
    return base::fail(Code::kInvalidArgument, "expected files of at least one token");
  SetWriter writer(options, width, made_of, std::move(about));
  SLUICE_OK(writer.prepare());
  return writer;
}

std::string SetWriter::name_of(std::size_t number) const {
  char digits[24];
  std::snprintf(digits, sizeof digits, "-%04zu", number);
  return options_.prefix + digits;
}

std::string SetWriter::list_path() const {
  return base::join_path(options_.folder, options_.prefix + ".json");
}

base::Status SetWriter::prepare() {
  SLUICE_OK(base::make_directories(options_.folder));
  if (base::path_exists(partial_)) SLUICE_OK(read_state());
  if (!base::path_exists(partial_)) {
    const std::string first = base::join_path(options_.folder, name_of(0) + ".bin");
    for (const std::string& path : {list_path(), first})
      if (!options_.overwrite && base::path_exists(path))
        return base::fail(Code::kAlreadyExists, path,
                          " is there: another --prefix or folder, or --overwrite to replace it");
    SLUICE_OK(base::make_directories(partial_));
    SLUICE_OK(write_state());
  }
  // Files that the previous run did not finish are removed.
  SLUICE_TRY(const auto names, base::list_directory(partial_));
  for (const std::string& name : names) {
    bool whole = name == kState;
    for (const json& file : files_)
      whole = whole || name == file["name"].get<std::string>() + ".bin" ||
              name == file["name"].get<std::string>() + ".idx";
    if (!whole) SLUICE_OK(base::remove_file(base::join_path(partial_, name)));
  }
  return {};
}

base::Status SetWriter::read_state() {
  const std::string path = base::join_path(partial_, kState);
  json state;
  if (base::path_exists(path)) {
    SLUICE_TRY(const std::string text, base::read_file(path));
    state = base::with_bytes(base::parse_json(text));
  }
  bool readable = state.is_object() && state.contains("made_of") && state.contains("files") &&
                  state["files"].is_array() && state.contains("at") && state.contains("complete");
  for (std::size_t number = 0; readable && number < state["files"].size(); ++number)
    readable = is_file(state["files"][number], name_of(number));
  if (readable && !made_of_.empty() && state["made_of"] == made_of_) {
    files_ = state["files"];
    reached_ = state["at"];
    complete_ = state["complete"] == true;
    continued_ = files_.size();
    return {};
  }
  // A run that was killed before its first complete file leaves nothing of use.
  if (readable && !state["files"].empty() && !options_.overwrite)
    return base::fail(Code::kAlreadyExists, partial_,
                      " was left by a stopped run with other files or settings: ",
                      "start that run again, or replace its files with --overwrite");
  std::error_code error;
  std::filesystem::remove_all(partial_, error);
  if (error) return base::fail_errno(error.value(), "remove", partial_);
  return {};
}

base::Status SetWriter::write_state() const {
  const json state = {{"made_of", made_of_}, {"files", files_}, {"at", reached_}, {"complete", complete_}};
  return base::write_file_atomically(base::join_path(partial_, kState),
                                     base::with_json_texts(state).dump(1) + "\n");
}

base::Status SetWriter::add(const std::uint32_t* ids, std::size_t count, const json& at) {
  if (!writer_) {
    SLUICE_TRY(writer_, TokenWriter::create(base::join_path(partial_, name_of(files_.size())), width_));
  }
  SLUICE_OK(writer_->add(ids, count));
  if (writer_->tokens() < options_.shard_tokens && writer_->documents() < kMaxDocuments) return {};
  return end_file(at);
}

base::Status SetWriter::end_file(const json& at) {
  SLUICE_OK(writer_->commit());
  files_.push_back({{"name", name_of(files_.size())},
                    {"documents", writer_->documents()},
                    {"tokens", writer_->tokens()},
                    {"crc32c", writer_->crc32c()}});
  writer_.reset();
  reached_ = at;
  return write_state();
}

base::Result<TokenSetReport> SetWriter::finish() {
  if (files_.empty() && !writer_) {
    std::error_code error;
    std::filesystem::remove_all(partial_, error);
    if (error) return base::fail_errno(error.value(), "remove", partial_);
    std::filesystem::remove(options_.folder, error);  // succeeds only for an empty folder
    return base::fail(Code::kNotFound, "the input has no documents: no token files are written");
  }
  if (!complete_) {
    complete_ = true;  // saved with the last file, so that a kill after it cannot repeat its documents
    SLUICE_OK(writer_ ? end_file(reached_) : write_state());
  }
  SLUICE_OK(move());
  TokenSetReport report;
  report.width = width_;
  report.continued = continued_;
  for (const json& file : files_) {
    report.documents += file["documents"].get<std::uint64_t>();
    report.tokens += file["tokens"].get<std::uint64_t>();
    report.files.push_back(base::join_path(options_.folder, file["name"].get<std::string>()));
  }
  return report;
}

base::Status SetWriter::move() {
  // These files replace an older set's. Some of them may have been moved already only if the list is gone.
  SLUICE_OK(base::remove_file(list_path()));
  for (const json& file : files_)
    for (const char* const end : {".bin", ".idx"}) {
      const std::string name = file["name"].get<std::string>() + end;
      const std::string from = base::join_path(partial_, name), to = base::join_path(options_.folder, name);
      if (!base::path_exists(from) && base::path_exists(to)) continue;  // moved before a kill
      if (std::rename(from.c_str(), to.c_str()) != 0)
        return base::fail_errno(errno, "move to its place", from);
    }
  for (std::size_t number = files_.size();
       base::path_exists(base::join_path(options_.folder, name_of(number) + ".bin")); ++number)
    for (const char* const end : {".idx", ".bin"})
      SLUICE_OK(base::remove_file(base::join_path(options_.folder, name_of(number) + end)));
  json list = about_;
  list["element_type"] = width_ == 2 ? "uint16" : "int32";
  list["files"] = files_;
  SLUICE_OK(base::write_file_atomically(list_path(), base::with_json_texts(list).dump(1) + "\n"));
  SLUICE_OK(base::sync_directory(options_.folder));
  std::error_code error;
  std::filesystem::remove_all(partial_, error);
  if (error) return base::fail_errno(error.value(), "remove", partial_);
  return {};
}

}  // namespace sluice::text
