#include "sluice/session/files/unpickle.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <unordered_map>

namespace sluice::sessions::pickle {

const char* name_of(Kind kind) {
  constexpr const char* kNames[] = {"None",     "a bool",  "an integer", "a float", "a string",
                                    "bytes",    "a tuple", "a list",     "a dict",  "a class or function",
                                    "a tensor", "a mark"};
  return kNames[static_cast<size_t>(kind)];
}

Ref make(Kind kind) {
  auto object = std::make_shared<Object>();
  object->kind = kind;
  return object;
}

namespace {

// The limit of nesting: readers of the result follow it recursively.
constexpr int kMaxDepth = 64;

// Returns how deep an object's containers are nested; -1 if deeper than kMaxDepth, or if one contains itself.
// It does not recurse.
class Depths {
 public:
  int of(const Object& root) {
    std::vector<const Object*> todo{&root};
    while (!todo.empty()) {
      const Object* const object = todo.back();
      const auto [known, is_new] = depth_of_.try_emplace(object, kOpen);
      if (is_new) {
        const bool whole = each_child(*object, [&](const Object& child) {
          const auto found = depth_of_.find(&child);
          if (found == depth_of_.end()) todo.push_back(&child);
          return found == depth_of_.end() || found->second != kOpen;  // else it contains itself
        });
        if (!whole) return -1;
        continue;
      }
      todo.pop_back();
      if (known->second != kOpen) continue;
      int deepest = 0;
      each_child(*object, [&](const Object& child) {
        deepest = std::max(deepest, depth_of_.at(&child));
        return true;
      });
      if (deepest >= kMaxDepth) return -1;
      depth_of_[object] = deepest + 1;
    }
    return depth_of_.at(&root);
  }

 private:
  static constexpr int kOpen = -1;

  template <typename Visit>
  static bool each_child(const Object& object, const Visit& visit) {
    for (const Ref& item : object.items)
      if (!visit(*item)) return false;
    for (const auto& [key, value] : object.entries)
      if (!visit(*key) || !visit(*value)) return false;
    return true;
  }

  std::unordered_map<const Object*, int> depth_of_;
};

// The pickle machine: a stack, a memo, one opcode after the other.
class Machine {
 public:
  Machine(std::string_view bytes, const std::string& path, Objects& objects)
      : bytes_(bytes), path_(path), objects_(objects) {}
  // Deeply nested containers would free each other recursively.
  ~Machine() {
    if (whole_) return;
    for (const Ref& object : containers_) {
      object->items.clear();
      object->entries.clear();
    }
  }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  size_t used() const { return at_; }

  base::Result<Ref> run() {
    while (true) {
      SLUICE_TRY(std::string_view code, take(1));
      if (code[0] == '.') break;
      SLUICE_OK(step(code[0]));
    }
    Depths depths;
    for (const Ref& object : containers_)
      if (depths.of(*object) < 0)
        return bad("containers in each other deeper than ", kMaxDepth, ", or one that holds itself");
    SLUICE_TRY(Ref result, pop());
    whole_ = true;
    return result;
  }

 private:
  template <typename... Pieces>
  tl::unexpected<Error> bad(const Pieces&... what) const {
    return base::fail(Code::kDataLoss, path_, ": the pickle is malformed at byte ", at_, ": ", what...);
  }

  base::Result<std::string_view> take(uint64_t count) {
    if (count > bytes_.size() - at_) return bad("it is cut off");
    std::string_view result = bytes_.substr(at_, count);
    at_ += count;
    return result;
  }

  template <typename T>
  base::Result<T> number() {
    SLUICE_TRY(std::string_view raw, take(sizeof(T)));
    T value;
    std::memcpy(&value, raw.data(), sizeof value);
    return value;
  }

  base::Result<std::string_view> line() {
    size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) return bad("a name without an end");
    SLUICE_TRY(std::string_view result, take(end - at_ + 1));
    return result.substr(0, result.size() - 1);
  }

  void push(Ref object) {
    const Kind kind = object->kind;
    if (kind == Kind::kTuple || kind == Kind::kList || kind == Kind::kDict) containers_.push_back(object);
    stack_.push_back(std::move(object));
  }
  void push_number(Kind kind, int64_t value) {
    push(make(kind));
    stack_.back()->number = value;
  }
  void push_text(Kind kind, std::string_view text) {
    push(make(kind));
    stack_.back()->text = text;
  }

  base::Result<Ref> pop() {
    if (stack_.empty()) return bad("the stack is empty");
    Ref top = std::move(stack_.back());
    stack_.pop_back();
    return top;
  }
  base::Result<Ref> top() {
    if (stack_.empty()) return bad("the stack is empty");
    return stack_.back();
  }
  base::Result<std::vector<Ref>> pop_to_mark() {
    for (size_t i = stack_.size(); i-- > 0;) {
      if (stack_[i]->kind != Kind::kMark) continue;
      std::vector<Ref> items(stack_.begin() + static_cast<std::ptrdiff_t>(i) + 1, stack_.end());
      stack_.resize(i);
      return items;
    }
    return bad("no mark on the stack");
  }

  base::Status step(char code) {
    switch (code) {
      case '\x80':
        return skip(1);  // PROTO
      case '\x95':
        return skip(8);  // FRAME
      case '(':
        push(make(Kind::kMark));
        return {};
      case 'N':
        push(make(Kind::kNone));
        return {};
      case '\x88':
        push_number(Kind::kBool, 1);
        return {};
      case '\x89':
        push_number(Kind::kBool, 0);
        return {};
      case '}':
        push(make(Kind::kDict));
        return {};
      case ']':
        push(make(Kind::kList));
        return {};
      case ')':
        push(make(Kind::kTuple));
        return {};
      case 'K':
        return integer<uint8_t>();  // BININT1
      case 'M':
        return integer<uint16_t>();  // BININT2
      case 'J':
        return integer<int32_t>();  // BININT
      case '\x8a':
        return long_integer();  // LONG1
      case 'G':
        return real();  // BINFLOAT
      case 'X':
        return text<uint32_t>(Kind::kText);  // BINUNICODE
      case '\x8c':
        return text<uint8_t>(Kind::kText);  // SHORT_BINUNICODE
      case '\x8d':
        return text<uint64_t>(Kind::kText);  // BINUNICODE8
      case 'U':
        return text<uint8_t>(Kind::kText);  // SHORT_BINSTRING
      case 'T':
        return text<uint32_t>(Kind::kText);  // BINSTRING
      case 'C':
        return text<uint8_t>(Kind::kBytes);  // SHORT_BINBYTES
      case 'B':
        return text<uint32_t>(Kind::kBytes);  // BINBYTES
      case 'c':
        return global();  // GLOBAL
      case '\x93':
        return stack_global();  // STACK_GLOBAL
      case 'q':
        return put<uint8_t>();  // BINPUT
      case 'r':
        return put<uint32_t>();  // LONG_BINPUT
      case '\x94':
        return remember(memo_.size());  // MEMOIZE
      case 'h':
        return get<uint8_t>();  // BINGET
      case 'j':
        return get<uint32_t>();  // LONG_BINGET
      case '\x85':
        return tuple(1);
      case '\x86':
        return tuple(2);
      case '\x87':
        return tuple(3);
      case 't':
        return tuple_to_mark();
      case 'e':
        return append_to_mark();
      case 'a':
        return append();
      case 'u':
        return set_to_mark();
      case 's':
        return set();
      case 'R':
        return reduce();
      case 'b':
        return build();
      case 'Q':
        return persistent();
      case '0':
        return drop();
      default:
        return bad("opcode ", static_cast<int>(static_cast<unsigned char>(code)), " is not supported");
    }
  }

  base::Status skip(uint64_t count) {
    SLUICE_OK(take(count));
    return {};
  }
  template <typename T>
  base::Status integer() {
    SLUICE_TRY(T value, number<T>());
    push_number(Kind::kNumber, static_cast<int64_t>(value));
    return {};
  }
  base::Status long_integer() {
    SLUICE_TRY(uint8_t count, number<uint8_t>());
    SLUICE_TRY(std::string_view raw, take(count));
    if (count > 8) return bad("an integer of ", int{count}, " bytes");
    uint64_t value = count > 0 && (raw[count - 1] & 0x80) ? ~uint64_t{0} : 0;
    for (size_t i = count; i-- > 0;) value = value << 8 | static_cast<unsigned char>(raw[i]);
    push_number(Kind::kNumber, static_cast<int64_t>(value));
    return {};
  }
  base::Status real() {
    SLUICE_TRY(uint64_t raw, number<uint64_t>());
    push(make(Kind::kReal));
    stack_.back()->real = std::bit_cast<double>(__builtin_bswap64(raw));
    return {};
  }
  template <typename Length>
  base::Status text(Kind kind) {
    SLUICE_TRY(Length length, number<Length>());
    SLUICE_TRY(std::string_view raw, take(length));
    push_text(kind, raw);
    return {};
  }
  base::Status global() {
    SLUICE_TRY(std::string_view module, line());
    SLUICE_TRY(std::string_view name, line());
    push_text(Kind::kGlobal, base::str(module, ".", name));
    return {};
  }
  base::Status stack_global() {
    SLUICE_TRY(Ref name, pop());
    SLUICE_TRY(Ref module, pop());
    push_text(Kind::kGlobal, base::str(module->text, ".", name->text));
    return {};
  }
  base::Status remember(uint64_t key) {
    SLUICE_TRY(memo_[key], top());
    return {};
  }
  template <typename T>
  base::Status put() {
    SLUICE_TRY(T key, number<T>());
    return remember(key);
  }
  template <typename T>
  base::Status get() {
    SLUICE_TRY(T key, number<T>());
    auto found = memo_.find(key);
    if (found == memo_.end()) return bad("it refers to an object that it did not store");
    push(found->second);
    return {};
  }
  base::Status tuple(size_t count) {
    if (stack_.size() < count) return bad("the stack is empty");
    Ref result = make(Kind::kTuple);
    result->items.assign(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    push(std::move(result));
    return {};
  }
  base::Status tuple_to_mark() {
    Ref result = make(Kind::kTuple);
    SLUICE_TRY(result->items, pop_to_mark());
    push(std::move(result));
    return {};
  }
  base::Result<Ref> container(Kind kind) {
    SLUICE_TRY(Ref result, top());
    if (result->kind != kind) return bad("expected ", name_of(kind), ", found ", name_of(result->kind));
    return result;
  }
  base::Status append_to_mark() {
    SLUICE_TRY(auto items, pop_to_mark());
    SLUICE_TRY(Ref list, container(Kind::kList));
    list->items.insert(list->items.end(), items.begin(), items.end());
    return {};
  }
  base::Status append() {
    SLUICE_TRY(Ref item, pop());
    SLUICE_TRY(Ref list, container(Kind::kList));
    list->items.push_back(item);
    return {};
  }
  base::Status set_to_mark() {
    SLUICE_TRY(auto items, pop_to_mark());
    if (items.size() % 2 != 0) return bad("a key without a value");
    SLUICE_TRY(Ref dict, container(Kind::kDict));
    for (size_t i = 0; i < items.size(); i += 2) dict->entries.emplace_back(items[i], items[i + 1]);
    return {};
  }
  base::Status set() {
    SLUICE_TRY(Ref value, pop());
    SLUICE_TRY(Ref key, pop());
    SLUICE_TRY(Ref dict, container(Kind::kDict));
    dict->entries.emplace_back(key, value);
    return {};
  }
  base::Status reduce() {
    SLUICE_TRY(Ref args, pop());
    SLUICE_TRY(Ref function, pop());
    if (function->kind != Kind::kGlobal || args->kind != Kind::kTuple) return bad("a call of no function");
    SLUICE_TRY(Ref result, objects_.call(function->text, args->items));
    push(std::move(result));
    return {};
  }
  // An object's attributes: a state dict keeps its modules' versions there, which nothing here needs.
  base::Status build() {
    SLUICE_OK(pop());
    SLUICE_OK(top());
    return {};
  }
  base::Status persistent() {
    SLUICE_TRY(Ref id, pop());
    SLUICE_TRY(Ref result, objects_.load(id));
    push(std::move(result));
    return {};
  }
  base::Status drop() {
    SLUICE_OK(pop());
    return {};
  }

  std::string_view bytes_;
  const std::string& path_;
  Objects& objects_;
  size_t at_ = 0;
  bool whole_ = false;
  std::vector<Ref> containers_;  // all containers that were created
  std::vector<Ref> stack_;
  std::unordered_map<uint64_t, Ref> memo_;
};

}  // namespace

base::Result<Ref> load(std::string_view bytes, const std::string& path, Objects& objects, size_t* used) {
  Machine machine(bytes, path, objects);
  auto result = machine.run();
  if (used != nullptr) *used = machine.used();
  return result;
}

}  // namespace sluice::sessions::pickle
