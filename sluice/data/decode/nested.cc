#include "sluice/data/decode/nested.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/data/memory.h"

namespace sluice::data {
namespace {

using Json = nlohmann::json;

// Returns the message without the library's name of the error, in brackets, and without line 1: most
// documents are one line, for which the caller may have another number.
std::string cause_of(const Json::exception& error) {
  std::string cause = error.what();
  if (const std::size_t name = cause.find("] "); name != std::string::npos) cause.erase(0, name + 2);
  for (const std::string_view start : {"parse error at line 1, ", "parse error at "})
    if (base::starts_with(cause, start)) return base::str("at ", cause.substr(start.size()));
  return cause;
}

// Checks a document value by value, and stops the reader where it must not continue.
class Inspection : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t number, const string_t&) override {
    if (std::isfinite(number)) return true;
    cause_ =
        "a number that is not finite (NaN or infinity), which JSON has no form for: store such numbers as "
        "npy";
    return false;
  }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool key(string_t&) override { return true; }
  bool start_object(std::size_t) override { return enter(); }
  bool start_array(std::size_t) override { return enter(); }
  bool end_object() override { return leave(); }
  bool end_array() override { return leave(); }
  bool parse_error(std::size_t place, const std::string&, const Json::exception& error) override {
    place_ = place;
    cause_ = cause_of(error);
    return false;
  }

  const std::string& cause() const { return cause_; }
  std::size_t place() const { return place_; }  // bytes that the reader had taken when it stopped

 protected:
  bool enter() {
    if (++depth_ <= kMaxNesting) return true;
    cause_ = base::str("values within values, deeper than ", kMaxNesting, " levels");
    return false;
  }
  bool leave() {
    --depth_;
    return true;
  }

 private:
  int depth_ = 0;
  std::size_t place_ = 0;
  std::string cause_;
};

// Returns "NaN, which …" if the reader stopped at a number that Python's json module writes and JSON has no
// form for; else "".
std::string python_number(std::string_view text, std::size_t place) {
  for (const std::string_view name : {"NaN", "-Infinity", "Infinity"}) {
    const std::size_t first = place > name.size() ? place - name.size() : 0;
    if (text.substr(0, std::min(text.size(), place + name.size())).find(name, first) ==
        std::string_view::npos)
      continue;
    return base::str(name,
                     ", which Python writes and JSON has no form for (store null, or the numbers as npy); ");
  }
  return "";
}

// Makes a tree of the values that pass the inspection.
class Tree : public Inspection {
 public:
  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(number_integer_t value) override { return put(value); }
  bool number_unsigned(number_unsigned_t value) override { return put(value); }
  bool number_float(number_float_t value, const string_t& text) override {
    return Inspection::number_float(value, text) && put(value);
  }
  bool string(string_t& value) override { return put(std::move(value)); }
  bool binary(binary_t& value) override {
    if (!value.has_subtype()) return put(Json::binary(std::move(value)));
    const auto subtype = value.subtype();
    return put(Json::binary(std::move(value), subtype));
  }
  bool key(string_t& name) override {
    if (!claim()) return false;
    key_ = std::move(name);
    return true;
  }
  bool start_object(std::size_t) override { return enter() && open(Json::object()); }
  bool start_array(std::size_t) override { return enter() && open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  const Json& root() const { return root_; }
  const base::Status& memory() const { return memory_; }

 private:
  // Claims memory for a value: 16 bytes in the tree, in a list that doubles or in a node of a map.
  bool claim() {
    memory_ = claim_memory(64, "the values of a nested format");
    return memory_.has_value();
  }
  bool put(Json value) {
    if (!claim()) return false;
    Json& place = open_.empty()              ? root_
                  : open_.back()->is_array() ? open_.back()->emplace_back()
                                             : (*open_.back())[key_];
    place = std::move(value);
    last_ = &place;
    return true;
  }
  bool open(Json value) {
    if (!put(std::move(value))) return false;
    open_.push_back(last_);
    return true;
  }
  bool close() {
    open_.pop_back();
    return leave();
  }

  Json root_;
  std::vector<Json*>
      open_;  // lists and objects around the next value; each stays in its place while it is open
  Json* last_ = nullptr;
  std::string key_;
  base::Status memory_;
};

// Checks that no string of CBOR that comes in pieces has another such string for a piece. RFC 8949 forbids
// it, but nlohmann's reader calls itself for each without reporting values. The items of CBOR follow each
// other inside any container, so one pass over their heads is enough; the reader reports invalid heads.
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

}  // namespace

base::Status check_json(std::string_view text) {
  Inspection inspection;
  if (Json::sax_parse(text, &inspection, nlohmann::detail::input_format_t::json)) return {};
  return base::fail(Code::kDataLoss, "not valid JSON: ", python_number(text, inspection.place()),
                    inspection.cause());
}

base::Result<std::string> json_of_packed(std::string_view bytes, Format format) {
  const bool cbor = format == Format::kCbor;
  const char* const name = cbor ? "CBOR" : "MessagePack";
  if (cbor && !cbor_pieces_are_flat(bytes))
    return base::fail(Code::kDataLoss, "not valid CBOR: a piece of a string comes in pieces itself");
  // The claim covers the texts, and the JSON that is written.
  SLUICE_OK(claim_memory(4 * bytes.size(), "the values of a nested format"));
  Tree tree;
  const bool read = Json::sax_parse(
      bytes, &tree,
      cbor ? nlohmann::detail::input_format_t::cbor : nlohmann::detail::input_format_t::msgpack);
  if (!tree.memory()) return tl::unexpected<Error>(tree.memory().error());
  if (!read) return base::fail(Code::kDataLoss, "not valid ", name, ": ", tree.cause());
  try {
    return tree.root().dump();
  } catch (const Json::exception& error) {
    return base::fail(Code::kDataLoss, "not valid ", name, ": ", cause_of(error));
  }
}

}  // namespace sluice::data
