#include "sluice/text/steps/limits.h"

#include <algorithm>

namespace sluice::text {
namespace {

// Longer paddings are mistakes.
constexpr std::int64_t kMaxLength = std::int64_t{1} << 24;

base::Result<Side> read_side(const JsonObject& object) {
  SLUICE_TRY(const std::string side, object.text_or("direction", "Right"));
  if (side != "Left" && side != "Right") return object.unknown("direction", side, {"Left", "Right"});
  return side == "Left" ? Side::kLeft : Side::kRight;
}

template <typename T>
void keep(std::vector<T>& list, std::size_t length, Side side) {
  if (list.size() <= length) return;
  const auto left_out = static_cast<std::ptrdiff_t>(list.size() - length);
  if (side == Side::kRight) {
    list.erase(list.end() - left_out, list.end());
  } else {
    list.erase(list.begin(), list.begin() + left_out);
  }
}

void keep(Encoding& encoding, std::size_t length, Side side) {
  keep(encoding.ids, length, side);
  keep(encoding.type_ids, length, side);
  keep(encoding.special, length, side);
  keep(encoding.attention, length, side);
  keep(encoding.offsets, length, side);
  keep(encoding.tokens, length, side);
}

// Divides `length` between two texts; the longer text is cut first.
void share(std::size_t length, std::size_t& first, std::size_t& second) {
  std::size_t shorter = std::min(first, second);
  std::size_t longer = shorter > length ? shorter : std::max(shorter, length - shorter);
  if (shorter + longer > length) {
    shorter = length / 2;
    longer = shorter + length % 2;
  }
  const bool swapped = first > second;
  first = swapped ? longer : shorter;
  second = swapped ? shorter : longer;
}

template <typename T>
void put(std::vector<T>& list, std::size_t count, const T& value, Side side) {
  list.insert(side == Side::kRight ? list.end() : list.begin(), count, value);
}

}  // namespace

base::Result<std::optional<Truncation>> read_truncation(const Json& json, const std::string& where) {
  if (json.is_null()) return std::optional<Truncation>();
  SLUICE_TRY(const auto object, JsonObject::of(json, where));
  Truncation made;
  SLUICE_TRY(const std::int64_t length, object.number("max_length", 0, kMaxId));
  made.length = static_cast<std::size_t>(length);
  SLUICE_TRY(made.side, read_side(object));
  SLUICE_TRY(const std::string name, object.text_or("strategy", "LongestFirst"));
  using Strategy = Truncation::Strategy;
  const std::vector<std::string> names = {"LongestFirst", "OnlyFirst", "OnlySecond"};
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return object.unknown("strategy", name, names);
  made.strategy = static_cast<Strategy>(found - names.begin());
  return std::optional<Truncation>(made);
}

base::Status truncate(const Truncation& truncation, std::size_t added, Encoding& first, Encoding* second) {
  if (added > truncation.length)
    return base::fail(Code::kInvalidArgument, "max_length is ", truncation.length,
                      ", and the template alone adds ", added, " tokens");
  const std::size_t length = truncation.length - added;
  const std::size_t total = first.ids.size() + (second != nullptr ? second->ids.size() : 0);
  if (length == 0) {
    keep(first, 0, truncation.side);
    if (second != nullptr) keep(*second, 0, truncation.side);
    return {};
  }
  if (total <= length) return {};
  using Strategy = Truncation::Strategy;
  if (truncation.strategy == Strategy::kLongestFirst) {
    std::size_t of_first = length, of_second = 0;
    if (second != nullptr) {
      of_first = first.ids.size();
      of_second = second->ids.size();
      share(length, of_first, of_second);
      keep(*second, of_second, truncation.side);
    }
    keep(first, of_first, truncation.side);
    return {};
  }
  Encoding* const target = truncation.strategy == Strategy::kOnlyFirst ? &first : second;
  if (target == nullptr)
    return base::fail(Code::kInvalidArgument,
                      "the truncation's strategy is OnlySecond, and there is no second text");
  if (target->ids.size() <= total - length)
    return base::fail(Code::kInvalidArgument, "the text has ", target->ids.size(), " tokens, and ",
                      total - length, " must be cut off for max_length: use the strategy LongestFirst");
  keep(*target, target->ids.size() - (total - length), truncation.side);
  return {};
}

base::Result<std::optional<Padding>> read_padding(const Json& json, const std::string& where) {
  if (json.is_null()) return std::optional<Padding>();
  SLUICE_TRY(const auto object, JsonObject::of(json, where));
  Padding made;
  SLUICE_TRY(made.side, read_side(object));
  SLUICE_TRY(const std::int64_t id, object.number("pad_id", 0, kMaxId));
  SLUICE_TRY(const std::int64_t type, object.number("pad_type_id", 0, kMaxId));
  made.id = static_cast<std::uint32_t>(id);
  made.type = static_cast<std::uint32_t>(type);
  SLUICE_TRY(made.token, object.text("pad_token"));
  if (object.has("pad_to_multiple_of")) {
    SLUICE_TRY(const std::int64_t multiple, object.number("pad_to_multiple_of", 0, kMaxLength));
    made.multiple = static_cast<std::size_t>(std::max<std::int64_t>(multiple, 1));
  }
  SLUICE_TRY(const Json* const strategy, object.field("strategy"));
  if (*strategy == "BatchLongest") return std::optional<Padding>(made);
  if (!strategy->is_object())
    return object.fail("expected BatchLongest or {\"Fixed\": LENGTH} as 'strategy'");
  SLUICE_TRY(const auto inner, object.object("strategy"));
  SLUICE_TRY(const std::int64_t length, inner.number("Fixed", 0, kMaxLength));
  made.length = static_cast<std::size_t>(length);
  return std::optional<Padding>(made);
}

void pad(const Padding& padding, bool offsets, Encoding& encoding) {
  std::size_t length = padding.length.value_or(encoding.ids.size());
  length = (length + padding.multiple - 1) / padding.multiple * padding.multiple;
  if (encoding.ids.size() >= length) return;
  const std::size_t count = length - encoding.ids.size();
  put(encoding.ids, count, padding.id, padding.side);
  put(encoding.type_ids, count, padding.type, padding.side);
  put(encoding.special, count, 1u, padding.side);
  put(encoding.attention, count, 0u, padding.side);
  if (!offsets) return;
  put(encoding.offsets, count, Span{}, padding.side);
  put(encoding.tokens, count, padding.token, padding.side);
}

}  // namespace sluice::text
