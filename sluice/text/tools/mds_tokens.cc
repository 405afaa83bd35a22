#include "sluice/text/tools/mds_tokens.h"

#include <algorithm>

#include "sluice/data/tools/mds/mds.h"
#include "sluice/data/tools/mds/mds_values.h"

namespace sluice::text {
namespace {

// Imports one set.
class MdsImporter {
 public:
  MdsImporter(const TokenImportOptions& options, SetWriter& writer, std::size_t file)
      : options_(options), writer_(writer), file_(file) {}

  // Begins at an id of a sample of the set, where a document begins.
  base::Status run(std::int64_t first, std::size_t skip) {
    SLUICE_TRY(const data::MdsSet set, data::MdsSet::open(options_.files[file_]));
    SLUICE_OK(find_column(set));
    std::int64_t begin = 0;  // the shard's first sample
    for (std::size_t number = 0; number < set.shards().size(); ++number) {
      const std::int64_t end = begin + set.shards()[number].samples;
      if (first < end) {
        SLUICE_TRY(const auto shard, set.read(number));
        for (std::int64_t i = std::max(first, begin); i < end; ++i) {
          if (const auto added = add_sample(*shard, i - begin, i, i == first ? skip : 0); !added)
            return base::fail_at(added, set.name(number), ": sample ", i, " of the set, column '",
                                 options_.column, "'");
        }
      }
      begin = end;
    }
    return end_document(begin, 0);
  }

 private:
  base::Status find_column(const data::MdsSet& set) {
    std::vector<std::string> names;
    for (const auto& column : set.columns()) names.push_back(column.name);
    const auto found = std::find(names.begin(), names.end(), options_.column);
    if (found == names.end())
      return base::fail(Code::kInvalidArgument, options_.files[file_], " has no column '", options_.column,
                        "': expected --column with one of ", base::join(names, ", "));
    column_ = static_cast<std::size_t>(found - names.begin());
    auto encoding = data::parse_mds_encoding(set.columns()[column_].encoding);
    if (!encoding) return base::fail_at(encoding, options_.files[file_], ": column '", *found, "'");
    encoding_ = std::move(*encoding);
    return {};
  }

  base::Status add_sample(const data::MdsShard& shard, std::int64_t place, std::int64_t number,
                          std::size_t skip) {
    SLUICE_TRY(const auto values, shard.sample(place));
    SLUICE_TRY(const auto ids, data::mds_ids(encoding_, options_.id_type, values[column_]));
    for (std::size_t i = skip; i < ids.size(); ++i) {
      if (ids[i] >= options_.vocabulary)
        return base::fail(Code::kOutOfRange, "the id ", ids[i], " at place ", i,
                          " is not below the vocabulary's size ", options_.vocabulary,
                          ": is --vocab-size right, and --id-type?");
      if (ids[i] == options_.begins_with) SLUICE_OK(end_document(number, i));
      if (document_.size() == kMaxTokens)
        return base::fail(Code::kInvalidArgument, "a document has more than ", kMaxTokens,
                          " tokens: name the id that separates documents with --ends-with or --begins-with");
      document_.push_back(ids[i]);
      if (ids[i] == options_.ends_with) SLUICE_OK(end_document(number, i + 1));
    }
    const bool is_document = !options_.begins_with && !options_.ends_with;
    return is_document ? end_document(number + 1, 0) : base::Status();
  }

  // `sample` and `id` are where the next document begins.
  base::Status end_document(std::int64_t sample, std::size_t id) {
    if (document_.empty()) return {};
    SLUICE_OK(
        writer_.add(document_.data(), document_.size(), {{"file", file_}, {"sample", sample}, {"id", id}}));
    document_.clear();
    return {};
  }

  static constexpr std::size_t kMaxTokens = std::size_t{1} << 27;  // in a document
  const TokenImportOptions& options_;
  SetWriter& writer_;
  const std::size_t file_;
  std::size_t column_ = 0;
  data::MdsEncoding encoding_;
  std::vector<std::uint32_t> document_;  // the ids so far
};

}  // namespace

base::Status import_mds(const TokenImportOptions& options, SetWriter& writer) {
  std::size_t first = 0, id = 0;
  std::int64_t sample = 0;
  if (const auto& reached = writer.reached(); !reached.is_null()) {
    first = reached["file"].get<std::size_t>();
    sample = reached["sample"].get<std::int64_t>();
    id = reached["id"].get<std::size_t>();
  }
  for (std::size_t file = first; file < options.files.size(); ++file, sample = 0, id = 0)
    SLUICE_OK(MdsImporter(options, writer, file).run(sample, id));
  return {};
}

}  // namespace sluice::text
