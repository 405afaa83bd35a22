#include "tests/conformance/partitioned/known.h"

#include <fstream>
#include <sstream>
#include <stdexcept>

namespace sluice::conformance {
namespace {

std::string without_blanks(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t"), last = text.find_last_not_of(" \t");
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

}  // namespace

KnownDifferences::KnownDifferences(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error("cannot read " + path);
  int number = 0;
  for (std::string text; std::getline(in, text);) {
    ++number;
    text = without_blanks(text);
    if (text.empty() || text.front() == '#') continue;
    std::istringstream cells(text);
    KnownDifference entry{number, {}, {}, {}};
    std::getline(cells, entry.op, '|');
    std::getline(cells, entry.part, '|');
    std::getline(cells, entry.reason);
    for (std::string* cell : {&entry.op, &entry.part, &entry.reason}) *cell = without_blanks(*cell);
    if (entry.reason.empty())
      throw std::runtime_error(path + ":" + std::to_string(number) +
                               ": expected operation | part of the case | reason, found '" + text + "'");
    all_.push_back(std::move(entry));
  }
}

const KnownDifference* KnownDifferences::find(const std::string& op, const std::string& name) const {
  for (const KnownDifference& entry : all_) {
    if (entry.op == op && (entry.part == "*" || name.find(entry.part) != std::string::npos)) return &entry;
  }
  return nullptr;
}

}  // namespace sluice::conformance
