#include "sluice/data/tools/pickle.h"

#include <charconv>
#include <cstring>
#include <set>

namespace sluice::data {
namespace {

using Kind = PickleValue::Kind;

PicklePointer make(Kind kind) {
  auto value = std::make_shared<PickleValue>();
  value->kind = kind;
  return value;
}

PicklePointer make_integer(std::int64_t integer) {
  auto value = make(Kind::kInteger);
  value->integer = integer;
  return value;
}

PicklePointer make_text(std::string text) {
  auto value = make(Kind::kText);
  value->text = std::move(text);
  return value;
}

tl::unexpected<Error> pickle_error(const std::string& cause) {
  return base::fail(Code::kDataLoss, "not a readable pickle: ", cause);
}

// The only names that a file may mention.
bool is_allowed(const std::string& global) {
  static const std::set<std::string, std::less<>> kAllowed = {
      "numpy.core.multiarray _reconstruct", "numpy._core.multiarray _reconstruct", "numpy ndarray",
      "numpy dtype", "_codecs encode"};
  return kAllowed.contains(global);
}

// Python writes bytes in protocol 2 as text of characters up to 255.
base::Result<std::string> latin1(std::string_view utf8) {
  std::string bytes;
  for (std::size_t i = 0; i < utf8.size(); ++i) {
    const auto lead = static_cast<unsigned char>(utf8[i]);
    if (lead < 0x80) {
      bytes += utf8[i];
    } else if ((lead == 0xC2 || lead == 0xC3) && i + 1 < utf8.size()) {
      bytes += static_cast<char>((lead & 3) << 6 | (utf8[++i] & 0x3F));
    } else {
      return pickle_error("bytes spelled with characters above 255");
    }
  }
  return bytes;
}

class Machine {
 public:
  explicit Machine(std::string_view bytes) : bytes_(bytes) {}

  base::Result<PicklePointer> run() {
    while (true) {
      SLUICE_TRY(const std::string_view code, take(1));
      if (code[0] == '.') break;
      SLUICE_OK(step(static_cast<unsigned char>(code[0])));
    }
    if (stack_.size() != 1) return pickle_error(base::str(stack_.size(), " values are left at its end"));
    return stack_.back();
  }

 private:
  base::Result<std::string_view> take(std::size_t count) {
    if (bytes_.size() - position_ < count)
      return pickle_error(base::str("it is cut off at byte ", bytes_.size()));
    position_ += count;
    return bytes_.substr(position_ - count, count);
  }
  base::Status skip(std::size_t count) {
    SLUICE_OK(take(count));
    return {};
  }
  base::Result<std::uint64_t> number(std::size_t count) {
    SLUICE_TRY(const std::string_view raw, take(count));
    std::uint64_t value = 0;
    for (std::size_t i = count; i-- > 0;) value = value << 8 | static_cast<unsigned char>(raw[i]);
    return value;
  }
  base::Result<std::string> line() {
    const std::size_t end = bytes_.find('\n', position_);
    if (end == std::string_view::npos) return pickle_error("a line has no end");
    std::string text(bytes_.substr(position_, end - position_));
    position_ = end + 1;
    return text;
  }
  base::Result<PicklePointer> pop() {
    if (stack_.empty() || stack_.back()->kind == Kind::kMark) return pickle_error("a value is missing");
    PicklePointer value = std::move(stack_.back());
    stack_.pop_back();
    return value;
  }
  // The values since the last mark, which goes too.
  base::Result<std::vector<PicklePointer>> pop_marked() {
    std::size_t mark = stack_.size();
    while (mark > 0 && stack_[mark - 1]->kind != Kind::kMark) --mark;
    if (mark == 0) return pickle_error("a mark is missing");
    std::vector<PicklePointer> items(stack_.begin() + static_cast<std::ptrdiff_t>(mark), stack_.end());
    stack_.resize(mark - 1);
    return items;
  }
  base::Status top_is(Kind kind) const {
    if (stack_.empty() || stack_.back()->kind != kind)
      return pickle_error("a value of another kind was expected");
    return {};
  }
  base::Status push(PicklePointer value) {
    stack_.push_back(std::move(value));
    return {};
  }
  base::Status push_text(std::size_t length_bytes) {
    SLUICE_TRY(const std::uint64_t length, number(length_bytes));
    SLUICE_TRY(const std::string_view text, take(length));
    return push(make_text(std::string(text)));
  }
  base::Status push_tuple(std::size_t count) {
    auto tuple = make(Kind::kSequence);
    tuple->items.resize(count);
    for (std::size_t i = count; i-- > 0;) {
      SLUICE_TRY(tuple->items[i], pop());
    }
    return push(std::move(tuple));
  }
  base::Status push_marked_tuple() {
    auto tuple = make(Kind::kSequence);
    SLUICE_TRY(tuple->items, pop_marked());
    return push(std::move(tuple));
  }
  base::Status append(std::vector<PicklePointer> items) {
    SLUICE_OK(top_is(Kind::kSequence));
    for (PicklePointer& item : items) stack_.back()->items.push_back(std::move(item));
    return {};
  }
  base::Status set_items(const std::vector<PicklePointer>& items) {
    SLUICE_OK(top_is(Kind::kDictionary));
    if (items.size() % 2 != 0) return pickle_error("a key has no value");
    for (std::size_t i = 0; i < items.size(); i += 2) {
      if (items[i]->kind != Kind::kText) return pickle_error("a dictionary's key is no text");
      stack_.back()->entries[items[i]->text] = items[i + 1];
    }
    return {};
  }
  base::Status push_global(const std::string& name) {
    if (!is_allowed(name)) return pickle_error(base::str("it needs '", name, "', which is not allowed here"));
    auto global = make(Kind::kGlobal);
    global->text = name;
    return push(std::move(global));
  }
  base::Status remember(std::uint64_t slot) {
    if (stack_.empty()) return pickle_error("a value is missing");
    memo_[slot] = stack_.back();
    return {};
  }
  base::Status recall(std::uint64_t slot) {
    const auto found = memo_.find(slot);
    if (found == memo_.end()) return pickle_error("it refers to a value that is not there");
    return push(found->second);
  }
  base::Status remember_at(std::size_t width) {
    SLUICE_TRY(const std::uint64_t slot, number(width));
    return remember(slot);
  }
  base::Status recall_at(std::size_t width) {
    SLUICE_TRY(const std::uint64_t slot, number(width));
    return recall(slot);
  }

  base::Status step(unsigned char code);
  base::Status step_text(unsigned char code);
  base::Status step_number(unsigned char code);
  base::Status reduce();
  base::Status build();
  base::Status build_array(PickleValue& object, const std::vector<PicklePointer>& state);

  std::string_view bytes_;
  std::size_t position_ = 0;
  std::vector<PicklePointer> stack_;
  std::map<std::uint64_t, PicklePointer> memo_;
};

// Calls of the allowed names: the beginning of an array, an element type, or bytes spelled as text.
base::Status Machine::reduce() {
  SLUICE_TRY(const PicklePointer arguments, pop());
  SLUICE_TRY(const PicklePointer global, pop());
  if (global->kind != Kind::kGlobal || arguments->kind != Kind::kSequence)
    return pickle_error("it calls something that is no function");
  const auto& items = arguments->items;
  if (global->text == "_codecs encode") {
    if (items.empty() || items[0]->kind != Kind::kText) return pickle_error("malformed bytes");
    SLUICE_TRY(std::string bytes, latin1(items[0]->text));
    return push(make_text(std::move(bytes)));
  }
  auto object = make(Kind::kObject);
  object->text = global->text;
  if (global->text == "numpy dtype") {
    if (items.empty() || items[0]->kind != Kind::kText) return pickle_error("a malformed element type");
    object->element = items[0]->text;
  }
  return push(std::move(object));
}

// NumPy's state of an array: (version, shape, element type, is Fortran order, elements).
base::Status Machine::build_array(PickleValue& object, const std::vector<PicklePointer>& state) {
  const bool sound = state.size() == 5 && state[1]->kind == Kind::kSequence &&
                     state[2]->kind == Kind::kObject && state[3]->kind == Kind::kInteger &&
                     state[4]->kind == Kind::kText;
  if (!sound) return pickle_error("a malformed array");
  if (state[3]->integer != 0) return pickle_error("an array in Fortran order");
  object.kind = Kind::kArray;
  object.element = state[2]->element;
  object.text = state[4]->text;
  object.shape.clear();
  for (const PicklePointer& extent : state[1]->items) object.shape.push_back(extent->integer);
  return {};
}

base::Status Machine::build() {
  SLUICE_TRY(const PicklePointer state, pop());
  SLUICE_OK(top_is(Kind::kObject));
  PickleValue& object = *stack_.back();
  if (object.text == "numpy dtype") return {};  // byte order and flags: nothing for single bytes
  if (state->kind != Kind::kSequence) return pickle_error("a malformed array");
  return build_array(object, state->items);
}

base::Status Machine::step_number(unsigned char code) {
  switch (code) {
    case 'K': {
      SLUICE_TRY(const std::uint64_t value, number(1));
      return push(make_integer(static_cast<std::int64_t>(value)));
    }
    case 'M': {
      SLUICE_TRY(const std::uint64_t value, number(2));
      return push(make_integer(static_cast<std::int64_t>(value)));
    }
    case 'J': {
      SLUICE_TRY(const std::uint64_t value, number(4));
      return push(make_integer(static_cast<std::int32_t>(value)));
    }
    case 0x8a: {  // LONG1
      SLUICE_TRY(const std::uint64_t length, number(1));
      if (length > 8) return pickle_error("a whole number of more than 64 bits");
      SLUICE_TRY(const std::uint64_t value, number(length));
      const int unused = 64 - static_cast<int>(length) * 8;
      return push(make_integer(length == 0 ? 0 : static_cast<std::int64_t>(value << unused) >> unused));
    }
    default: {  // 'I' and 'L': a line of digits
      SLUICE_TRY(std::string text, line());
      if (base::ends_with(text, "L")) text.pop_back();
      std::int64_t value = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (error != std::errc() || end != text.data() + text.size()) return pickle_error("a malformed number");
      return push(make_integer(value));
    }
  }
}

base::Status Machine::step_text(unsigned char code) {
  switch (code) {
    case 'U':  // SHORT_BINSTRING
    case 'C':  // SHORT_BINBYTES
    case 0x8c:
      return push_text(1);  // SHORT_BINUNICODE
    case 'T':               // BINSTRING
    case 'B':               // BINBYTES
    case 'X':
      return push_text(4);  // BINUNICODE
    default:
      return push_text(8);  // BINBYTES8, BINUNICODE8
  }
}

base::Status Machine::step(unsigned char code) {
  switch (code) {
    case 0x80:
      return skip(1);  // PROTO
    case 0x95:
      return skip(8);  // FRAME
    case '(':
      return push(make(Kind::kMark));
    case '}':
      return push(make(Kind::kDictionary));
    case ']':
    case ')':
      return push(make(Kind::kSequence));
    case 'N':
      return push(make(Kind::kNone));
    case 0x88:
      return push(make_integer(1));
    case 0x89:
      return push(make_integer(0));
    case 'K':
    case 'M':
    case 'J':
    case 'I':
    case 'L':
    case 0x8a:
      return step_number(code);
    case 'U':
    case 'T':
    case 'C':
    case 'B':
    case 'X':
    case 0x8c:
    case 0x8d:
    case 0x8e:
      return step_text(code);
    case 0x85:
      return push_tuple(1);
    case 0x86:
      return push_tuple(2);
    case 0x87:
      return push_tuple(3);
    case 't':
    case 'l':
      return push_marked_tuple();
    case 'a': {
      SLUICE_TRY(PicklePointer item, pop());
      return append({std::move(item)});
    }
    case 'e': {
      SLUICE_TRY(auto items, pop_marked());
      return append(std::move(items));
    }
    case 's': {
      SLUICE_TRY(PicklePointer value, pop());
      SLUICE_TRY(PicklePointer name, pop());
      return set_items({std::move(name), std::move(value)});
    }
    case 'u': {
      SLUICE_TRY(const auto items, pop_marked());
      return set_items(items);
    }
    case 'q':
      return remember_at(1);
    case 'r':
      return remember_at(4);
    case 0x94:
      return remember(memo_.size());
    case 'h':
      return recall_at(1);
    case 'j':
      return recall_at(4);
    case 'c': {
      SLUICE_TRY(const std::string module, line());
      SLUICE_TRY(const std::string name, line());
      return push_global(module + " " + name);
    }
    case 0x93: {
      SLUICE_TRY(const PicklePointer name, pop());
      SLUICE_TRY(const PicklePointer module, pop());
      return push_global(module->text + " " + name->text);
    }
    case 'R':
      return reduce();
    case 'b':
      return build();
    default:
      return pickle_error(
          base::str("unknown instruction ", static_cast<int>(code), " at byte ", position_ - 1));
  }
}

}  // namespace

base::Result<PicklePointer> parse_pickle(std::string_view bytes) { return Machine(bytes).run(); }

}  // namespace sluice::data
