// Converts token files of nanoGPT, llm.c and Megatron-LM, and sets of Streaming.
#include <algorithm>
#include <array>
#include <cstring>
#include <functional>

#include "sluice/base/files/file.h"
#include "sluice/base/formats/json_bytes.h"
#include "sluice/base/formats/sha256.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/data/shards/source.h"
#include "sluice/data/tools/mds/mds.h"
#include "sluice/text/token_file.h"
#include "sluice/text/tools/mapped_file.h"
#include "sluice/text/tools/mds_tokens.h"
#include "sluice/text/tools/set_writer.h"

namespace sluice::text {
namespace {

using nlohmann::json;

constexpr std::size_t kHeaderInts = 256;
constexpr std::int32_t kGpt2Magic = 20240520, kGpt2Version = 1;      // uint16
constexpr std::int32_t kLlama3Magic = 20240801, kLlama3Version = 7;  // uint32
constexpr std::size_t kMaxTokens = std::size_t{1} << 27;             // in a document
constexpr std::size_t kAtOnce = std::size_t{1} << 20;                // tokens that are copied at a time

// The ids in another program's file.
struct ForeignIds {
  std::string name;
  MappedFile file;
  std::size_t header = 0;
  std::size_t width = 2;
  std::uint64_t count = 0;

  std::uint32_t at(std::uint64_t place) const {
    const char* const from = file.bytes().data() + header + place * width;
    std::uint32_t id = 0;
    std::memcpy(&id, from, width);
    return id;
  }
};

base::Status read_header(ForeignIds& ids) {
  const std::string_view bytes = ids.file.bytes();
  std::array<std::int32_t, 3> header{};
  ids.header = kHeaderInts * 4;
  if (bytes.size() >= ids.header) std::memcpy(header.data(), bytes.data(), sizeof header);
  const auto [magic, version, count] = header;
  const bool gpt2 = magic == kGpt2Magic && version == kGpt2Version;
  if (!gpt2 && !(magic == kLlama3Magic && version == kLlama3Version))
    return base::fail(Code::kDataLoss, ids.name, ": expected llm.c's header (", kGpt2Magic, ", ",
                      kGpt2Version, " or ", kLlama3Magic, ", ", kLlama3Version, "), found ", magic, ", ",
                      version, "; files of nanoGPT have no header: use --format nanogpt");
  ids.width = gpt2 ? 2 : 4;
  ids.count = static_cast<std::uint32_t>(count);
  if (bytes.size() - ids.header != ids.count * ids.width)
    return base::fail(Code::kDataLoss, ids.name, ": its header says ", ids.count, " tokens of ", ids.width,
                      " bytes, and ", bytes.size() - ids.header, " bytes follow: it is cut off or damaged");
  return {};
}

base::Result<ForeignIds> open_foreign(const std::string& path, TokenFormat format) {
  ForeignIds ids;
  ids.name = path;
  SLUICE_TRY(ids.file, MappedFile::open(path));
  if (format == TokenFormat::kLlmC) {
    SLUICE_OK(read_header(ids));
    return ids;
  }
  const std::size_t size = ids.file.bytes().size();
  if (size % 2 != 0)
    return base::fail(Code::kDataLoss, path, ": ", size,
                      " bytes: expected uint16 ids, two bytes each; it is cut off");
  ids.count = size / 2;
  return ids;
}

class Importer {
 public:
  Importer(const TokenImportOptions& options, SetWriter& writer) : options_(options), writer_(writer) {}

  base::Status run() {
    std::size_t first = 0;
    std::uint64_t place = 0;
    if (const json& reached = writer_.reached(); !reached.is_null()) {
      first = reached["file"].get<std::size_t>();
      place = reached["place"].get<std::uint64_t>();
    }
    for (std::size_t file = first; file < options_.files.size(); ++file, place = 0) {
      if (options_.format == TokenFormat::kMegatron) {
        SLUICE_OK(add_indexed(file, place));
      } else {
        SLUICE_OK(add_plain(file, place));
      }
    }
    return {};
  }

 private:
  base::Status check(std::uint32_t id, const std::string& name, std::uint64_t place) const {
    if (id < options_.vocabulary) return {};
    return base::fail(Code::kOutOfRange, name, ": the id ", id, " at place ", place,
                      " is not below the vocabulary's size ", options_.vocabulary,
                      ": is the format right, and --vocab-size?");
  }

  base::Status add_plain(std::size_t file, std::uint64_t place) {
    SLUICE_TRY(const ForeignIds ids, open_foreign(options_.files[file], options_.format));
    std::vector<std::uint32_t> document;
    const auto end = [&](std::uint64_t behind) -> base::Status {
      if (document.empty()) return {};
      SLUICE_OK(writer_.add(document.data(), document.size(), {{"file", file}, {"place", behind}}));
      document.clear();
      return {};
    };
    for (; place < ids.count; ++place) {
      const std::uint32_t id = ids.at(place);
      SLUICE_OK(check(id, ids.name, place));
      if (id == options_.begins_with) SLUICE_OK(end(place));
      document.push_back(id);
      if (id == options_.ends_with) SLUICE_OK(end(place + 1));
      if (document.size() > kMaxTokens)
        return base::fail(Code::kInvalidArgument, ids.name, ": a document of more than ", kMaxTokens,
                          " tokens before place ", place,
                          ": name the id that separates documents with --ends-with or --begins-with");
      if ((place + 1) % (kAtOnce * 16) == 0) ids.file.forget(ids.header + place * ids.width);
    }
    return end(place);
  }

  base::Status add_indexed(std::size_t file, std::uint64_t place) {
    try {
      const TokenFile ids = TokenFile::open(options_.files[file]);
      std::vector<std::uint32_t> document;
      for (; place < ids.documents(); ++place) {
        document.resize(ids.length(place));
        ids.copy(ids.begin(place), document.size(), document.data());
        for (std::size_t i = 0; i < document.size(); ++i)
          SLUICE_OK(check(document[i], base::str(ids.name(), ".bin, document ", place), i));
        SLUICE_OK(writer_.add(document.data(), document.size(), {{"file", file}, {"place", place + 1}}));
      }
    } catch (const Error& error) {
      return tl::unexpected<Error>(Error(error.code(), error.what()));
    }
    return {};
  }

  const TokenImportOptions& options_;
  SetWriter& writer_;
};

base::Result<std::string> made_of(const TokenImportOptions& options) {
  json facts = {static_cast<int>(options.format), options.vocabulary, options.set.shard_tokens,
                options.begins_with ? json(*options.begins_with) : json(),
                options.ends_with ? json(*options.ends_with) : json()};
  for (const std::string& file : options.files) {
    if (options.format != TokenFormat::kMds) {
      // Megatron's pairs of files are named by one of them, or without .bin and .idx.
      const bool whole = options.format != TokenFormat::kMegatron || base::ends_with(file, ".bin") ||
                         base::ends_with(file, ".idx");
      SLUICE_TRY(const data::SourceFacts known, data::stat_source(whole ? file : file + ".bin"));
      facts.push_back({file, known.size, known.version});
      continue;
    }
    SLUICE_TRY(const data::MdsSet set, data::MdsSet::open(file));
    facts.push_back({file, set.index(), options.column, options.id_type});
  }
  return base::hexadecimal(base::sha256(base::with_json_texts(facts).dump()));
}

// Writes one file of ids without documents.
base::Status export_plain(const TokenSet& set, TokenFormat format, const std::string& path) {
  std::size_t width = 2;
  std::string header;
  if (format == TokenFormat::kLlmC) {
    for (const TokenFile& file : set.files()) width = std::max(width, static_cast<std::size_t>(file.width()));
    if (set.tokens() > 0x7FFFFFFF)
      return base::fail(Code::kOutOfRange, path,
                        ": llm.c's header counts up to 2147483647 tokens, and the set has ", set.tokens(),
                        ": export some of its files");
    const std::array<std::int32_t, 3> first = {width == 2 ? kGpt2Magic : kLlama3Magic,
                                               width == 2 ? kGpt2Version : kLlama3Version,
                                               static_cast<std::int32_t>(set.tokens())};
    header.resize(kHeaderInts * 4);
    std::memcpy(header.data(), first.data(), sizeof first);
  }
  SLUICE_TRY(auto out, base::AtomicFile::create(path));
  SLUICE_OK(out.write(header));
  std::vector<std::uint32_t> ids(kAtOnce);
  std::string bytes;
  for (const TokenFile& file : set.files()) {
    for (std::uint64_t begin = 0; begin < file.tokens(); begin += kAtOnce) {
      const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(kAtOnce, file.tokens() - begin));
      file.copy(begin, count, ids.data());
      bytes.resize(count * width);
      for (std::size_t i = 0; i < count; ++i) {
        if (width == 2 && ids[i] > 0xFFFF)
          return base::fail(Code::kOutOfRange, file.name(), ".bin: the id ", ids[i], " at place ", begin + i,
                            " does not fit uint16, which nanoGPT reads: export as llmc or megatron");
        std::memcpy(bytes.data() + i * width, &ids[i], width);
      }
      SLUICE_OK(out.write(bytes));
    }
  }
  return out.commit();
}

base::Status export_indexed(const TokenSet& set, const std::string& path) {
  int width = 2;
  for (const TokenFile& file : set.files()) width = std::max(width, file.width());
  SLUICE_TRY(auto writer, TokenWriter::create(path, width));
  for (std::size_t document = 0; document < set.documents(); ++document) {
    const auto ids = set.document(document);
    SLUICE_OK(writer.add(ids.data(), ids.size()));
  }
  return writer.commit();
}

}  // namespace

base::Result<TokenFormat> token_format_of(const std::string& name) {
  if (name == "nanogpt") return TokenFormat::kNanoGpt;
  if (name == "llmc") return TokenFormat::kLlmC;
  if (name == "megatron") return TokenFormat::kMegatron;
  if (name == "mds") return TokenFormat::kMds;
  return base::fail(Code::kInvalidArgument, "expected one of nanogpt, llmc, megatron, mds as format, found '",
                    name, "'");
}

base::Result<TokenSetReport> import_tokens(const TokenImportOptions& options) {
  const json about = {{"vocabulary_size", options.vocabulary}};
  SLUICE_TRY(const std::string facts, made_of(options));
  SLUICE_TRY(SetWriter writer, SetWriter::open(options.set, token_width(options.vocabulary), facts, about));
  if (!writer.complete())
    SLUICE_OK(options.format == TokenFormat::kMds ? import_mds(options, writer)
                                                  : Importer(options, writer).run());
  return writer.finish();
}

base::Status export_tokens(const std::string& files, TokenFormat format, const std::string& path,
                           bool overwrite) {
  std::string name = path;
  if (format == TokenFormat::kMegatron && base::ends_with(name, ".bin")) name.resize(name.size() - 4);
  const std::string first = format == TokenFormat::kMegatron ? name + ".bin" : name;
  if (!overwrite && base::path_exists(first))
    return base::fail(Code::kAlreadyExists, first, " is there: another name, or --overwrite to replace it");
  if (format == TokenFormat::kMds)
    return base::fail(Code::kInvalidArgument,
                      "sets of Streaming are only imported: export as nanogpt, llmc or megatron");
  const TokenSet set = TokenSet::open(files);
  return format == TokenFormat::kMegatron ? export_indexed(set, name) : export_plain(set, format, name);
}

}  // namespace sluice::text
