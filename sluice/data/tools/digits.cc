#include "sluice/data/tools/digits.h"

#include <cmath>
#include <map>

#include "sluice/base/files/file.h"
#include "sluice/base/random.h"
#include "sluice/base/text/strings.h"
#include "sluice/data/decode/decode.h"
#include "sluice/data/images/image.h"
#include "sluice/data/images/resize.h"
#include "sluice/data/shards/source.h"

namespace sluice::data {
namespace {

constexpr std::size_t kPixels = 64;
constexpr std::int64_t kMaxValue = 16;
constexpr std::uint64_t kSplit = 11, kDigitsTrainOrder = 12,
                        kDigitsTestOrder = 13;  // separate these random numbers from others

base::Result<std::string> encode_digit(const Digit& digit, std::int64_t side) {
  Pixels pixels{8, 8, 1, {}};
  for (const std::uint8_t value : digit.values)
    pixels.bytes.push_back(static_cast<std::uint8_t>((value * 255 + kMaxValue / 2) / kMaxValue));
  return encode_png(resize_bilinear(pixels, side, side));
}

base::Result<ShardReport> write_digits(const std::vector<Digit>& digits, const std::vector<std::size_t>& rows,
                                       const std::string& prefix, const DigitsOptions& options) {
  const auto produce = [&](std::int64_t i) -> base::Result<NewSample> {
    const std::size_t row = rows[static_cast<std::size_t>(i)];
    SLUICE_TRY(std::string png, encode_digit(digits[row], options.side));
    NewSample sample{sample_key(static_cast<std::int64_t>(row)), {}};
    sample.members.emplace_back("png", std::move(png));
    sample.members.emplace_back("cls", std::to_string(digits[row].label));
    return sample;
  };
  return write_shards(static_cast<std::int64_t>(rows.size()), produce,
                      {options.folder, prefix, options.shard_size, options.overwrite, nullptr, 0, ""});
}

}  // namespace

base::Result<std::vector<Digit>> parse_digits(std::string_view csv) {
  std::vector<Digit> digits;
  std::size_t line_number = 0;
  for (const std::string& line : base::split(csv, '\n')) {
    ++line_number;
    if (base::trim(line).empty()) continue;
    const auto cells = base::split(base::trim(line), ',');
    if (cells.size() != kPixels + 1)
      return base::fail(Code::kInvalidArgument, "line ", line_number,
                        ": expected 64 values and a digit, found ", cells.size(), " cells");
    Digit digit;
    for (std::size_t i = 0; i <= kPixels; ++i) {
      const auto value = parse_whole_number(cells[i]);
      const std::int64_t limit = i < kPixels ? kMaxValue : 9;
      if (!value || *value < 0 || *value > limit)
        return base::fail(Code::kInvalidArgument, "line ", line_number, ", cell ", i + 1,
                          ": expected a whole number of 0 to ", limit, ", found '", cells[i], "'");
      if (i < kPixels) {
        digit.values.push_back(static_cast<std::uint8_t>(*value));
      } else {
        digit.label = *value;
      }
    }
    digits.push_back(std::move(digit));
  }
  if (digits.empty()) return base::fail(Code::kInvalidArgument, "no digits: the file has no lines");
  return digits;
}

base::Result<DigitsReport> pack_digits(const DigitsOptions& options) {
  SLUICE_TRY(std::string csv, base::read_file(options.csv));
  if (base::starts_with(csv, "\x1f\x8b")) {
    SLUICE_TRY(csv, gunzip(options.csv, std::move(csv)));
  }
  const auto digits = parse_digits(csv);
  if (!digits) return base::fail_at(digits, options.csv);
  std::map<std::int64_t, std::vector<std::size_t>> by_class;
  for (std::size_t i = 0; i < digits->size(); ++i) by_class[(*digits)[i].label].push_back(i);

  std::vector<std::size_t> train, test;
  for (auto& [label, rows] : by_class) {
    base::Random({options.seed, kSplit, static_cast<std::uint64_t>(label)}).shuffle(rows);
    const auto held_out =
        static_cast<std::ptrdiff_t>(std::lround(static_cast<double>(rows.size()) * options.test_share));
    test.insert(test.end(), rows.begin(), rows.begin() + held_out);
    train.insert(train.end(), rows.begin() + held_out, rows.end());
  }
  base::Random({options.seed, kDigitsTrainOrder}).shuffle(train);
  base::Random({options.seed, kDigitsTestOrder}).shuffle(test);
  DigitsReport report;
  SLUICE_TRY(report.train, write_digits(*digits, train, "train", options));
  SLUICE_TRY(report.test, write_digits(*digits, test, "test", options));
  return report;
}

}  // namespace sluice::data
