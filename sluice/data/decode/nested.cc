#include "sluice/data/decode/nested.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "sluice/data/memory.h"

namespace sluice::data {
namespace {

using Json = nlohmann::json;

// Looks at a document value by value, and stops it where it must not go on.
class Inspection : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return count(); }
  bool boolean(bool) override { return count(); }
  bool number_integer(number_integer_t) override { return count(); }
  bool number_unsigned(number_unsigned_t) override { return count(); }
  bool number_float(number_float_t number, const string_t&) override {
    if (std::isfinite(number)) return count();
    cause_ =
        "a number that is not finite (NaN or infinity), which JSON has no form for: store such numbers as "
        "npy";
    return false;
  }
  bool string(string_t&) override { return count(); }
  bool binary(binary_t&) override { return count(); }
  bool key(string_t&) override { return count(); }
  bool start_object(std::size_t) override { return enter(); }
  bool start_array(std::size_t) override { return enter(); }
  bool end_object() override { return leave(); }
  bool end_array() override { return leave(); }
  bool parse_error(std::size_t, const std::string&, const Json::exception& error) override {
    cause_ = error.what();
    return false;
  }

  const std::string& cause() const { return cause_; }
  std::uint64_t values() const { return values_; }  // and keys

 private:
  bool count() {
    ++values_;
    return true;
  }
  bool enter() {
    if (++depth_ <= kMaxNesting) return count();
    cause_ = base::str("values within values, deeper than ", kMaxNesting, " levels");
    return false;
  }
  bool leave() {
    --depth_;
    return true;
  }

  int depth_ = 0;
  std::uint64_t values_ = 0;
  std::string cause_;
};

// Whether no string of CBOR that comes in pieces has another such string for a piece. RFC 8949 forbids it,
// but nlohmann's reader calls itself for each, and its values are not told of. The items of CBOR stand one
// after the other whatever contains them, so one pass over their heads is enough; where they make no sense,
// the reader says so.
bool cbor_pieces_are_flat(std::string_view bytes) {
  bool in_pieces = false;
  for (std::size_t at = 0; at < bytes.size();) {
    const auto head = static_cast<unsigned char>(bytes[at++]);
    const int kind = head >> 5, low = head & 31;
    const bool text = kind == 2 || kind == 3;
    if (low == 31) {
      if (text && in_pieces) return false;
      if (text) in_pieces = true;
      if (kind == 7) in_pieces = false;
      continue;
    }
    if (low > 27) return true;
    const std::size_t more = low < 24 ? 0 : std::size_t{1} << (low - 24);
    if (bytes.size() - at < more) return true;
    std::uint64_t value = static_cast<std::uint64_t>(low);
    if (more > 0) value = 0;
    for (std::size_t i = 0; i < more; ++i) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
    at += more;
    if (!text) continue;
    if (bytes.size() - at < value) return true;
    at += static_cast<std::size_t>(value);
  }
  return true;
}

// Its number of values.
base::Result<std::uint64_t> inspect(std::string_view bytes, nlohmann::detail::input_format_t format,
                                    const char* name) {
  Inspection inspection;
  if (Json::sax_parse(bytes, &inspection, format)) return inspection.values();
  return base::fail(Code::kDataLoss, "not valid ", name, ": ", inspection.cause());
}

}  // namespace

base::Status check_json(std::string_view text) {
  SLUICE_OK(inspect(text, nlohmann::detail::input_format_t::json, "JSON"));
  return {};
}

base::Result<std::string> json_of_packed(std::string_view bytes, Format format) {
  const bool cbor = format == Format::kCbor;
  const char* const name = cbor ? "CBOR" : "MessagePack";
  if (cbor && !cbor_pieces_are_flat(bytes))
    return base::fail(Code::kDataLoss,
                      "not valid CBOR: a string in pieces, one of which comes in pieces itself");
  const auto format_of_bytes =
      cbor ? nlohmann::detail::input_format_t::cbor : nlohmann::detail::input_format_t::msgpack;
  SLUICE_TRY(const std::uint64_t values, inspect(bytes, format_of_bytes, name));
  // A value of the tree has 16 bytes, in a list that doubles or in a node of a map; then there is its text.
  SLUICE_OK(claim_memory(64 * values + 4 * bytes.size(), "the values of a nested format"));
  try {
    return (cbor ? Json::from_cbor(bytes) : Json::from_msgpack(bytes)).dump();
  } catch (const Json::exception& error) {
    return base::fail(Code::kDataLoss, "not valid ", name, ": ", error.what());
  }
}

}  // namespace sluice::data
