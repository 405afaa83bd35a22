#include "tests/conformance/partitioned/journal.h"

#include <filesystem>
#include <fstream>

namespace sluice::conformance {
namespace {

void take_line(Progress& progress, const std::string& word, const std::string& rest) {
  if (word == "begin") {
    const size_t number = std::stoull(rest);
    if (!progress.first) progress.first = number;
    progress.last = number;
    progress.last_case.clear();
  } else if (word == "case") {
    progress.last_case = rest;
  } else if (word == "done") {
    progress.first.reset();
    progress.last.reset();
  } else if (word == "ran") {
    ++progress.ran[rest];
  } else if (word == "met") {
    progress.met.insert(std::stoi(rest));
  } else if (word == "known") {
    progress.differed.insert(std::stoi(rest));
    ++progress.known;
  } else if (word == "failed") {
    ++progress.failures;
  } else if (word == "alike") {
    ++progress.alike;
  } else if (word == "refused") {
    ++progress.refused;
  } else if (word == "time") {
    progress.out_of_time_at = std::stoull(rest);
  }
}

}  // namespace

void Journal::add(const std::string& word, const std::string& rest) const {
  std::ofstream(path_, std::ios::app) << word << ' ' << rest << '\n';
}

Progress Journal::read() const {
  Progress progress;
  std::ifstream in(path_);
  for (std::string line; std::getline(in, line);) {
    const size_t blank = line.find(' ');
    if (blank != std::string::npos) take_line(progress, line.substr(0, blank), line.substr(blank + 1));
  }
  return progress;
}

int64_t Journal::size() const {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path_, error);
  return error ? 0 : static_cast<int64_t>(bytes);
}

}  // namespace sluice::conformance
