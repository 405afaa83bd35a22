// Prints how texts are encoded and decoded, for comparison with Python's tokenizers.
//
//   sluice_print_tokens TOKENIZER [ids]     a JSON text, or a list of two, on each line of stdin
//   sluice_print_tokens matches             a JSON text, then a JSON pattern on each line
//
// With `ids`, the ids alone. Of a pattern, the numbers of the characters where a match begins and ends.
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "sluice/base/error.h"
#include "sluice/text/characters/regex.h"
#include "sluice/text/tokenizer.h"

namespace {

using namespace sluice;
using nlohmann::json;

json describe(const text::Tokenizer& tokenizer, const json& line) {
  const text::EncodeOptions options{.offsets = true};
  const auto encoding =
      line.is_array() ? tokenizer.encode_pair(line[0].get<std::string>(), line[1].get<std::string>(), options)
                      : tokenizer.encode(line.get<std::string>(), options);
  json offsets = json::array();
  for (const text::Span& span : encoding.offsets) offsets.push_back({span.begin, span.end});
  std::vector<std::uint32_t> alone;
  if (line.is_string()) tokenizer.append_ids(line.get<std::string>(), alone);
  return {{"ids", encoding.ids},
          {"types", encoding.type_ids},
          {"special", encoding.special},
          {"attention", encoding.attention},
          {"offsets", offsets},
          {"tokens", encoding.tokens},
          {"alone", alone},
          {"text", tokenizer.decode(encoding.ids, true)},
          {"whole", tokenizer.decode(encoding.ids, false)}};
}

// A text: there is no such pattern, or it takes too many steps on this text.
json matches(const std::string& pattern, const std::string& text) {
  const auto regex = text::Regex::compile(pattern);
  if (!regex) return regex.error().what();
  json found = json::array();
  std::size_t reached = 0, characters = 0;
  const auto number = [&](std::size_t at) {
    for (; reached < at; ++reached) characters += (static_cast<unsigned char>(text[reached]) & 0xC0) != 0x80;
    return characters;
  };
  const auto done = regex->each(text, [&](std::size_t begin, std::size_t end) {
    const std::size_t first = number(begin);
    found.push_back({first, number(end)});
  });
  if (!done) return done.error().what();
  return found;
}

void print_matches() {
  std::string line;
  std::getline(std::cin, line);
  const std::string text = json::parse(line).get<std::string>();
  while (std::getline(std::cin, line))
    std::cout << matches(json::parse(line).get<std::string>(), text).dump() << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  try {
    if (std::string(argv[1]) == "matches") {
      print_matches();
      return 0;
    }
    const auto tokenizer = text::Tokenizer::load(argv[1]);
    const bool ids_alone = argc > 2;
    std::vector<std::uint32_t> ids;
    for (std::string line; std::getline(std::cin, line);) {
      if (ids_alone) {
        ids.clear();
        tokenizer.append_ids(json::parse(line).get<std::string>(), ids);
        for (const std::uint32_t id : ids) std::cout << id << ' ';
        std::cout << '\n';
      } else {
        std::cout << describe(tokenizer, json::parse(line)).dump() << '\n';
      }
    }
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
