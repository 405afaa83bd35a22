#include "sluice/text/tools/document_reader.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>

#include "sluice/base/formats/parse_json.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/data/shards/group.h"
#include "sluice/data/shards/source.h"
#include "sluice/text/characters/unicode.h"

namespace sluice::text {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 18;

template <std::size_t size>
base::Result<std::size_t> place_in(const std::array<const char*, size>& names, const std::string& name,
                                   const char* what) {
  for (std::size_t i = 0; i < size; ++i)
    if (name == names[i]) return i;
  return base::fail(Code::kInvalidArgument, "expected one of ", base::join(names, ", "), " as ", what,
                    ", found '", name, "'");
}

InputFormat format_of(const std::string& file, InputFormat format) {
  if (format != InputFormat::kAuto) return format;
  std::string name = file;
  for (const char* const packed : {".gz", ".zst"})
    if (base::ends_with(name, packed)) name.resize(name.size() - std::strlen(packed));
  for (const char* const lines : {".jsonl", ".ndjson", ".json"})
    if (base::ends_with(name, lines)) return InputFormat::kJsonLines;
  return base::ends_with(name, ".tar") || base::ends_with(name, ".tgz") ? InputFormat::kShards
                                                                        : InputFormat::kText;
}

// Opens a file at a place in its unpacked bytes.
base::Result<std::unique_ptr<data::Source>> open_at(const std::string& file, std::uint64_t begin) {
  SLUICE_TRY(auto source, data::open_source(file));
  if (begin > 0) {
    SLUICE_TRY(const std::uint64_t passed, source->skip(begin));
    if (passed != begin)
      return base::fail(Code::kDataLoss, file, ": it ends at byte ", passed, ", and byte ", begin,
                        " was reached before: it has changed");
  }
  return source;
}

// Reads lines, paragraphs or the whole of a file.
class TextReader : public DocumentReader {
 public:
  TextReader(std::unique_ptr<data::Source> source, SampleBy sample_by, bool is_json, bool keep_ends,
             std::uint64_t begin)
      : source_(std::move(source)),
        sample_by_(sample_by),
        is_json_(is_json),
        keep_ends_(keep_ends),
        at_(begin) {}

  base::Result<bool> next(RawDocument& document) override {
    document.bytes.clear();
    document.is_json = is_json_;
    for (;;) {
      const std::uint64_t begin = at_;
      if (document.bytes.empty()) document.begin = begin;
      SLUICE_TRY(const bool more, next_line(document));
      document.end = at_;
      if (!more) return !document.bytes.empty();
      const std::size_t line = at_ - begin;
      const bool blank = line == 1 || (line == 2 && document.bytes.size() >= 2 &&
                                       document.bytes[document.bytes.size() - 2] == '\r');
      if (sample_by_ == SampleBy::kDocument) continue;
      if (sample_by_ == SampleBy::kParagraph && !blank) continue;
      if (sample_by_ == SampleBy::kLine && keep_ends_) return true;
      strip_ends(document.bytes);
      if (!document.bytes.empty()) return true;
    }
  }

 private:
  static void strip_ends(std::string& bytes) {
    while (!bytes.empty() && (bytes.back() == '\n' || bytes.back() == '\r')) bytes.pop_back();
  }

  // Appends the next line, with its end, to the document. False: the file ended without an end of line.
  base::Result<bool> next_line(RawDocument& document) {
    for (;;) {
      if (used_ == have_) {
        SLUICE_TRY(have_, source_->read(buffer_.data(), buffer_.size()));
        used_ = 0;
        if (have_ == 0) {
          if (sample_by_ != SampleBy::kDocument && !keep_ends_) strip_ends(document.bytes);
          return false;
        }
      }
      const char* const from = buffer_.data() + used_;
      const void* const found = std::memchr(from, '\n', have_ - used_);
      const std::size_t size = found == nullptr
                                   ? have_ - used_
                                   : static_cast<std::size_t>(static_cast<const char*>(found) - from) + 1;
      if (document.bytes.size() + size > kMaxDocument + 2) return too_long(document);
      document.bytes.append(from, size);
      used_ += size;
      at_ += size;
      if (found != nullptr) return true;
    }
  }

  tl::unexpected<Error> too_long(const RawDocument& document) const {
    const char* const what = sample_by_ == SampleBy::kLine        ? "a line"
                             : sample_by_ == SampleBy::kParagraph ? "a paragraph"
                                                                  : "the text";
    return base::fail(Code::kInvalidArgument, source_->name(), ": ", what, " that begins at byte ",
                      document.begin, " is longer than ", kMaxDocument >> 20,
                      " MiB. Expected text with ends of lines",
                      sample_by_ == SampleBy::kLine ? "" : "; --sample-by line makes each line a document");
  }

  const std::unique_ptr<data::Source> source_;
  const SampleBy sample_by_;
  const bool is_json_, keep_ends_;
  std::vector<char> buffer_ = std::vector<char>(kChunk);
  std::size_t used_ = 0, have_ = 0;
  std::uint64_t at_;
};

class ShardDocuments : public DocumentReader {
 public:
  ShardDocuments(std::unique_ptr<data::Source> source, std::string member, std::uint64_t begin)
      : name_(source->name()),
        member_(std::move(member)),
        begin_(begin),
        reader_(std::move(source), {.all = false, .extensions = {member_}}, {.begin = begin}) {}

  base::Result<bool> next(RawDocument& document) override {
    for (;;) {
      data::RawSample sample;
      SLUICE_TRY(const bool more, reader_.next(sample));
      if (!more) return false;
      document.begin = begin_;
      document.end = begin_ = data::end_of(sample);
      const data::Field* const field = sample.find(member_);
      if (field == nullptr)
        return base::fail(Code::kInvalidArgument, sample.where(), " has no member .", member_,
                          ": --member names the extension of the text");
      if (field->bytes.size() > kMaxDocument)
        return base::fail(Code::kInvalidArgument, sample.where(), ": ", field->bytes.size(),
                          " bytes of text, expected at most ", kMaxDocument);
      if (field->bytes.empty()) continue;
      document.bytes = field->bytes;
      document.is_json = member_ == "json";
      return true;
    }
  }

 private:
  const std::string name_, member_;
  std::uint64_t begin_;
  data::ShardReader reader_;
};

}  // namespace

base::Result<InputFormat> input_format_of(const std::string& name) {
  SLUICE_TRY(const std::size_t place, place_in<4>({"auto", "text", "jsonl", "shards"}, name, "format"));
  return static_cast<InputFormat>(place);
}

base::Result<SampleBy> sample_by_of(const std::string& name) {
  SLUICE_TRY(const std::size_t place, place_in<3>({"line", "paragraph", "document"}, name, "sample-by"));
  return static_cast<SampleBy>(place);
}

base::Result<std::string> text_of(RawDocument document, const std::string& file,
                                  const InputOptions& options) {
  if (const std::size_t at = first_invalid_utf8(document.bytes); at != std::string_view::npos)
    return tl::unexpected<Error>(
        check_utf8(std::string_view(document.bytes).substr(at), file, document.begin + at).error());
  if (!document.is_json) return std::move(document.bytes);
  const auto json = base::parse_json(document.bytes);
  if (!json.is_object())
    return base::fail(Code::kInvalidArgument, file, ": expected a JSON object on the line at byte ",
                      document.begin, ", found something else");
  const auto found = json.find(options.field);
  if (found == json.end() || !found->is_string()) {
    std::vector<std::string> names;
    for (const auto& [name, value] : json.items())
      if (value.is_string()) names.push_back(name);
    return base::fail(Code::kInvalidArgument, file, ": the JSON object at byte ", document.begin,
                      " has no text '", options.field, "'; its texts are ",
                      names.empty() ? "none" : base::join(names, ", "), " (--field chooses one)");
  }
  return found->get<std::string>();
}

base::Result<std::unique_ptr<DocumentReader>> open_documents(const std::string& file,
                                                             const InputOptions& options,
                                                             std::uint64_t begin) {
  SLUICE_TRY(auto source, open_at(file, begin));
  const InputFormat format = format_of(file, options.format);
  if (format == InputFormat::kShards)
    return std::make_unique<ShardDocuments>(std::move(source), options.member, begin);
  const bool lines = format == InputFormat::kJsonLines;
  return std::make_unique<TextReader>(std::move(source), lines ? SampleBy::kLine : options.sample_by, lines,
                                      options.keep_line_ends && !lines, begin);
}

base::Result<bool> BatchReader::next(DocumentBatch& batch) {
  while (file_ < files_.size() && batch.bytes < bytes_) {
    if (!reader_) {
      SLUICE_TRY(reader_, open_documents(files_[file_], options_, begin_));
    }
    batch.file = file_;
    RawDocument document;
    SLUICE_TRY(const bool more, reader_->next(document));
    if (more) {
      batch.bytes += document.bytes.size() + sizeof document;
      batch.documents.push_back(std::move(document));
      continue;
    }
    reader_.reset();
    begin_ = 0;
    ++file_;
    if (!batch.documents.empty()) return true;
  }
  return !batch.documents.empty();
}

}  // namespace sluice::text
