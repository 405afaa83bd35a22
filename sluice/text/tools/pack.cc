#include "sluice/text/tools/pack.h"

#include "sluice/base/formats/json_bytes.h"
#include "sluice/base/formats/sha256.h"
#include "sluice/base/thread.h"
#include "sluice/data/shards/source.h"
#include "sluice/text/tools/ordered_work.h"
#include "sluice/text/tools/set_writer.h"

namespace sluice::text {
namespace {

using nlohmann::json;

constexpr std::size_t kPackBatch = std::size_t{1} << 18;  // bytes of text in each task

struct EncodedBatch {
  std::size_t file = 0;
  std::vector<std::uint32_t> ids;
  std::vector<std::size_t> counts;    // [document]
  std::vector<std::uint64_t> behind;  // [document]: where it ends in the file
  std::uint64_t bytes = 0;
};

// Hashes everything that determines the bytes of the set; "" if an input may change.
base::Result<std::string> made_of(const Tokenizer& tokenizer, const TokenPackOptions& options) {
  json facts = {{"tokenizer", tokenizer.fingerprint()},
                {"format", static_cast<int>(options.input.format)},
                {"sample_by", static_cast<int>(options.input.sample_by)},
                {"field", options.input.field},
                {"member", options.input.member},
                {"shard_tokens", options.set.shard_tokens},
                {"end", options.end ? json(*options.end) : json()}};
  for (const std::string& file : options.files) {
    const auto known = data::stat_source(file);
    // An input without size and version before it is read, such as a pipe, may differ in the next run.
    if (!known && known.error().code() == Code::kNotFound) return tl::unexpected<Error>(known.error());
    if (!known || known->version.empty()) return std::string();
    facts["files"].push_back({file, known->size, known->version});
  }
  return base::hexadecimal(base::sha256(base::with_json_texts(facts).dump()));
}

base::Result<EncodedBatch> encode(const Tokenizer& tokenizer, const TokenPackOptions& options,
                                  DocumentBatch& batch) {
  EncodedBatch made;
  made.file = batch.file;
  made.ids.reserve(batch.bytes / 2);  // rarely exceeded; a growing vector is in memory twice
  for (RawDocument& document : batch.documents) {
    const std::uint64_t begin = document.begin, end = document.end;
    SLUICE_TRY(const std::string text,
               text_of(std::move(document), options.files[batch.file], options.input));
    made.bytes += text.size();
    const std::size_t before = made.ids.size();
    try {
      tokenizer.append_ids(text, made.ids);
    } catch (const std::exception& error) {
      return base::fail(Code::kInvalidArgument, options.files[batch.file], ": the document at byte ", begin,
                        ": ", error.what());
    }
    if (options.end) made.ids.push_back(*options.end);
    made.counts.push_back(made.ids.size() - before);
    made.behind.push_back(end);
  }
  return made;
}

}  // namespace

base::Result<TokenSetReport> pack_tokens(const Tokenizer& tokenizer, const TokenPackOptions& options) {
  if (options.end && *options.end >= tokenizer.vocabulary_size())
    return base::fail(Code::kOutOfRange, "the id ", *options.end,
                      " that ends documents is not below the vocabulary's size ",
                      tokenizer.vocabulary_size());
  SLUICE_TRY(const std::string facts, made_of(tokenizer, options));
  const json about = {{"tokenizer", tokenizer.fingerprint()},
                      {"vocabulary_size", tokenizer.vocabulary_size()}};
  SLUICE_TRY(SetWriter writer,
             SetWriter::open(options.set, token_width(tokenizer.vocabulary_size()), facts, about));
  std::uint64_t documents = 0, tokens = 0, bytes = 0;
  const auto consume = [&](const EncodedBatch& batch) -> base::Status {
    const std::uint32_t* ids = batch.ids.data();
    for (std::size_t i = 0; i < batch.counts.size(); ids += batch.counts[i++])
      SLUICE_OK(writer.add(ids, batch.counts[i], {{"file", batch.file}, {"byte", batch.behind[i]}}));
    documents += batch.counts.size();
    tokens += batch.ids.size();
    bytes += batch.bytes;
    if (options.progress) options.progress(documents, tokens);
    return {};
  };
  if (!writer.complete()) {
    std::size_t file = 0;
    std::uint64_t begin = 0;
    if (const json& reached = writer.reached(); !reached.is_null()) {
      file = reached["file"].get<std::size_t>();
      begin = reached["byte"].get<std::uint64_t>();
    }
    BatchReader reader(options.files, options.input, kPackBatch, file, begin);
    const std::size_t workers =
        options.workers > 0 ? static_cast<std::size_t>(options.workers) : base::available_processors();
    SLUICE_OK((ordered_work<DocumentBatch, EncodedBatch>(
        workers, [&](DocumentBatch& batch) { return reader.next(batch); },
        [&](DocumentBatch& batch) { return encode(tokenizer, options, batch); }, consume)));
  }
  auto report = writer.finish();
  if (!report && report.error().code() == Code::kNotFound)
    return base::fail_at(
        report, options.files.front(),
        options.files.size() > 1 ? base::str(" and ", options.files.size() - 1, " more") : "");
  if (report) report->bytes = bytes;
  return report;
}

}  // namespace sluice::text
